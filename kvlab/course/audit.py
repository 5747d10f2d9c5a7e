"""The claim audit: every claim on record, recomputed, with a verdict and the reason for it.

Rows lie in `data/audit/<topic>.json`. A row that a chapter shows as a card says {"claim": its id}
and takes the card's words, computation and verdict; it may pick some of the card's numbers, name
a computation of its own, or add to the reason.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Any

from kvlab._paths import data_dir
from kvlab.course.calls import check_expression, evaluate
from kvlab.course.claims import VERDICTS, Claim, load_claims
from kvlab.course.schema import TOPICS, Row, read_rows
from kvlab.errors import InvalidArgument

Number = int | float


@dataclass(frozen=True)
class AuditRow:
    """One audited claim: our words, what it says, how it is recomputed, the verdict and why.

    `card` is the chapter that shows it as a card, "" where none does.
    """

    id: str
    topic: str
    statement: str
    claimed: str
    unit: str
    verdict: str
    why: str
    source: str
    as_of: date
    card: str = ""
    compute: Any = field(default=None, repr=False)
    pick: Any = field(default=None, repr=False)

    def computed(self) -> Number | list[Number] | None:
        """Recompute: a number, a list, or None where `why` says that nothing is counted."""
        if self.compute is None:
            return None
        value = evaluate(self.compute, {})
        if self.pick is None:
            return value
        return [value[i] for i in self.pick] if isinstance(self.pick, list) else value[self.pick]

    def as_json(self) -> dict[str, Any]:
        """Return what `kvlab audit --json` prints for this row.

        >>> audit_rows("gqa")[0].as_json()["computed"]
        2621440
        """
        return {
            "id": self.id,
            "claimed": self.claimed,
            "computed": self.computed(),
            "unit": self.unit,
            "verdict": self.verdict,
            "why": self.why,
        }


def audit_rows(topic: str | None = None, path: Path | None = None) -> tuple[AuditRow, ...]:
    """Return every audited claim, or those of one topic, in the order of the files.

    Raises `InvalidArgument` for an unknown topic, and for a faulty row with file, row and field.

    >>> [row.verdict for row in audit_rows("memory") if row.id == "kv-12-5-percent-of-weights"]
    ['wrong']
    """
    rows = _load(path or data_dir() / "audit")
    if topic is None:
        return rows
    known = tuple(dict.fromkeys(row.topic for row in rows))
    if topic not in known:
        raise InvalidArgument("topic", topic, f"must be one of {', '.join(known)}")
    return tuple(row for row in rows if row.topic == topic)


def count_verdicts(rows: Sequence[AuditRow]) -> dict[str, int]:
    """Return how many rows have each verdict, all verdicts named."""
    return {verdict: sum(row.verdict == verdict for row in rows) for verdict in VERDICTS}


@lru_cache(maxsize=4)
def _load(path: Path) -> tuple[AuditRow, ...]:
    """Read and check each file, in the order of the topics."""
    cards = {claim.id: claim for claim in load_claims()}
    found: dict[str, AuditRow] = {}
    files = {file.stem: file for file in sorted(path.glob("*.json"))}
    for stem in sorted(files, key=lambda name: TOPICS.index(name) if name in TOPICS else -1):
        for row in read_rows(files[stem], "audit"):
            audited = _read_card_row(row, cards) if row.has("claim") else _read_row(row)
            if audited.id in found:
                raise row.fault("id", audited.id, "is the id of another row")
            if audited.topic != stem:
                raise row.fault("topic", audited.topic, f"must be {stem}, as the file is called")
            row.done()
            found[audited.id] = audited
    return tuple(found.values())


def _read_row(row: Row) -> AuditRow:
    """Return a row that stands for itself."""
    compute, no_number = _compute(row), row.text("no_number", "")
    if (compute is None) == (no_number == ""):
        raise row.fault("no_number", no_number, "say why exactly when nothing is computed")
    return AuditRow(
        id=row.text("id"),
        topic=row.choice("topic", TOPICS),
        statement=row.text("statement"),
        claimed=row.text("claimed"),
        unit=row.text("unit", ""),
        verdict=row.choice("verdict", tuple(VERDICTS)),
        why=_reason(row.text("why"), no_number),
        source=row.text("source"),
        as_of=row.day("as_of"),
        compute=compute,
    )


def _read_card_row(row: Row, cards: dict[str, Claim]) -> AuditRow:
    """Return a row that takes over a chapter's card."""
    card = cards.get(row.text("claim"))
    if card is None:
        raise row.fault("claim", row.take("claim"), "is not among the chapters' claims")
    compute, pick = _compute(row), _pick(row)
    if pick is not None and (compute is not None or not card.parts):
        raise row.fault("pick", pick, "is for the numbers of a card that has several")
    reason = " ".join(part for part in (card.condition, row.text("why", "")) if part)
    compute = card.compute if compute is None else compute
    return AuditRow(
        id=card.id,
        topic=row.choice("topic", TOPICS),
        statement=card.statement,
        claimed=card.claimed,
        unit=row.text("unit", card.unit or "; ".join(card.parts)),
        verdict=card.verdict,
        why=_reason(reason, card.no_number if compute is None else ""),
        source=card.source,
        as_of=card.as_of,
        card=card.chapter,
        compute=compute,
        pick=pick,
    )


def _compute(row: Row) -> Any:
    compute = row.take("compute", None)
    return None if compute is None else check_expression(row, "compute", compute, set())


def _pick(row: Row) -> int | list[int] | None:
    pick = row.take("pick", None)
    for index in pick if isinstance(pick, list) else [0 if pick is None else pick]:
        if not isinstance(index, int) or isinstance(index, bool) or index < 0:
            raise row.fault("pick", pick, "must be places in the card's list, counted from 0")
    return pick


def _reason(why: str, no_number: str) -> str:
    return f"{why} Nothing is counted: {no_number}." if no_number else why
