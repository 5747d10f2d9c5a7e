"""A run of an engine as one object, the same whether it just happened or was recorded.

What was predicted is computed anew from the plan; what was seen is kept as it was.
"""

from dataclasses import dataclass, replace
from typing import Any

from kvlab.arithmetic.logs.report import LogReport
from kvlab.serving.engines.llamacpp import LlamaCppPlan
from kvlab.serving.engines.machine import Machine
from kvlab.serving.engines.prediction import CellsPrediction, PagedPrediction
from kvlab.serving.engines.readings import Readings
from kvlab.serving.engines.running import Plan, report_of
from kvlab.serving.engines.served import Load
from kvlab.serving.engines.vllm import VllmPlan

PLANS: dict[str, type[VllmPlan] | type[LlamaCppPlan]] = {
    VllmPlan.engine: VllmPlan,
    LlamaCppPlan.engine: LlamaCppPlan,
}


@dataclass(frozen=True)
class EngineRun:
    """One start of an engine, the loads that it served, and where and when that was.

    `log` are its start-up lines, `readings` its metrics before any load, `failure` why it did not
    start. `others_share` is how much of the processor other programs took meanwhile: where it is
    more than a little, times say little.
    """

    name: str
    title: str
    plan: Plan
    machine: Machine
    date: str
    versions: dict[str, str]
    command: tuple[str, ...]
    log: tuple[str, ...]
    readings: Readings | None
    loads: dict[str, Load]
    startup_seconds: float
    others_share: float
    failure: str | None = None
    note: str = ""
    replayed: bool = False

    @property
    def prediction(self) -> PagedPrediction | CellsPrediction:
        """What the formulas say of the plan."""
        return self.plan.predict()

    @property
    def log_text(self) -> str:
        """The start-up lines as a text, for `explain_log`."""
        return "\n".join(self.log)

    @property
    def version(self) -> str:
        """The version of the engine's package."""
        return next(iter(self.versions.values()), "unknown")

    @property
    def says(self) -> str:
        """Whether this is live or replayed, of what, on which machine and when."""
        what = " ".join(next(iter(self.versions.items()), (self.plan.engine, "")))
        if not self.replayed:
            return f"live: {what} on {self.machine.says}"
        return f"replayed: {what}, recorded by us on {self.date} on {self.machine.says}"

    def report(self) -> LogReport:
        """Return the start-up log, every number predicted and explained."""
        return report_of(self.plan, self.log_text)

    def as_replayed(self) -> "EngineRun":
        """Return the run as it is when it comes from a file."""
        return replace(self, replayed=True)

    def agreements(self) -> list["Agreement"]:
        """Return each size that the engine reported beside the predicted one."""
        from kvlab.serving.engines.agreement import agreements

        return agreements(self.plan, self.readings, self.log_text)


@dataclass(frozen=True)
class Agreement:
    """One number as the engine reported it, beside what the formulas say."""

    quantity: str
    reported: float
    predicted: float
    half_step: float = 0.0

    @property
    def agrees(self) -> bool:
        """Whether both are equal, as far as the printed digits go."""
        return abs(self.reported - self.predicted) <= self.half_step + 1e-9

    def to_dict(self) -> dict[str, Any]:
        """Return the pair for a program."""
        return {
            "quantity": self.quantity,
            "reported": self.reported,
            "predicted": self.predicted,
            "agrees": self.agrees,
        }
