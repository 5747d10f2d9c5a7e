"""The text cells: markdown to HTML, with an anchor on every heading and links to pages.

A heading that an `<a id="...">` precedes takes that id, so what links to the chapters links here.
"""

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import mistune

from tools.site.highlight import code_block
from tools.site.markup import plain, slug, tag, text
from tools.site.mathml import mathml
from tools.site.places import rewritten

_ANCHOR = re.compile(r'<a id="(?P<id>[\w-]+)"></a>\s*')
_WHEN = re.compile(
    r"^<strong>(?P<kind>Core|Deep dive|Practice) \u00b7 (?P<time>[^<]+)</strong>(?P<rest>.*)$",
    re.DOTALL,
)
_MATH = r"\$(?P<tex>(?=[^$\n]*\\)[^$\n]+)\$"
_COLAB = re.compile(r"^\[Open in Colab\]\([^)]*\)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Heading:
    """A heading of a page: its level (1 to 4), its id and its words."""

    level: int
    id: str
    words: str


class _Renderer(mistune.HTMLRenderer):
    """Markup of the site for the pieces that mistune finds; raw HTML is ours and stays."""

    def __init__(self, prose: "Prose") -> None:
        super().__init__(escape=False)
        self.prose = prose

    def heading(self, text: str, level: int, **attrs: Any) -> str:
        """Return a heading that can be linked to."""
        return self.prose.heading(text, level)

    def paragraph(self, text: str) -> str:
        """Return a paragraph; the line that says how long a section takes gets its own look."""
        found = _WHEN.match(text)
        if not found:
            return tag("p", text) + "\n"
        kind = found["kind"].lower().replace(" ", "-")
        chip = tag("span", found["kind"], class_="chip")
        line = f"{chip} {found['time']}{found['rest']}"
        return tag("p", line, class_=f"when {kind}") + "\n"

    def link(self, text: str, url: str, title: str | None = None) -> str:
        """Return a link; one to a notebook leads to its page."""
        return tag("a", text, href=rewritten(url), title=title)

    def block_code(self, code: str, info: str | None = None) -> str:
        """Return code in colours."""
        return code_block(code, (info or "text").split()[0])

    def inline_math(self, text: str) -> str:
        """Return a formula within a line."""
        return mathml(text)

    def table(self, text: str) -> str:
        """Return a table that scrolls inside itself."""
        return tag("div", tag("table", text), class_="wide")


def _math(markdown: mistune.Markdown) -> None:
    """Read `$...$` as a formula where it holds a command; a price such as $3 stays a price."""

    def parse(inline: Any, match: re.Match[str], state: Any) -> int:
        state.append_token({"type": "inline_math", "raw": match["tex"]})
        return match.end()

    markdown.inline.register("inline_math", _MATH, parse, before="link")


@dataclass
class Prose:
    """The text of one page; `headings` grows with what is rendered."""

    taken: set[str] = field(default_factory=set)
    headings: list[Heading] = field(default_factory=list)
    _next_id: str = ""

    @cached_property
    def _markdown(self) -> mistune.Markdown:
        return mistune.create_markdown(renderer=_Renderer(self), plugins=["table", _math])

    def render(self, source: str) -> str:
        """Return a text cell as HTML.

        >>> Prose().render("## A *name*")[:35]
        '<h2 id="a-name">A <em>name</em><a c'
        """
        source = _COLAB.sub("", source)
        made = []
        for ahead, piece in _split(source):
            if ahead:
                self._next_id = ahead
            made.append(self._markdown(piece))
            if self._next_id:  # the anchor stood before something that is no heading
                made.insert(-1, tag("span", id=self._next_id, class_="here"))
                self.taken.add(self._next_id)
                self._next_id = ""
        return "".join(made)

    def heading(self, words: str, level: int) -> str:
        """Return a heading with its id and a link to itself, and remember it."""
        name = self._next_id or slug(plain(words), self.taken)
        self.taken.add(name)
        self._next_id = ""
        self.headings.append(Heading(level, name, plain(words)))
        sign = tag("span", "#", aria_hidden="true")
        label = f"Link to the section {plain(words)}"
        anchor = tag("a", sign, class_="anchor", href=f"#{name}", aria_label=label)
        return tag(f"h{level}", words + anchor, id=name) + "\n"


def _split(source: str) -> list[tuple[str, str]]:
    """Split a text at its anchors: pairs of an id ("" for none) and what follows it."""
    parts = _ANCHOR.split(source)
    pairs = list(zip(parts[1::2], parts[2::2], strict=True))
    return [*([("", parts[0])] if parts[0].strip() else []), *pairs]


def words_of(source: str) -> str:
    """Return a short text with `code` and **weight** as HTML, as questions write it.

    >>> words_of("`a<b` does **not** hold")
    '<code>a&lt;b</code> does <strong>not</strong> hold'
    """
    safe = re.sub(r"`([^`\n]+)`", lambda m: tag("code", m[1]), text(source))
    safe = re.sub(r"\*\*([^*\n]+)\*\*", lambda m: tag("strong", m[1]), safe)
    return safe.replace("\n", "<br>")
