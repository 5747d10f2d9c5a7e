"""The bench as pictures: ratio bars with shares of the limit, and growth as curves."""

from __future__ import annotations

from collections.abc import Sequence

from kvlab.bench.aims import MET, MISSED, verdict
from kvlab.bench.growth import Curve
from kvlab.bench.lines import Line, short
from kvlab.figures.curves import Axis, Series, curve_chart
from kvlab.figures.ratio_bars import RatioBar, ratio_bars
from kvlab.figures.svg import Picture

READING = (
    "A bar right of the line is ahead of the peer, left of it behind. A full frame is what the"
    " hardware allows. Hatched: the aim was missed."
)


def bench_picture(lines: Sequence[Line], *, title: str = "kvlab bench") -> Picture:
    """Return the lines that have a ratio or a share of a limit as bars, in their order.

    >>> line = Line("start: x", unit="ms", ours=1.0, peer=3.0, peer_name="y", limit=0.8)
    >>> bench_picture([line]).label
    'start: x: 3x y, 80 %, stated.'
    """
    return ratio_bars([_row(line) for line in drawn(lines)], title=title, reading=READING)


def drawn(lines: Sequence[Line]) -> list[Line]:
    """Return the lines that give a bar: those with a ratio or a share of a limit."""
    return [line for line in lines if line.ratio or line.of_limit]


def _row(line: Line) -> RatioBar:
    ratio, share, said = line.ratio, line.of_limit, verdict(line)
    state = MISSED if said.startswith(MISSED) else MET if said.startswith(MET) else "stated"
    return RatioBar(
        line.work,
        ratio,
        f"{short(ratio)}x {line.peer_name}" if ratio else "no peer",
        share,
        f"{100 * share:.0f} %" if share else "",
        state,
    )


def growth_picture(curve: Curve) -> Picture:
    """Return one curve on logarithmic axes, its exponent at the end.

    >>> growth_picture(Curve("decode", "a step", "context", (1, 10), (0.1, 1.0))).label
    'seconds against context: exponent 1.00 ends at 1.'
    """
    line = Series(f"exponent {curve.exponent:.2f}", curve.xs, curve.seconds, "value")
    return curve_chart(
        [line],
        x=Axis(curve.size, log=True),
        y=Axis("seconds", log=True),
        title=f"{curve.row}: {curve.cost} with {curve.size}",
        height=200,
    )
