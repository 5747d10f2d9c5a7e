"""Claims met on public pages, restated, and recomputed by kvlab's own functions."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Any

from kvlab._paths import data_dir
from kvlab.course.calls import check_expression, evaluate
from kvlab.course.html import box, fold, words
from kvlab.course.schema import TOPICS, Row, read_rows
from kvlab.errors import InvalidArgument

LEARNER_VERDICTS = ("holds", "only if", "wrong")
VERDICTS = {
    "holds": "holds",
    "holds-with-rounding": "holds",
    "conditional": "only if",
    "wrong": "wrong",
    "unverifiable": "only if",
}
"""Verdict of the audit, and the learner's word for it."""


@dataclass(frozen=True)
class Claim:
    """One claim: our words for it, what it says (`claimed`), how it is recomputed, the verdict.

    `parts` names the numbers when several are computed; `condition` says when it holds or why not.
    """

    id: str
    topic: str
    chapter: str
    statement: str
    claimed: str
    verdict: str = field(repr=False)
    condition: str = field(repr=False)
    source: str
    as_of: date
    unit: str = ""
    digits: int = 2
    parts: tuple[str, ...] = ()
    compute: Any = field(default=None, repr=False)
    no_number: str = field(default="", repr=False)

    def computed(self) -> float | list[float] | None:
        """Recompute: a number, a list, or None where the claim holds no number (`no_number`)."""
        return None if self.compute is None else evaluate(self.compute, {})

    @property
    def learner_verdict(self) -> str:
        """The verdict in the learner's words: holds, only if, wrong."""
        return VERDICTS[self.verdict]


def load_claims(path: Path | None = None) -> tuple[Claim, ...]:
    """Return every claim of a folder of JSON files (or of one file), checked.

    Raises `InvalidArgument` naming file, row and field.
    """
    return _load(path or data_dir() / "claims")


def find_claim(claim_id: str) -> Claim:
    """Return a claim by its id; raises `InvalidArgument` when there is none.

    >>> round(find_claim("recompute-quadruples").computed(), 2)
    2.4
    """
    for claim in load_claims():
        if claim.id == claim_id:
            return claim
    raise InvalidArgument("claim_id", claim_id, "is not among the claims")


@lru_cache(maxsize=4)
def _load(path: Path) -> tuple[Claim, ...]:
    """Read and check each file."""
    claims: dict[str, Claim] = {}
    for file in sorted(path.glob("*.json")) if path.is_dir() else [path]:
        for row in read_rows(file, "claims"):
            claim = _read_claim(row)
            if claim.id in claims:
                raise row.fault("id", claim.id, "is the id of another claim")
            claims[claim.id] = claim
    return tuple(claims.values())


def _read_claim(row: Row) -> Claim:
    """Return the claim of one row."""
    compute = row.take("compute", None)
    if compute is not None:
        check_expression(row, "compute", compute, set())
    no_number = row.text("no_number", "")
    if (compute is None) == (no_number == ""):
        raise row.fault("no_number", no_number, "say why exactly when nothing is computed")
    claim = Claim(
        id=row.text("id"),
        topic=row.choice("topic", TOPICS),
        chapter=row.text("chapter"),
        statement=row.text("statement"),
        claimed=row.text("claimed"),
        verdict=row.choice("verdict", tuple(VERDICTS)),
        condition=row.text("condition"),
        source=row.text("source"),
        as_of=row.day("as_of"),
        unit=row.text("unit", ""),
        digits=row.integer("digits", 0, 6, 2),
        parts=row.texts("parts"),
        compute=compute,
        no_number=no_number,
    )
    row.done()
    return claim


def computed_rows(claim: Claim) -> dict[str, str]:
    """Return what was recomputed as names and written numbers.

    >>> computed_rows(find_claim("recompute-quadruples"))
    {'computed': '2.40x'}
    >>> computed_rows(find_claim("only-q-changes"))
    {'nothing to count': 'look at what a step writes'}
    """
    value = claim.computed()
    if value is None:
        return {"nothing to count": claim.no_number}
    values = value if isinstance(value, Sequence) else [value]
    names = claim.parts or ["computed"] * (len(values) == 1) or [f"{i}" for i in range(len(values))]
    return dict(zip(names, (_write(item, claim) for item in values), strict=True))


def _write(value: float, claim: Claim) -> str:
    """Write a number with its unit."""
    number = f"{value:,}" if isinstance(value, int) else f"{value:,.{claim.digits}f}"
    return f"{number}{claim.unit}" if claim.unit in {"x", "%"} else f"{number} {claim.unit}".strip()


@dataclass(frozen=True)
class ClaimCard:
    """A claim to judge: shown first without the answer, which is folded for a static page."""

    claim: Claim

    def judge(self, verdict: str) -> str:
        """Return one line on the learner's verdict, then the condition; never raises."""
        given = " ".join(str(verdict).lower().split())[:20]
        if given not in LEARNER_VERDICTS:
            return f"Not answered yet: say {', '.join(LEARNER_VERDICTS)}."
        ours = self.claim.learner_verdict
        lead = "We agree" if given == ours else f"You said {given}; ours is"
        return f"{lead}: {ours}. {self.claim.condition}"

    @property
    def question(self) -> str:
        """The claim as it is put to the learner."""
        return f"{self.claim.statement} Claimed: {self.claim.claimed}."

    @property
    def answer(self) -> str:
        """The verdict, what was recomputed, and the condition."""
        rows = "; ".join(f"{name}: {value}" for name, value in computed_rows(self.claim).items())
        return f"{self.claim.learner_verdict}. {rows}. {self.claim.condition}"

    def __repr__(self) -> str:
        return f"Claim {self.claim.id}: {self.question}"

    @property
    def folded_answer(self) -> str:
        """The verdict and what was recomputed as HTML, behind one gesture that needs no kernel."""
        rows = "".join(
            f"<li>{words(name)}: <code>{words(value)}</code></li>"
            for name, value in computed_rows(self.claim).items()
        )
        answer = f"{words(self.claim.condition)}<ul style='margin:4px 0 0 1em'>{rows}</ul>"
        heading = f"Verdict: {self.claim.learner_verdict}."
        return fold("Show what was recomputed", box("solution", heading, answer))

    def _repr_html_(self) -> str:
        inner = f"{words(self.question)}<br>Your verdict: {', '.join(LEARNER_VERDICTS)}?"
        return box("open", "A claim you will meet.", inner + self.folded_answer)


def claim_card(claim_id: str) -> ClaimCard:
    """Return the card of a claim; a notebook shows it, `kvlab.widgets.claims` makes it live.

    >>> claim_card("o-n2-to-o-n-per-step").judge("perhaps")
    'Not answered yet: say holds, only if, wrong.'
    """
    return ClaimCard(find_claim(claim_id))
