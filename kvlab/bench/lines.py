"""One line of the bench: what was measured, beside what, and how far from the limit.

A number that could not be had is None, and `note` says why; nothing is made up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from kvlab.bench.timing import Times
from kvlab.errors import InvalidArgument

FIELDS = (
    "work", "ours", "peer", "peer_name", "ratio", "limit", "of_limit", "spread", "unit", "note",
)  # fmt: skip
"""The keys of a line in JSON, in their order."""

PER_SECOND = "/s"
"""A unit that ends so is a rate, where more is better; all others are costs."""


@dataclass(frozen=True)
class Line:
    """One line; `work` starts with the name of its row.

    ours, peer, limit: medians in `unit`. ratio: how many times better ours is than the peer's,
    above 1 ahead. limit: what the hardware or the rule allows; of_limit: the share of it reached,
    1 at the limit. spread: (slowest - fastest) / median of our own rounds.

    >>> Line("decode: x", unit="ms a token", ours=10.0, peer=25.0, peer_name="y").to_dict()["ratio"]
    2.5
    """

    work: str
    unit: str
    ours: float | None = None
    peer: float | None = None
    peer_name: str = ""
    limit: float | None = None
    spread: float | None = None
    note: str = ""

    @property
    def row(self) -> str:
        """Return the name of the row that this line belongs to."""
        return self.work.partition(":")[0]

    @property
    def ratio(self) -> float | None:
        """Return how many times better ours is than the peer's."""
        return self._better(self.peer, self.ours)

    @property
    def of_limit(self) -> float | None:
        """Return the share of the limit that ours reaches."""
        return self._better(self.limit, self.ours)

    def _better(self, other: float | None, ours: float | None) -> float | None:
        if not other or not ours:
            return None
        return ours / other if self.unit.endswith(PER_SECOND) else other / ours

    def to_dict(self) -> dict[str, Any]:
        """Return the ten fields as plain data, the row's name first in `work`."""
        found = asdict(self) | {"ratio": self.ratio, "of_limit": self.of_limit}
        return {name: found[name] for name in FIELDS}


def read_line(found: Mapping[str, Any]) -> Line:
    """Return a line from its JSON; raises `InvalidArgument` for other keys or types.

    >>> read_line(Line("start: import kvlab", unit="ms", ours=3.0).to_dict()).ours
    3.0
    """
    if tuple(found) != FIELDS:
        raise InvalidArgument("line", list(found), f"must have the keys {', '.join(FIELDS)}")
    for name in ("work", "peer_name", "unit", "note"):
        if not isinstance(found[name], str):
            raise InvalidArgument(name, found[name], "must be text")
    for name in ("ours", "peer", "ratio", "limit", "of_limit", "spread"):
        if isinstance(found[name], bool) or not isinstance(found[name], int | float | None):
            raise InvalidArgument(name, found[name], "must be a number or null")
    return Line(**{name: found[name] for name in FIELDS if name not in ("ratio", "of_limit")})


def compared(
    work: str,
    unit: str,
    ours: Times,
    peers: Mapping[str, Times],
    *,
    scale: float = 1.0,
    limit: float | None = None,
    note: str = "",
) -> Line:
    """Return the line of one comparison: the best of the peers stands beside ours.

    Values are multiplied by `scale`; `limit` is in the unit already. The other peers' medians
    stand in the note.

    >>> compared("start: x", "ms", Times((0.01,)), {"a": Times((0.03,)), "b": Times((0.02,))},
    ...          scale=1000).note
    'a 30'
    """
    pick = max if unit.endswith(PER_SECOND) else min
    best = pick(peers, key=lambda name: peers[name].median) if peers else ""
    others = [
        f"{name} {short(scale * times.median)}" for name, times in peers.items() if name != best
    ]
    return Line(
        work,
        unit,
        ours=scale * ours.median,
        peer=scale * peers[best].median if peers else None,
        peer_name=best,
        limit=limit,
        spread=ours.spread,
        note=joined([note, "; ".join(others)]),
    )


def joined(parts: Iterable[str]) -> str:
    """Return the parts that say something, with semicolons between them."""
    return "; ".join(part for part in parts if part)


def short(value: float) -> str:
    """Return a number in three figures.

    >>> short(0.012345), short(1234.5), short(2.0)
    ('0.0123', '1,230', '2')
    """
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{rounded:g}"
