"""What to say about slips that any question can meet: units mixed up, forgotten or unknown."""

from collections.abc import Callable, Sequence
from decimal import Decimal

from kvlab.course.typed_units import FAMILIES, Unit

_SIZES = [Decimal(base) ** power for base in (1000, 1024) for power in (1, 2, 3, 4)]
_SCALED = {"bytes", "bits", "bytes/s", "bits/s", "flop", "flop/s", "seconds"}


def misreading(
    number: Decimal, units: Sequence[Unit], right_if: Callable[[Decimal], bool], *, bare: bool
) -> tuple[str, str] | None:
    """Return (name, sentence) of the unit slip that explains a wrong number, or None.

    `right_if(value)` says whether a value in base units would have been right.
    """
    unit = units[0]
    if unit.twin is not None and right_if(number * unit.twin):
        return "gb-for-gib", (
            "The number fits the other kind of prefix: GB vs GiB. "
            "1 GiB is 2^30 bytes, 1 GB is 10^9 bytes; the same holds for KiB and kB, MiB and MB."
        )
    if unit.family in _SCALED:
        if bare and any(right_if(number * size) for size in _SIZES):
            return "unit-missing", "Say the unit: the number alone is not the number of base units."
        if any(right_if(number * size) or right_if(number / size) for size in _scales(unit)):
            return "wrong-prefix", "The digits fit, the prefix does not: check kilo, mega and giga."
    if unit.family in {"bytes", "bytes/s"} and right_if(number * unit.factor / 8):
        return "bits-for-bytes", "Off by a factor of 8: are these bits or bytes?"
    if unit.family == "number" and number and right_if(unit.factor / number):
        return "upside-down", "Upside down: which of the two is divided by the other?"
    if number < 0 and right_if(-number * unit.factor):
        return "sign", "The sign is wrong: the answer is not a negative number."
    return None


def _scales(unit: Unit) -> list[Decimal]:
    """Return the sizes that would move a number to another prefix of the same kind."""
    return [size * unit.factor for size in _SIZES] + [size / unit.factor for size in _SIZES]


def other_family(typed: str, asked: str) -> str:
    """Say that the unit belongs to another kind of quantity.

    >>> other_family("bits", "bytes")
    'A small b means bits, 8 to a byte; the question asks for an amount of memory in bytes.'
    """
    wanted = FAMILIES[asked]
    if typed.startswith("bits") and asked.startswith("bytes"):
        return f"A small b means bits, 8 to a byte; the question asks for {wanted}."
    return f"The unit says {FAMILIES[typed]}; the question asks for {wanted}."


def unknown_unit(text: str, asked: str) -> str:
    """Say that a unit is not known; the text is cut and never shown as markup."""
    shown = text if len(text) <= 24 else text[:24] + "..."
    return (
        f'Not answered yet: "{shown}" is not a unit known here; '
        f"the question asks for {FAMILIES[asked]}."
    )
