"""The score by topic as a table: a bar, right of answered, and links to what to read again."""

from collections.abc import Sequence
from html import escape
from pathlib import Path

from kvlab.course.practice import TopicScore
from kvlab.figures import palette
from kvlab.figures.course_map import LINK_CSS, chapter_link
from kvlab.figures.svg import Picture
from kvlab.figures.tables import TABLE_CSS, sheet_html

_BAR = 150


def score_card(
    scores: Sequence[TopicScore], *, title: str = "Score by topic", folder: Path | None = None
) -> Picture:
    """Return a row for each topic; the last answer to each question counts.

    The bar is the bank: filled what is right, hatched what is missed, empty what is not answered.

    >>> score_card([TopicScore("paging", 3, 4, 9, ("06",))], folder=Path("none")).label
    'Score by topic: paging 3 of 4 right, read again 06.'
    """
    rows = "".join(_row(score, folder) for score in scores)
    heads = ("topic", "of its questions", "right", "of answered", "of all", "read again")
    right = ("right", "of answered", "of all")
    head = "".join(f'<th scope="col"{_number(name in right)}>{name}</th>' for name in heads)
    reading = "Filled: right. Striped: missed. Empty: not answered yet."
    body = f'<table class="kv-t"><caption>{escape(title)}</caption><thead><tr>{head}</tr></thead>'
    body += f'<tbody>{rows}</tbody></table><div style="opacity:.74;margin-top:6px">{reading}</div>'
    given = [score for score in scores if score.answered]
    said = "; ".join(_spoken(score) for score in given) or "nothing answered yet"
    return sheet_html(
        body, label=f"{title}: {said}.", css=TABLE_CSS + LINK_CSS, kind="score", fit=True
    )


def _number(numeric: bool) -> str:
    return ' class="n"' if numeric else ""


def _spoken(score: TopicScore) -> str:
    again = f", read again {' '.join(score.reread)}" if score.reread else ""
    return f"{score.topic} {score.right} of {score.answered} right{again}"


def _row(score: TopicScore, folder: Path | None) -> str:
    again = "<br/>".join(chapter_link(number, folder) for number in score.reread) or "\u2013"
    cells = f'<th scope="row">{escape(score.topic)}</th><td>{_bar(score)}</td>'
    shown = str(score.right) if score.answered else "\u2013"
    cells += f'<td class="n">{shown}</td><td class="n">{score.answered}</td>'
    cells += f'<td class="n">{score.in_bank}</td><td>{again}</td>'
    return f"<tr>{cells}</tr>"


def _bar(score: TopicScore) -> str:
    """Draw the questions of a topic: right, missed, not answered."""
    share = _BAR / max(score.in_bank, 1)
    color = palette.ROLES["weights"]
    stripes = f"repeating-linear-gradient(45deg,{color} 0 2px,transparent 2px 6px)"
    parts = ((score.right, color), (score.answered - score.right, stripes))
    inner = "".join(
        f'<span style="display:block;width:{count * share:.1f}px;background:{ground}"></span>'
        for count, ground in parts
    )
    look = f"display:flex;width:{_BAR}px;height:12px;margin-top:4px"
    return f'<div style="{look};border:1px solid rgba(128,128,128,.6)">{inner}</div>'
