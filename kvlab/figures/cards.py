"""Boxes of words and numbers: readouts, predictions, claims, feedback and progress, as HTML.

They speak in ink: a sign and a word tell right from wrong, because the colours of the course keep
their one meaning. They only show what they are given; judging an answer is for `kvlab.course`.
"""

from collections.abc import Mapping, Sequence
from html import escape

from kvlab.errors import InvalidArgument
from kvlab.figures import palette
from kvlab.figures.svg import Picture
from kvlab.figures.tables import MONO, readout_html, sheet_html

FEEDBACK: dict[str, str] = {
    "right": "\u2713 Right",
    "wrong": "\u2717 Not yet",
    "open": "\u25cb Not answered yet",
    "hint": "Hint",
    "solution": "Worked solution",
    "note": "Note",
    "error": "\u2717 This did not work",
}
"""Kinds of feedback and the words they open with."""

VERDICTS: dict[str, str] = {"holds": "\u2713", "only if": "\u25d0", "wrong": "\u2717"}
"""Verdicts on a claim and the sign of each."""

_SIGNS = "\u2713\u2717\u25cb "
_LINE = "rgba(128,128,128,.7)"


def _chip(words: str, *, loud: bool) -> str:
    """A word in a box: filled with ink where it asks for attention, outlined where all is well."""
    ink = "background:var(--kv-ink);color:var(--kv-ground)" if loud else "color:inherit"
    look = f"{ink};border:1px solid var(--kv-ink);border-radius:4px;padding:0 8px"
    return f'<span style="{look};font-weight:600;white-space:nowrap">{escape(words)}</span>'


def _small(words: str) -> str:
    return f'<div style="opacity:.74">{escape(words)}</div>'


def paragraphs(words: str) -> str:
    """Return text as escaped paragraphs: a blank line starts a new one, backticks mark code.

    >>> paragraphs("use `n_kv`")
    '<p style="margin:4px 0">use <code>n_kv</code></p>'
    """
    made = []
    for block in words.strip().split("\n\n"):
        pieces = escape(block).replace("\n", "<br/>").split("`")
        if len(pieces) % 2 == 0:
            pieces[-2:] = ["`".join(pieces[-2:])]
        shown = "".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(pieces))
        made.append(f'<p style="margin:4px 0">{shown}</p>')
    return "".join(made)


def readout(rows: Mapping[str, str], *, title: str = "", scale: float = 1.0) -> Picture:
    """Return names and numbers in two columns, the numbers in monospace.

    >>> readout({"per token": "320 KiB"}).label
    'per token 320 KiB.'
    """
    head = f'<div style="font-weight:600;margin-bottom:8px">{escape(title)}</div>' if title else ""
    spoken = ", ".join(f"{name} {value}" for name, value in rows.items())
    label = f"{title}: {spoken}." if title else f"{spoken}."
    return sheet_html(head + readout_html(rows), label=label, scale=scale, kind="readout", fit=True)


def feedback(kind: str, words: str, *, heading: str = "", scale: float = 1.0) -> Picture:
    """Return a box of feedback; `kind` is right, wrong, open, hint, solution, note or error.

    >>> feedback("wrong", "The factor 2 is for keys and values.").label
    'Not yet: The factor 2 is for keys and values.'
    """
    if kind not in FEEDBACK:
        raise InvalidArgument("kind", kind, f"must be one of {', '.join(FEEDBACK)}")
    opening = heading or FEEDBACK[kind]
    weight = 4 if kind in ("right", "wrong", "error") else 1
    edge = f"border-left:{weight}px solid var(--kv-ink);padding-left:12px"
    body = f'<div style="{edge}"><strong>{escape(opening)}</strong>{paragraphs(words)}</div>'
    return sheet_html(
        body, label=f"{opening.lstrip(_SIGNS)}: {words}", scale=scale, kind=f"feedback-{kind}"
    )


