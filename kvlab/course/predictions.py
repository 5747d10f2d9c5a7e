"""A learner's guesses: kept until the value is known, then set beside it in words."""

from dataclasses import dataclass
from decimal import Decimal

from kvlab.course.typed import Unread, read_typed
from kvlab.course.typed_units import read_unit, split_per

CLOSE = 1.1
"""A guess within this factor counts as close."""


@dataclass(frozen=True)
class Comparison:
    """A guess beside a value: one sentence, and guess over value (None without a usable guess)."""

    text: str
    ratio: float | None = None


class Guesses:
    """Guesses by key, as typed; a later guess replaces an earlier one.

    >>> guesses = Guesses()
    >>> guesses.remember("cache", "1 GiB")
    '1 GiB'
    >>> guesses.compare("cache", 3 * 2**30, "B").text
    'Your guess: 1 GiB. That is 3 times too low.'
    """

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def remember(self, key: str, text: object) -> str:
        """Keep a guess and return it as kept; an empty one forgets the earlier guess."""
        kept = " ".join(str(text).split())[:80] if text not in (None, ...) else ""
        if kept:
            self._texts[key] = kept
        else:
            self._texts.pop(key, None)
        return kept

    def guess(self, key: str) -> str | None:
        """Return the guess kept under a key, or None."""
        return self._texts.get(key)

    def forget(self) -> None:
        """Forget every guess."""
        self._texts.clear()

    def compare(self, key: str, value: float, unit: str = "") -> Comparison:
        """Set the guess beside a value that is in `unit`; works without a guess too."""
        text = self.guess(key)
        if text is None:
            return Comparison("No guess was made.")
        ratio = _ratio(text, value, unit)
        if ratio is None:
            return Comparison(f"Your guess: {text}. It cannot be set beside the value.")
        return Comparison(f"Your guess: {text}. {in_words(ratio)}", ratio)


def in_words(ratio: float) -> str:
    """Say how far a guess is off; `ratio` is guess over value, above 0.

    >>> in_words(0.25), in_words(1.02)
    ('That is 4 times too low.', 'That is close.')
    """
    if 1 / CLOSE <= ratio <= CLOSE:
        return "That is exact." if ratio == 1 else "That is close."
    factor = ratio if ratio > 1 else 1 / ratio
    side = "high" if ratio > 1 else "low"
    if factor < 1.5:
        return f"That is a little too {side}."
    shown = f"{factor:,.0f}" if factor >= 10 or factor == round(factor) else f"{factor:.1f}"
    return f"That is {shown} times too {side}."


def _ratio(text: str, value: float, unit: str) -> float | None:
    """Return guess over value, or None when they cannot be compared."""
    try:
        typed, asked = read_typed(text), (read_unit(split_per(unit)[0]) or read_unit(""))[0]
        if isinstance(typed, Unread) or not value:
            return None
        spelled = split_per(typed.unit)[0]
        meant = read_unit(spelled) or read_unit(spelled.partition(" ")[0])  # "9 billion tokens"
        units = [u for u in meant if u.family == asked.family] if spelled else [asked]
        if not units and asked.family == "number":
            units = [asked]  # a word for what is counted
        if not units:
            return None
        wanted = Decimal(str(value)) * asked.factor
        ratios = [float(reading * units[0].factor / wanted) for reading in typed.readings]
        usable = [ratio for ratio in ratios if 0 < ratio < float("inf")]
        return min(usable, key=lambda ratio: max(ratio, 1 / ratio)) if usable else None
    except Exception:  # a guess is never worth an error
        return None


GUESSES = Guesses()
"""The guesses of this session."""


def remember(key: str, text: object) -> str:
    """Keep a guess for this session and return it as kept."""
    return GUESSES.remember(key, text)


def compare(key: str, value: float, unit: str = "") -> Comparison:
    """Set this session's guess beside a value that is in `unit`."""
    return GUESSES.compare(key, value, unit)


def not_a_number(text: str) -> str:
    """Return a request for digits where a typed guess holds no number, else "".

    >>> not_a_number("three")
    'A guess needs one number in digits, such as 3; "three" could not be compared.'
    >>> not_a_number("about 3 GiB"), not_a_number("")
    ('', '')
    """
    kept = " ".join(text.split())
    if not kept or not isinstance(read_typed(kept), Unread):
        return ""
    shown = kept if len(kept) <= 40 else kept[:40] + "..."
    return f'A guess needs one number in digits, such as 3; "{shown}" could not be compared.'


def how_far(key: str, shown: str, unit: str = "") -> str:
    """Say how far this session's guess is from a value as it is shown; "" where nobody can say.

    >>> _ = remember("cache", "1 GiB")
    >>> how_far("cache", "2.50 GiB (2.68 GB)")
    'That is 2.5 times too low.'
    """
    value = read_typed(shown.partition(" (")[0])
    if isinstance(value, Unread):
        return ""
    ratio = compare(key, float(value.readings[0]), value.unit or unit).ratio
    return "" if ratio is None else in_words(ratio)
