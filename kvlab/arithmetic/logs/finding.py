"""What a prediction says of one printed number: a value, how exact it can be, and a verdict."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from kvlab.arithmetic.logs.facts import Fact

EXACT, ROUNDED, DIFFERS = "equal", "equal within rounding", "differs"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A predicted value; the printed inputs it rests on allow anything from `low` to `high`."""

    value: float
    low: float
    high: float
    rule: str

    @classmethod
    def exactly(cls, value: float, rule: str) -> "Estimate":
        """Return an estimate that rests on exact inputs alone."""
        return cls(value, value, value, rule)

    @classmethod
    def over(cls, fact: Fact, formula: "Callable[[float], float]", rule: str) -> "Estimate":
        """Return the estimate `formula(fact)` with the bounds that the printed digits leave."""
        ends = formula(fact.low), formula(fact.high)
        return cls(formula(fact.number), min(ends), max(ends), rule)

    def fits(self, fact: Fact) -> bool:
        """Return whether both can be true: the two intervals overlap."""
        slack = 1e-9 * max(abs(self.value), abs(fact.number))
        return self.low - slack <= fact.high and fact.low <= self.high + slack


@dataclass(frozen=True, slots=True)
class Finding:
    """One printed number, what was predicted for it and by which rule, and why they may differ."""

    quantity: str
    fact: Fact
    estimate: Estimate
    reasons: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """`equal`, `equal within rounding` or `differs`."""
        if not self.estimate.fits(self.fact):
            return DIFFERS
        return EXACT if self.estimate.value == self.fact.number else ROUNDED

    @property
    def relative_error(self) -> float:
        """(predicted - printed) / printed; 0 where both are 0."""
        printed = self.fact.number
        gap = self.estimate.value - printed
        return gap / printed if printed else (0.0 if not gap else float("inf"))

    def because(self, *reasons: str) -> "Finding":
        """Return the finding with more reasons."""
        return replace(self, reasons=(*self.reasons, *reasons))

    def to_dict(self) -> dict[str, Any]:
        """Return what `--json` prints of it; sizes in bytes."""
        return {
            "quantity": self.quantity,
            "line": self.fact.line,
            "printed": self.fact.printed,
            "reported": self.fact.number,
            "predicted": self.estimate.value,
            "predicted_low": self.estimate.low,
            "predicted_high": self.estimate.high,
            "relative_error": self.relative_error,
            "verdict": self.verdict,
            "rule": self.estimate.rule,
            "reasons": list(self.reasons),
        }


def best(quantity: str, fact: Fact, estimates: Iterable[Estimate]) -> Finding:
    """Return the finding of the first estimate that fits, or of the first one when none does."""
    found = [Finding(quantity, fact, estimate) for estimate in estimates]
    return next((f for f in found if f.verdict != DIFFERS), found[0])
