"""The units that an answer may carry, as a table for the page.

Spellings are tried on the grader's own reader, so the table holds what it accepts and nothing
else. What the page adds is "per second" and "per token", by the grader's own rules.
"""

import json
from collections.abc import Iterator

from kvlab.course.typed_units import FAMILIES, MONEY, read_unit

_SHORT = ("", "k", "K", "M", "G", "T", "P", "E", "m", "u", "n", "Ki", "ki", "Mi", "Gi", "Ti", "Pi")
_LONG = (
    "kilo", "mega", "giga", "tera", "peta", "exa", "milli", "micro", "nano",
    "kibi", "mebi", "gibi", "tebi", "pebi",
)  # fmt: skip
_BASES = (
    "B", "o", "b", "bit", "bits", "byte", "bytes", "Byte", "Bytes", "octets",
    "FLOP", "FLOPs", "flop", "flops", "FLOPS", "s", "sec", "second", "seconds",
    "min", "minute", "minutes", "h", "hour", "hours",
)  # fmt: skip
_SMALL = ("kb", "mb", "gb", "tb", "kib", "mib", "gib", "tib")
_WORDS = (
    "x", "X", "times", "fold", "-fold", "%", "percent", "per cent", "pct", "thousand", "million",
    "mn", "M", "billion", "bn", "G", "trillion", "T", "K", "k",
)  # fmt: skip


def spellings() -> Iterator[str]:
    """Give every spelling that is tried."""
    yield from (*_WORDS, *MONEY, *_SMALL)
    for prefix in (*_SHORT, *_LONG):
        for base in _BASES:
            yield f"{prefix}{base}"
            yield f"{prefix} {base}".strip()
    for prefix in _SHORT:
        yield from (f"{prefix}bps", f"{prefix}Bps", f"{prefix}bitps")


def unit_table() -> dict[str, dict[str, object]]:
    """Return the units by exact spelling, those that any case will do for, and the families.

    >>> unit_table()["exact"]["GiB"]
    [['bytes', '1073741824', '1000000000']]
    """
    exact: dict[str, object] = {}
    any_case: dict[str, object] = {}
    for spelling in spellings():
        units = read_unit(spelling)
        if not units:
            continue
        rows = [
            [u.family, f"{u.factor:f}".removesuffix(".0"),
             None if u.twin is None else f"{u.twin:f}".removesuffix(".0")]
            for u in units
        ]  # fmt: skip
        exact[spelling] = rows
        cases = (spelling.lower(), spelling.upper(), spelling.title(), spelling.swapcase())
        if all(read_unit(case) == units for case in cases):
            any_case[spelling.lower()] = rows
    return {"exact": exact, "anyCase": any_case, "families": dict(FAMILIES)}


def unit_script() -> str:
    """Return the table as a script."""
    held = json.dumps(unit_table(), ensure_ascii=False, separators=(",", ":"))
    return f"kvlab.unitTable={held};\n"
