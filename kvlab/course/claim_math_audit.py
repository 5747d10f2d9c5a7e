"""What rows of the claim audit need beyond the formulas: units, parts, shares and slots."""

from collections.abc import Callable, Sequence
from typing import Any

from kvlab.arithmetic.quantized_bytes import reduction
from kvlab.arithmetic.units import GB, GIB, KIB, MB, MIB
from kvlab.errors import InvalidArgument
from kvlab.paging.waste import blocks_for, unused_slots, wasted_share

UNITS = {"KiB": KIB, "MiB": MIB, "GiB": GIB, "MB": MB, "GB": GB}


def in_unit(num_bytes: int, unit: str) -> float:
    """Return bytes in a unit.

    >>> in_unit(327_680, "KiB"), in_unit(2_684_354_560, "GB")
    (320.0, 2.68435456)
    """
    return num_bytes / unit_bytes(unit)


def unit_bytes(unit: str) -> int:
    """Return the bytes of one KiB, MiB, GiB, MB or GB.

    >>> unit_bytes("GiB"), unit_bytes("GB")
    (1073741824, 1000000000)
    """
    if unit not in UNITS:
        raise InvalidArgument("unit", unit, f"must be one of {', '.join(UNITS)}")
    return UNITS[unit]


def item(values: Sequence[float], index: int) -> float:
    """Return one number of a list, counted from 0.

    >>> item([92, 11], 1)
    11
    """
    if not 0 <= index < len(values):
        raise InvalidArgument("index", index, f"must be from 0 to {len(values) - 1}")
    return values[index]


def whole(value: float) -> int:
    """Return the whole part: of a request, a fraction is no request.

    >>> whole(11.6)
    11
    """
    return int(value // 1)


def printed(value: float, digits: int) -> float:
    """Return the number as a program prints it with so many digits.

    >>> printed(0.125, 2), printed(0.25, 2)  # Python rounds halves to even
    (0.12, 0.25)
    """
    return float(f"{value:.{digits}f}")


def percent(part: float, of: float) -> float:
    """Return part over the whole, in percent.

    >>> percent(8, 32)
    25.0
    """
    return 100 * part / of


def percent_less(before: float, after: float) -> float:
    """Return by how many percent `after` is less than `before`.

    >>> round(percent_less(389_120, 69_120), 1)
    82.2
    """
    return 100 * reduction(before, after)


def blocks_and_unused(seq_len: int, block_size: int) -> list[int]:
    """Return the blocks of a sequence, and their slots without a token.

    >>> blocks_and_unused(500, 16)
    [32, 12]
    """
    return [blocks_for(seq_len, block_size), unused_slots(seq_len, block_size)]


def slots_and_percent_wasted(seq_lens: list[int], block_size: int) -> list[float]:
    """Return the slots without a token of all sequences, and their share in percent.

    A reservation is one block as long as the longest sequence allowed.

    >>> [round(value, 2) for value in slots_and_percent_wasted([500, 2000, 100], 16)]
    [24, 0.91]
    """
    unused = sum(unused_slots(seq_len, block_size) for seq_len in seq_lens)
    return [unused, 100 * wasted_share(seq_lens, block_size)]


ALL: tuple[Callable[..., Any], ...] = (
    in_unit,
    item,
    whole,
    printed,
    percent,
    percent_less,
    blocks_and_unused,
    slots_and_percent_wasted,
)
