"""The nouns of a log: a number as it was printed, and all of them from one start of an engine."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from re import Pattern as Regex
from re import compile as compile_regex

from kvlab.arithmetic.units import GB, GIB, KB, KIB, MB, MIB, TB, TIB

NUMBER = r"-?\d{1,24}(?:[,_]\d{3}){0,8}(?:\.\d{1,20})?"
"""A printed number, thousands separators allowed; bounded, so that junk cannot slow a search."""

UNIT = r"[KMGTkmg]?i?B(?:ytes?)?|bytes?"

UNITS = {
    "k": 1000,
    "b": 1, "byte": 1, "bytes": 1,
    "kb": KB, "mb": MB, "gb": GB, "tb": TB,
    "kib": KIB, "mib": MIB, "gib": GIB, "tib": TIB,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fact:
    """One printed value. A size is in bytes, whatever its unit; `scale` leads back to the unit.

    `half_step` is half a unit of the last printed digit, in the unit of `value`: the truth lies
    within it. A whole number without a unit is exact.
    """

    name: str
    value: float | int | str
    printed: str
    line: int = 0
    half_step: float = 0.0
    scale: float = 1.0
    position: int = field(default=0, compare=False)

    @property
    def number(self) -> float | int:
        """The value of a fact that is a number."""
        return 0 if isinstance(self.value, str) else self.value

    @property
    def low(self) -> float:
        """The least value that would have been printed so."""
        return self.number - self.half_step

    @property
    def high(self) -> float:
        """The largest value that would have been printed so."""
        return self.number + self.half_step


@dataclass(frozen=True)
class LinePattern:
    """One kind of line: a literal `needle` to look for first, then the expression.

    Named groups are names of facts; a group `NAME_unit` makes NAME a size.
    """

    needle: str
    expression: str
    is_start: bool = False

    @property
    def regex(self) -> "Regex[str]":
        """The compiled expression; `NUM` and `UNIT` in it stand for the two patterns above."""
        text = self.expression.replace("<NUM>", NUMBER).replace("<UNIT>", UNIT)
        return compile_regex(text)


@dataclass(frozen=True)
class Run:
    """All facts of one start of one engine, in the order of the text."""

    engine: str
    facts: tuple[Fact, ...]

    def all(self, name: str) -> tuple[Fact, ...]:
        """Return every fact of that name."""
        return tuple(fact for fact in self.facts if fact.name == name)

    def last(self, name: str) -> Fact | None:
        """Return the latest fact of that name, or None."""
        found = self.all(name)
        return found[-1] if found else None

    def text(self, name: str) -> str | None:
        """Return the latest text of that name, or None."""
        fact = self.last(name)
        return None if fact is None else str(fact.value)

    def whole(self, name: str) -> int | None:
        """Return the latest value of that name as a whole number, or None."""
        fact = self.last(name)
        return None if fact is None or isinstance(fact.value, str) else int(fact.value)

    def beside(self, fact: Fact, name: str) -> Fact | None:
        """Return the fact of that name printed on the same line as `fact`."""
        return next((f for f in self.facts if f.name == name and f.line == fact.line), None)


TEXTS = frozenset(
    [
        "model",
        "dtype",
        "cache_dtype",
        "k_type",
        "v_type",
        "version",
        "platform",
        "architecture",
        "device",
        "file_name",
    ]
)
"""Facts that stay text even where they look like numbers."""


def make_fact(name: str, text: str, unit: str | None, line: int, position: int) -> Fact:
    """Return the fact printed as `text` with `unit`.

    >>> fact = make_fact("available", "35.34", "GiB", 1, 0)
    >>> fact.value / 2**30, fact.half_step / 2**30
    (35.34, 0.005)
    >>> make_fact("kv_tokens", "463,136", None, 1, 0).value
    463136
    """
    if name in TEXTS or not is_number(text):
        return Fact(name, text, text, line, position=position)
    plain = text.replace(",", "").replace("_", "")
    digits = len(plain.partition(".")[2])
    scale = UNITS[unit.lower()] if unit else 1
    exact = not digits and scale == 1
    value: float | int = int(plain) if exact else float(plain) * scale
    half = 0.0 if exact else scale / 2 / 10**digits
    printed = f"{text} {unit}" if unit else text
    return Fact(name, value, printed, line, half, float(scale), position)


def is_number(text: str) -> bool:
    """Return whether a text is a number, separators aside."""
    plain = text.replace(",", "").replace("_", "").removeprefix("-")
    return plain.replace(".", "", 1).isdigit() and plain.isascii()


def unique(facts: Iterable[Fact]) -> list[Fact]:
    """Return the facts without repeats of the same name and value: ranks often say the same."""
    return list({(fact.name, fact.value): fact for fact in reversed(list(facts))}.values())[::-1]
