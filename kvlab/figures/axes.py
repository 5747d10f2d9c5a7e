"""Round numbers for axes, and numbers written short.

>>> ticks(80, 5)
[0.0, 20.0, 40.0, 60.0, 80.0]
"""

import math

_SHORT = ((1e21, "Z"), (1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "K"))


def ticks(end: float, count: int) -> list[float]:
    """Return at most `count` + 1 round numbers from 0 to `end`, evenly spaced by 1, 2 or 5.

    >>> ticks(7, 5)
    [0.0, 2.0, 4.0, 6.0]
    """
    if not end > 0:
        return [0.0]
    power = 10.0 ** math.floor(math.log10(end / count))
    step = next(power * m for m in (1, 2, 5, 10) if end / (power * m) <= count + 1e-9)
    return [round(step * i, 12) for i in range(int(end / step + 1e-9) + 1)]


def log_ticks(low: float, high: float, base: int = 10, count: int = 6) -> list[float]:
    """Return powers of `base` from `low` to `high`, thinned to at most `count` or so.

    A range too short for two powers of ten gets twos and fives as well.

    >>> log_ticks(1, 10_000)
    [1.0, 10.0, 100.0, 1000.0, 10000.0]
    >>> log_ticks(60, 600)
    [100.0, 200.0, 500.0]
    """
    first = math.ceil(math.log(low, base) - 1e-9)
    last = math.floor(math.log(high, base) + 1e-9)
    if base == 10 and last - first < 1:
        fine = (m * 10.0**power for power in range(first - 1, last + 1) for m in (1, 2, 5))
        return [value for value in fine if low <= value * (1 + 1e-9) and value <= high * (1 + 1e-9)]
    every = max(1, math.ceil((last - first + 1) / count))
    return [float(base) ** power for power in range(first, last + 1, every)]


def with_unit(value: float, unit: str) -> str:
    """Return a number with a prefixed unit: 20 MFLOP, 1.5 kFLOP; past 999 Z as powers.

    >>> with_unit(2.243e21, "FLOP"), with_unit(1500, "FLOP"), with_unit(12, "FLOP")
    ('2.243 ZFLOP', '1.5 kFLOP', '12 FLOP')
    """
    short = short_number(value)
    if short[-1].isalpha():
        return f"{short[:-1]} {short[-1].replace('K', 'k')}{unit}"
    return f"{short} {unit}"


def short_number(value: float) -> str:
    """Return a number in at most five characters or so: 1.5K, 20M, 3T, 4P; past 999Z as powers.

    >>> short_number(2500), short_number(0.25), short_number(3e24)
    ('2.5K', '0.25', '3e24')
    """
    if abs(value) >= 1e24:
        return f"{value:.3g}".replace("e+", "e")
    for size, letter in _SHORT:
        if abs(value) >= size:
            return f"{value / size:.4g}{letter}"
    return f"{value:.4g}"
