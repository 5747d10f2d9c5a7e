"""How many tokens prompts and answers have: one number, a distribution, or a column of a trace."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from kvlab.arithmetic.checks import whole_number
from kvlab.errors import InvalidArgument
from kvlab.serving.trace import is_trace, read_column

MOST_TOKENS = 10**9
FORMS = "an integer, lognormal:MEAN:SIGMA, uniform:LOW:HIGH, or a trace file (.csv, .jsonl)"


@dataclass(frozen=True, slots=True)
class Fixed:
    """Every length is the same."""

    tokens: int

    @property
    def mean(self) -> float:
        """The mean length."""
        return float(self.tokens)

    def draw(self, rng: random.Random, index: int) -> int:
        """Return the length of request number `index`."""
        return self.tokens


@dataclass(frozen=True, slots=True)
class Uniform:
    """Every whole number from `low` to `high`, both included, is as likely as any other."""

    low: int
    high: int

    @property
    def mean(self) -> float:
        """The mean length."""
        return (self.low + self.high) / 2

    def draw(self, rng: random.Random, index: int) -> int:
        """Return the length of request number `index`."""
        return rng.randint(self.low, self.high)


@dataclass(frozen=True, slots=True)
class LogNormal:
    """Many short lengths and few very long ones: `mean` in tokens, `sigma` of the logarithm.

    Rounded to whole tokens, 1 or more.
    """

    mean: float
    sigma: float

    def draw(self, rng: random.Random, index: int) -> int:
        """Return the length of request number `index`."""
        centre = math.log(self.mean) - self.sigma**2 / 2
        return max(1, round(rng.lognormvariate(centre, self.sigma)))


@dataclass(frozen=True, slots=True)
class Column:
    """The lengths that a trace recorded, one after the other, from the start again at its end."""

    tokens: tuple[int, ...]

    @property
    def mean(self) -> float:
        """The mean length."""
        return sum(self.tokens) / len(self.tokens)

    def draw(self, rng: random.Random, index: int) -> int:
        """Return the length of request number `index`."""
        return self.tokens[index % len(self.tokens)]


Lengths = Fixed | Uniform | LogNormal | Column


def parse_lengths(argument: str, text: "str | int | Lengths") -> Lengths:
    """Return the lengths that `text` describes; `argument` names it in errors and in a trace.

    >>> parse_lengths("prompt_tokens", "150"), parse_lengths("output_tokens", "uniform:10:20")
    (Fixed(tokens=150), Uniform(low=10, high=20))
    >>> parse_lengths("prompt_tokens", "lognormal:512:0.8").mean
    512.0
    >>> parse_lengths("prompt_tokens", "normal:5:1")
    Traceback (most recent call last):
    kvlab.errors.InvalidArgument: prompt_tokens='normal:5:1': must be an integer, \
lognormal:MEAN:SIGMA, uniform:LOW:HIGH, or a trace file (.csv, .jsonl)
    """
    if isinstance(text, Lengths):
        return text
    said = str(text).strip()
    kind, *numbers = said.split(":")
    try:
        if said.isascii() and said.lstrip("+-").isdigit():
            return Fixed(_length(argument, int(said)))
        if kind == "uniform" and len(numbers) == 2:
            return _uniform(argument, *(int(number) for number in numbers))
        if kind == "lognormal" and len(numbers) == 2:
            return _lognormal(argument, *(float(number) for number in numbers))
    except InvalidArgument:
        raise
    except ValueError:
        raise InvalidArgument(argument, text, f"must be {FORMS}") from None
    if is_trace(said):
        return Column(tuple(read_column(said, argument)))
    raise InvalidArgument(argument, text, f"must be {FORMS}")


def _length(argument: str, tokens: int) -> int:
    """Return a length that a simulation can count with."""
    if tokens > MOST_TOKENS:
        raise InvalidArgument(argument, tokens, f"must be {MOST_TOKENS:,} tokens or fewer")
    return whole_number(argument, tokens)


def _uniform(argument: str, low: int, high: int) -> Uniform:
    _length(argument, low), _length(argument, high)
    if high < low:
        raise InvalidArgument(argument, f"uniform:{low}:{high}", "LOW must not be above HIGH")
    return Uniform(low, high)


def _lognormal(argument: str, mean: float, sigma: float) -> LogNormal:
    if not (1 <= mean < 10**9 and 0 <= sigma <= 5):
        rule = "MEAN runs from 1 to 10^9 tokens, SIGMA from 0 to 5"
        raise InvalidArgument(argument, f"lognormal:{mean:g}:{sigma:g}", rule)
    return LogNormal(mean, sigma)


def describe(lengths: "Lengths | Sequence[int]") -> str:
    """Return the lengths as a reader would say them.

    >>> describe(Uniform(10, 20))
    '10 to 20 tokens, mean 15'
    """
    if isinstance(lengths, Fixed):
        return f"{lengths.tokens:,} tokens"
    if isinstance(lengths, Uniform):
        return f"{lengths.low:,} to {lengths.high:,} tokens, mean {lengths.mean:,.0f}"
    if isinstance(lengths, LogNormal):
        return f"log-normal, mean {lengths.mean:,.0f} tokens, sigma {lengths.sigma:g}"
    return f"a trace, mean {lengths.mean:,.0f} tokens"  # type: ignore[union-attr]
