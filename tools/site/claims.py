"""A claim's card with the reader's verdict: three buttons, then what was recomputed."""

import re

from kvlab.figures.cards import VERDICTS
from tools.site.markup import tag

_ASKED = re.compile(r'<div style="margin-top:10px">Your verdict: [^<]*</div>')
_VERDICT = re.compile(r"<strong>Verdict: (?P<verdict>[^<.]+)\.</strong>")


def claim_card(shown: str) -> str:
    """Return the stored card of a claim with buttons in place of the words that ask.

    A card without its verdict stays as it is.

    >>> claim_card("<b>a claim</b>")
    '<b>a claim</b>'
    """
    found = _VERDICT.search(shown)
    if not found or not _ASKED.search(shown):
        return shown
    buttons = "".join(tag("button", v, type="button", aria_pressed="false") for v in VERDICTS)
    asked = tag("div", tag("span", "Your verdict:") + buttons, class_="verdicts js")
    asked += tag("div", "Your verdict first: holds, only if, or wrong?", class_="nojs")
    asked += tag("p", "", class_="told", role="status")
    shown = _ASKED.sub(lambda _: asked, shown, count=1)
    return tag("div", shown, class_="claim", data_verdict=found["verdict"])
