"""One code cell of a chapter as a part of its page.

What needs a kernel says so in a line, unless the page can do it by itself: guesses, questions and
a few live pictures. The code of cells that only put such a thing on the page is folded away.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tools.site.claims import claim_card
from tools.site.guesses import guess_form, marked_reveals
from tools.site.highlight import code_block
from tools.site.markup import tag, text
from tools.site.outputs import Collected, joined, outputs_html
from tools.site.source import LastCall, last_call

STILL = "<!--still-->"
"""Where a live picture takes the stored one, which is there without scripts."""

DROPPED = {"chapter_line"}
"""Calls whose result the page has in its frame already."""

NEEDS_KERNEL = {
    "practice": "The practice panel draws questions and keeps your results, so it needs a "
    "running notebook. The same questions are on {questions}.",
    "mock_interview": "The clock of the mock interview needs a running notebook. To practise "
    "here, take {questions} by topic, the open ones aloud.",
    "record_panel": "Your record is a file on your own machine; a running notebook shows it.",
    "diagnostic": "The ten questions, with advice at the end, are on {diagnostic}.",
}
"""What to say in place of a panel that a page cannot have."""

_PLACES = {
    "questions": tag("a", "the page of questions", href="questions.html"),
    "diagnostic": tag("a", "a page of their own", href="diagnostic.html"),
}


@dataclass
class Part:
    """A cell on its page: markup, and what the page needs for it."""

    html: str
    needs: set[str] = field(default_factory=set)
    data: tuple[str, ...] = ()


def code_cell(cell: Mapping[str, Any], page: Collected, live: Mapping[str, Part]) -> Part:
    """Return a code cell; `live` holds live pictures by the name of the call they stand for."""
    source, tags = joined(cell["source"]), set(cell["metadata"].get("tags", ()))
    outputs, call = cell["outputs"], last_call(source)
    name = call.name if call else ""
    if name in DROPPED or "remove-cell" in tags:
        return Part("")
    if "predict" in tags and name == "predict":
        part = guess_form(source, outputs)
        return Part(part + folded(source), {"guesses"})
    if name in live:
        shown = live[name]
        still = outputs_html(outputs, page) if STILL in shown.html else ""
        return Part(shown.html.replace(STILL, still) + folded(source), shown.needs, shown.data)
    if name in NEEDS_KERNEL:
        return Part(note(NEEDS_KERNEL[name].format(**_PLACES)) + folded(source))
    if "check" in tags:
        return Part(note(_check_words(call)))
    shown = outputs_html(marked_reveals(source, outputs), page)
    needs = {"guesses"} if 'class="reveal"' in shown else set()
    if tags & {"hint", "solution"}:
        return Part(shown)
    if "setup" in tags:
        return Part(folded(source, "Setup code") + shown)
    if name == "claim_quiz":
        return Part(claim_card(shown), {"claims"})
    if "widget" in tags and "image/svg+xml" in str(outputs):
        shown += note("The last state of a picture that moves in a running notebook.")
    return Part(code_block(source) + shown, needs)


def folded(source: str, words: str = "Code") -> str:
    """Return code that opens on request.

    >>> folded("x = 1")[:40]
    '<details class="folded"><summary>Code</s'
    """
    return tag("details", tag("summary", words) + code_block(source), class_="folded")


def note(markup: str) -> str:
    """Return a line of the page about itself."""
    return tag("p", markup, class_="note")


def _check_words(call: LastCall | None) -> str:
    name = call.arguments[0] if call and call.arguments else "this exercise"
    code = tag("code", text(f'check("{name}", ...)'))
    return f"A running notebook reads your answer here with {code}."
