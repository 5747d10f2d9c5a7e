"""What the course wants each line to reach; a line that misses it is shown as missed.

A line is found by the start of its `work`. Lines without an aim are stated.
"""

from __future__ import annotations

from dataclasses import dataclass

from kvlab.bench.lines import Line

MET, MISSED, STATED, ABSENT = "met", "missed", "stated", "not measured"
NOISY = 0.5  # spread of our own rounds above which a verdict is doubtful


@dataclass(frozen=True)
class Aim:
    """Bounds on a line: at least this ratio, this share of the limit; at most this cost.

    >>> Aim(ratio=2.5, of_limit=0.8).words("ms")
    '2.5x or more, 80 % of the limit or more'
    """

    ratio: float | None = None
    of_limit: float | None = None
    at_most: float | None = None

    def words(self, unit: str) -> str:
        """Return the aim in words."""
        parts = []
        if self.ratio is not None:
            parts.append("not behind" if self.ratio == 1 else f"{self.ratio:g}x or more")
        if self.of_limit is not None:
            parts.append(f"{100 * self.of_limit:.0f} % of the limit or more")
        if self.at_most is not None:
            parts.append(f"{self.at_most:,g} {unit} or less")
        return ", ".join(parts)


AIMS: dict[str, Aim] = {
    "decode: batch 1": Aim(ratio=2.5, of_limit=0.8),
    "decode-lowbit: batch 1": Aim(ratio=1),
    "prefill: 512": Aim(ratio=1, of_limit=0.7),
    "batch: 1 ": Aim(ratio=1),
    "batch: 8 ": Aim(ratio=1),
    "batch: 32 ": Aim(ratio=1),
    "recompute: without a cache": Aim(of_limit=1 / 1.2),
    "recompute: with a cache": Aim(of_limit=1 / 1.2),
    "start: import kvlab": Aim(at_most=150),
    "start: kvlab size": Aim(at_most=500),
    "slider: kernel": Aim(at_most=10),
    "slider: whole way, median": Aim(at_most=50),
    "slider: whole way, worst": Aim(at_most=150),
    "slider: bytes": Aim(at_most=20_000),
    "open: ": Aim(at_most=6),
    "chapters: all": Aim(at_most=300),
    "chapters: slowest": Aim(at_most=60),
    "allocator: block manager": Aim(ratio=2),
    "allocator: scheduler": Aim(ratio=2),
    "cache-bits: ": Aim(ratio=1),
    "simulator: 20,000,000": Aim(at_most=60),
    "fresh: ": Aim(at_most=120),
    "decode: growth": Aim(at_most=1.1),
    "prefill: growth": Aim(at_most=2.0),
    "batch: growth": Aim(at_most=1.1),
    "allocator: growth": Aim(at_most=1.1),
    "simulator: growth": Aim(at_most=1.1),
    "start: growth": Aim(at_most=1.1),
}
"""The start of a line's `work` -> its aim."""


def aim_of(line: Line) -> Aim | None:
    """Return the aim of a line, None where it is only stated."""
    return next((aim for start, aim in AIMS.items() if line.work.startswith(start)), None)


def verdict(line: Line) -> str:
    """Return "met", "missed", "stated" or "not measured"; "noisy" after it says: measure again.

    >>> verdict(Line("start: import kvlab", unit="ms", ours=90.0))
    'met'
    >>> verdict(Line("prefill: 512 tokens", unit="ms", ours=90.0, peer=80.0, limit=70.0))
    'missed'
    """
    aim = aim_of(line)
    if line.ours is None:
        return ABSENT
    if aim is None:
        return STATED
    said = _said(line, aim)
    return f"{said}, noisy" if line.spread is not None and line.spread > NOISY else said


def _said(line: Line, aim: Aim) -> str:
    checks = [
        (aim.ratio, line.ratio, False),
        (aim.of_limit, line.of_limit, False),
        (aim.at_most, line.ours, True),
    ]
    asked = [(bound, value, at_most) for bound, value, at_most in checks if bound is not None]
    if any(value is None for _, value, _ in asked):
        return ABSENT if all(value is None for _, value, _ in asked) else _judged(asked, True)
    return _judged(asked, False)


def _judged(asked: list[tuple[float, float | None, bool]], partly: bool) -> str:
    known = [(bound, value, at_most) for bound, value, at_most in asked if value is not None]
    held = all(value <= bound if at_most else value >= bound for bound, value, at_most in known)
    if not held:
        return MISSED
    return f"{MET} in part" if partly else MET