def prediction(
    question: str,
    *,
    guess: str | None = None,
    value: str | None = None,
    remark: str = "",
    measured: bool = False,
    no_guess: str = "none made",
    scale: float = 1.0,
) -> Picture:
    """Return a guess beside the value; either may be missing, as before a look or without a guess.

    The value is called computed, or `measured`; `no_guess` stands where there is no guess.

    >>> prediction("How many bytes?", guess="1 GiB", value="2.50 GiB").label
    'How many bytes? Your guess: 1 GiB. Computed: 2.50 GiB.'
    """
    shown_guess, shown_value = guess or no_guess, value or "not shown yet"
    kind = "Result" if value is None else "Measured" if measured else "Computed"
    cells = ""
    for name, words, there, stroke in (
        ("Your guess", shown_guess, guess is not None, "dashed"),
        (kind, shown_value, value is not None, "solid"),
    ):
        border = f"2px {stroke} var(--kv-ink)" if there else f"1px dotted {_LINE}"
        box = f"border:{border};border-radius:4px;padding:6px 14px;min-width:11em"
        size = f"font-size:1.35em;{MONO}" if there else "opacity:.74;line-height:1.9"
        number = f'<div style="{size}">{escape(words)}</div>'
        cells += f'<div style="{box}">{_small(name)}{number}</div>'
    head = f'<div style="font-weight:600;margin-bottom:10px">{escape(question)}</div>'
    body = head if question else ""
    body += f'<div style="display:flex;gap:12px;flex-wrap:wrap">{cells}</div>'
    body += f'<div style="margin-top:8px">{paragraphs(remark)}</div>' if remark else ""
    label = f"{question} Your guess: {shown_guess}. {kind}: {shown_value}.".lstrip()
    return sheet_html(body, label=label, scale=scale, kind="prediction", fit=True)


def claim(
    claim_text: str,
    *,
    source: str,
    verdict: str | None = None,
    learner: str | None = None,
    computed: Mapping[str, str] | None = None,
    condition: str = "",
    scale: float = 1.0,
) -> Picture:
    """Return a claim card; while `verdict` is None it only asks, then it shows the recomputation.

    Verdicts are holds, only if, wrong. `computed` pairs a name with a number and its unit.
    """
    for name, given in (("verdict", verdict), ("learner", learner)):
        if given is not None and given not in VERDICTS:
            raise InvalidArgument(name, given, f"must be one of {', '.join(VERDICTS)}")
    body = _small("A claim you will meet")
    quote = "margin:6px 0;font-size:1.15em;border:0;padding:0;color:inherit"
    body += f'<blockquote style="{quote}">\u201c{escape(claim_text)}\u201d</blockquote>'
    body += _small(source)
    if verdict is None:
        asked = " \u00b7 ".join(VERDICTS)
        body += f'<div style="margin-top:10px">Your verdict: {asked}?</div>'
        return sheet_html(body, label=f"Claim: {claim_text}", scale=scale, kind="claim")
    sign = f"{VERDICTS[verdict]} {verdict}"
    yours = f" You said: {escape(learner)}." if learner else ""
    body += f'<div style="margin:12px 0 8px">{_chip(sign, loud=verdict != "holds")}{yours}</div>'
    body += readout_html(computed or {}) + (paragraphs(condition) if condition else "")
    label = f"Claim: {claim_text} Verdict: {verdict}. {condition}"
    return sheet_html(body, label=label.strip(), scale=scale, kind="claim")


def checklist(
    rows: Sequence[tuple[str, str, bool, str]], *, title: str = "", scale: float = 1.0
) -> Picture:
    """Return rows of (name, value, whether it is well, what to do), as an environment check."""
    cells = []
    for name, value, well, todo in rows:
        mark = _chip("ok", loud=False) if well else _chip("to do", loud=True)
        tail = f'<div style="grid-column:3;opacity:.85">{escape(todo)}</div>' if todo else ""
        shown = f'<div style="{MONO};overflow-wrap:anywhere">{escape(value)}</div>'
        cells.append(f'<div>{mark}</div><div style="opacity:.74">{escape(name)}</div>{shown}{tail}')
    head = f'<div style="font-weight:600;margin-bottom:10px">{escape(title)}</div>' if title else ""
    grid = "display:grid;grid-template-columns:max-content max-content 1fr;gap:6px 14px"
    missing = sum(not well for *_, well, _ in rows)
    label = f"{title or 'Checklist'}: {len(rows) - missing} of {len(rows)} are well."
    body = f'{head}<div style="{grid}">{"".join(cells)}</div>'
    return sheet_html(body, label=label, scale=scale, kind="checklist")


def progress(done: int, total: int, *, doing: str) -> Picture:
    """Return a progress bar with its counts in words.

    >>> progress(3, 12, doing="training").label
    'training: 3 of 12'
    """
    label = f"{doing}: {done} of {total}"
    share = 100 * done / total if total else 0
    track = "height:8px;border-radius:4px;background:rgba(128,128,128,.2);margin-top:6px"
    bar = f"height:8px;border-radius:4px;width:{share:.1f}%;background:{palette.ROLES['weights']}"
    meter = f'role="progressbar" aria-valuenow="{done}" aria-valuemin="0" aria-valuemax="{total}"'
    body = f'<div>{escape(label)}</div><div {meter} aria-label="{escape(doing)}" style="{track}">'
    body += f'<div style="{bar}"></div></div>'
    return sheet_html(body, label=label, kind="progress")
