"""Chapters' markdown as slides need it: sections, sentences, and plain HTML for a speaker's notes.

Only what the chapters use is understood: headings, emphasis, code, lists, links and folds.
"""

import re
from collections.abc import Iterator
from html import escape

ANCHOR = re.compile(r'<a id="[^"]*"></a>\n?')
HEADING = re.compile(r"^(#{1,4}) +(.+)$")
NUMBERED = re.compile(r"^\d+(?:-[a-z])?\.? +")
KIND = re.compile(r"^\*\*(Core|Deep dive|Practice) · [^*]+\*\*$", re.MULTILINE)
TAG = re.compile(r"</?(?:details|summary|b)\b[^>]*>")
LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")
FENCE = re.compile(r"^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MATH = re.compile(r"\$([^$\n]+)\$")
HANDS_ON = re.compile(
    r"^(?:Commit to|Drag|Move the|Now move|Now yours|Now choose|Choose|Try|Turn the|Run |Press"
    r"|Play|The next cell|Look at|Guess |Here it is|Watch |The run takes|If it is not so|The cell )"
)
READING = re.compile(r"\*\*How to read it:\*\*\s*(.+?)(?:\n\n|$)", re.DOTALL)


def pieces(source: str) -> Iterator[tuple[str, str]]:
    """Yield (heading, text below it) of a markdown cell; the heading is "" before the first.

    >>> list(pieces("Before.\\n\\n## 2. Measure it\\nAfter."))
    [('', 'Before.'), ('Measure it', 'After.')]
    """
    heading, lines = "", list[str]()
    for line in ANCHOR.sub("", source).split("\n"):
        found = HEADING.match(line)
        if found is None:
            lines.append(line)
            continue
        if heading or "\n".join(lines).strip():
            yield heading, "\n".join(lines).strip()
        heading, lines = NUMBERED.sub("", found[2]).strip(), []
    yield heading, "\n".join(lines).strip()


def sentences(text: str) -> list[str]:
    """Return the sentences of running text; lists, folds and code blocks are left out.

    >>> sentences("It has 4.5 GiB. Does it fit? **Yes.** See")
    ['It has 4.5 GiB.', 'Does it fit?', '**Yes.**', 'See']
    """
    text = KIND.sub("", FENCE.sub("", text))
    lines = (line for line in text.split("\n") if not re.match(r"\s*(?:[-*] |\d+\. |<|\|)", line))
    flat = re.sub(r"\s+", " ", " ".join(lines)).strip()
    return [s for s in re.split(r"(?<=[.?!:])\s+(?=[A-Z*(\"`'])|(?<=[.?!]\*\*)\s+", flat) if s]


def lead_of(text: str, most: int) -> str:
    """Return the first sentences of a text, up to `most` characters.

    Reading aids are left out, and what only somebody at a keyboard can do.

    >>> lead_of("Drag the slider. A column is a token. It grows.", 30)
    'A column is a token. It grows.'
    """
    found = ""
    for sentence in sentences(READING.sub("", text)):
        if HANDS_ON.match(sentence):
            continue
        longer = f"{found} {sentence}".strip()
        if found and len(longer) > most:
            break
        found = longer
        if len(found) > most:
            break
    return found.removesuffix(":") + "." if found.endswith(":") else found


def reading_of(text: str) -> str:
    """Return what a text says on how to read its picture, or "".

    >>> reading_of("Look. **How to read it:** a cell is a token.")
    'a cell is a token.'
    """
    found = READING.findall(text)
    return re.sub(r"\s+", " ", found[-1]).strip() if found else ""


def inline(text: str) -> str:
    """Return one line of markdown as HTML; links become their words.

    >>> inline("**K** and `a<b`, see [GQA](x.html)")
    '<b>K</b> and <code>a&lt;b</code>, see GQA'
    """
    kept: list[str] = []

    def code(found: re.Match[str]) -> str:
        kept.append(f"<code>{escape(found[1], quote=False)}</code>")
        return f"\0{len(kept) - 1}\0"

    text = re.sub(r"`([^`]+)`", code, LINK.sub(r"\1", text))
    text = escape(MATH.sub(lambda m: plain_math(m[1]), text), quote=False)
    text = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", text)
    text = re.sub(r"(?<![\w*])\*([^*\n]+)\*(?![\w*])", r"<i>\1</i>", text)
    return re.sub("\0(\\d+)\0", lambda m: kept[int(m[1])], text)


def plain_math(tex: str) -> str:
    r"""Return the few formulas of the chapters without TeX.

    >>> plain_math(r"\mathrm{softmax}(q K^\top / \sqrt{d})\,V")
    'softmax(q Kᵀ / √d) V'
    """
    for old, new in (("^\\top", "ᵀ"), ("\\,", " "), ("\\cdot", "·"), ("\\times", "x")):
        tex = tex.replace(old, new)
    tex = re.sub(r"\\(?:mathrm|text)\{([^}]*)\}", r"\1", tex)
    return re.sub(r"\\sqrt\{([^}]*)\}", r"√\1", tex).replace("\\", "")


def as_html(text: str) -> str:
    """Return paragraphs, lists and code blocks as HTML, for the speaker's notes."""
    text = TAG.sub("", ANCHOR.sub("", text))
    parts = []
    for index, block in enumerate(FENCE.split(text)):
        if index % 2:
            parts.append(f"<pre>{escape(block)}</pre>")
            continue
        for paragraph in re.split(r"\n\s*\n", block):
            parts += [_paragraph(paragraph)] if paragraph.strip() else []
    return "".join(parts)


def _paragraph(text: str) -> str:
    """Return one paragraph, list or heading."""
    lines = [line.strip() for line in text.strip().split("\n")]
    if all(re.match(r"(?:[-*]|\d+\.) ", line) for line in lines):
        items = (re.sub(r"^(?:[-*]|\d+\.) ", "", line) for line in lines)
        return "<ul>" + "".join(f"<li>{inline(item)}</li>" for item in items) + "</ul>"
    heading = HEADING.match(lines[0])
    if heading:
        rest = "\n".join(lines[1:]).strip()
        return f"<p><b>{inline(heading[2])}</b></p>" + (_paragraph(rest) if rest else "")
    return f"<p>{inline(' '.join(lines))}</p>"
