"""The plane of a roofline: a machine, the passes on it, both logarithmic axes and their grid."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kvlab.figures import shapes
from kvlab.figures.axes import log_ticks, short_number
from kvlab.figures.frame import MARGIN
from kvlab.figures.measure import text_width


@dataclass(frozen=True)
class Roof:
    """A machine: the FLOPs and the bytes that it does and reads in a second."""

    name: str
    flops_per_second: float
    bytes_per_second: float

    @property
    def ridge(self) -> float:
        """FLOPs a byte at which the slope meets the flat part."""
        return self.flops_per_second / self.bytes_per_second

    def height(self, intensity: float) -> float:
        """Return the FLOP/s of the roof above a place of the x axis."""
        return min(self.flops_per_second, intensity * self.bytes_per_second)


@dataclass(frozen=True)
class Dot:
    """A pass: FLOPs a byte, FLOP/s reached (None: as high as the roof), role and one letter."""

    name: str
    intensity: float
    flops_per_second: float | None = None
    role: str = "weights"
    letter: str = ""


@dataclass(frozen=True)
class Plane:
    """From FLOPs a byte and FLOP/s to pixels; both logarithmic."""

    x: tuple[float, float]
    y: tuple[float, float]
    left: float
    right: float
    top: float
    bottom: float

    def at(self, intensity: float, rate: float) -> tuple[float, float]:
        """Return the pixel of a place on the plane."""
        across = _share(intensity, *self.x) * (self.right - self.left)
        return self.left + across, self.bottom - _share(rate, *self.y) * (self.bottom - self.top)


def _share(value: float, low: float, high: float) -> float:
    return (math.log(value) - math.log(low)) / (math.log(high) - math.log(low))


def plane_for(roof: Roof, dots: Sequence[Dot], top: float, height: float, width: float) -> Plane:
    """Leave room on all sides: one decade beyond ridge and dots, the ceiling near the top."""
    places = [dot.intensity for dot in dots] + [roof.ridge]
    low = 10.0 ** math.floor(math.log10(min(places)) - 0.35)
    high = 10.0 ** math.ceil(math.log10(max(places)) + 0.6)
    rates = [dot.flops_per_second or roof.height(dot.intensity) for dot in dots]
    floor = min([*rates, roof.height(low)]) / 1.6
    ceiling = max([*rates, roof.flops_per_second]) * 3
    return Plane((low, high), (floor, ceiling), MARGIN + 52, width - MARGIN, top, top + height)


def grid(plane: Plane) -> str:
    """Return the thin lines and the numbers of both axes."""
    parts = []
    for rate in log_ticks(*plane.y):
        _, level = plane.at(plane.x[0], rate)
        parts.append(shapes.line(plane.left, level, plane.right, level, faint=True))
        words = short_number(rate)
        parts.append(
            shapes.text(plane.left - 8, level + 4, words, anchor="end", mono=True, quiet=True)
        )
    for intensity in log_ticks(*plane.x):
        spot, _ = plane.at(intensity, plane.y[0])
        parts.append(shapes.line(spot, plane.bottom, spot, plane.bottom + 5, faint=True))
        words = short_number(intensity)
        where = min(max(spot, plane.left), plane.right - text_width(words, mono=True) / 2)
        parts.append(
            shapes.text(where, plane.bottom + 19, words, anchor="middle", mono=True, quiet=True)
        )
    return "".join(parts)
