"""The 256 numbers of FP8, each in the place of its byte, and both formats on one ruler.

Bytes are decoded by `kvlab.arithmetic.float8_values`; only placing and writing happen here.
"""

import math

from kvlab.arithmetic.float8_values import FLOAT8_KINDS, Float8Value, float8_table
from kvlab.errors import InvalidArgument
from kvlab.figures import palette, shapes
from kvlab.figures.frame import MARGIN, Sheet
from kvlab.figures.svg import Picture, element, number

_CELL, _ROW, _NAMES = 51.5, 19, 76
_LOW, _HIGH = -16, 16
_LABEL = {"e4m3": "E4M3", "e5m2": "E5M2"}


def float8_map(
    kind: str, *, mark: int | None = None, title: str = "", reading: str = "", scale: float = 1.0
) -> Picture:
    """Return the 256 numbers of "e4m3" or "e5m2": rows by the first 4 bits, columns by the last.

    Pale cells have no leading 1 (subnormal), hatched ones are no number or infinite; `mark`
    outlines a byte.

    >>> float8_map("e4m3", mark=0b0_0101_010).label
    'The 256 bytes of E4M3; 0 0101 010 is marked and means 0.3125.'
    """
    table = float8_table(kind)
    if mark is not None and not 0 <= mark < 256:
        raise InvalidArgument("mark", mark, "must be a byte, from 0 to 255")
    sheet = Sheet(title, reading)
    left, top = MARGIN + _NAMES, sheet.top + 20
    sheet.add(shapes.text(MARGIN, sheet.top + 11, "first 4 bits", size=11, quiet=True))
    for low in range(16):
        middle = left + _CELL * (low + 0.5) - 1
        name = f"{low:04b}"
        column = shapes.text(
            middle, sheet.top + 11, name, size=11, anchor="middle", mono=True, quiet=True
        )
        sheet.add(column)
    for high in range(16):
        row = shapes.text(MARGIN, top + high * _ROW + 13, f"{high:04b}", size=11, mono=True)
        sheet.add(row)
    for entry in table:
        x, y = left + _CELL * (entry.byte % 16), top + _ROW * (entry.byte // 16)
        sheet.add(_number_cell(entry, x, y, marked=entry.byte == mark))
    label = f"The 256 bytes of {_LABEL[kind]}"
    if mark is not None:
        label += f"; {table[mark].pattern} is marked and means {table[mark].value:.6g}"
    return sheet.close(top + 16 * _ROW, label=label + ".", scale=scale)


def _number_cell(entry: Float8Value, x: float, y: float, *, marked: bool) -> str:
    width, height, color = _CELL - 2, _ROW - 2, palette.color_of("key")
    words = short_value(entry.value)
    if not math.isfinite(entry.value):
        cell = shapes.hatch(x, y, width, height, role="wasted", kind="cell")
        ground = shapes.rect(x + 8, y + 2, width - 16, height - 4, fill="ground", radius=2)
        return cell + ground + _words(x, y, words)
    opacity = 0.12 if entry.exponent == 0 else palette.PALE if entry.exponent % 2 else 0.26
    fill = None if marked else opacity
    stroke = "ink" if marked else None
    cell = shapes.rect(
        x, y, width, height, fill=color, opacity=fill, stroke=stroke, radius=3, kind="cell"
    )
    return cell + _words(x, y, words, on=color if marked else None)


def _words(x: float, y: float, words: str, on: str | None = None) -> str:
    size = 10.5 if len(words) < 8 else 9
    middle = x + (_CELL - 2) / 2
    return shapes.text(middle, y + 12.5, words, size=size, anchor="middle", on=on)


def short_value(value: float) -> str:
    """Return an FP8 number in few characters, exact where there is room.

    >>> [short_value(v) for v in (448.0, -0.3125, 2.0**-9, 2.0**-16, 57344.0, float("inf"))]
    ['448', '-0.3125', '2^-9', '2^-16', '57344', 'inf']
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "-inf" if value < 0 else "inf"
    exact = f"{value:.10g}"
    if len(exact.lstrip("-")) <= 6:
        return exact
    fraction, exponent = math.frexp(value)
    if abs(fraction) == 0.5:
        return f"{'-' if value < 0 else ''}2^{exponent - 1}"
    return f"{value:.2e}".replace("e-0", "e-") if abs(value) < 1e-3 else f"{value:.4g}"


def float8_rulers(*, title: str = "", reading: str = "", scale: float = 1.0) -> Picture:
    """Return the positive numbers of both formats as strokes over powers of two.

    >>> float8_rulers().label
    'E4M3: 126 positive numbers from 2^-9 to 448. E5M2: 123 positive numbers from 2^-16 to 57344.'
    """
    sheet, told = Sheet(title, reading), []
    left, right = MARGIN + 60, sheet.width - MARGIN - 16

    def at(value: float) -> float:
        return left + (right - left) * (math.log2(value) - _LOW) / (_HIGH - _LOW)

    y = sheet.top + 4
    for kind, role in zip(FLOAT8_KINDS, ("key", "shared"), strict=True):
        values = sorted(e.value for e in float8_table(kind) if 0 < e.value < math.inf)
        path = "".join(f"M{number(at(value))} {number(y)}v34" for value in values)
        attributes = {"d": path, "fill": "none", "stroke": palette.color_of(role)}
        attributes |= {"stroke-width": "1.3" if kind == "e4m3" else "1.8"}
        sheet.add(element("path", "", attributes))
        sheet.add(shapes.text(MARGIN, y + 21, _LABEL[kind], bold=True))
        ends = f"from {short_value(values[0])} to {short_value(values[-1])}"
        told.append(f"{_LABEL[kind]}: {len(values)} positive numbers {ends}.")
        y += 50
    sheet.add(shapes.line(left, y, right, y, faint=True))
    for exponent in range(_LOW, _HIGH + 1, 4):
        x = at(2.0**exponent)
        words = f"{2**exponent:,}" if exponent >= 0 else f"1/{2**-exponent:,}"
        sheet.add(shapes.line(x, y, x, y + 5, faint=True))
        sheet.add(shapes.text(x, y + 19, words, anchor="middle", mono=True, quiet=True))
    return sheet.close(y + 22, label=" ".join(told), scale=scale)
