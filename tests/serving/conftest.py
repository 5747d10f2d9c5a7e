"""Schedulers over small pools, and a driver that runs them without a clock and without a model."""

from collections.abc import Callable
from typing import Any

import pytest

from kvlab.arithmetic.plan_deployment import Deployment
from kvlab.arithmetic.roofline import Device
from kvlab.paging import BlockManager
from kvlab.paging.rules import broken_rules
from kvlab.serving.events import Event
from kvlab.serving.limits import Limits
from kvlab.serving.plan import StepPlan
from kvlab.serving.scheduler import Scheduler
from kvlab.serving.sequence import Sequence
from kvlab.serving.step_clock import StepClock


class Driven:
    """A scheduler, what it said, and the sequences that ended."""

    def __init__(self, num_blocks: int, block_size: int, **limits: Any) -> None:
        caching = limits.pop("prefix_caching", True)
        self.manager = BlockManager(num_blocks, block_size, prefix_caching=caching)
        self.events: list[Event] = []
        self.scheduler = Scheduler(self.manager, Limits(**limits), observer=self.events.append)
        self.ended: dict[tuple[int, int], Sequence] = {}
        self.plans: list[list[tuple[tuple[int, int], int]]] = []

    def step(self) -> StepPlan:
        """Take one step; check the pool, and that nobody both ran and was preempted."""
        plan = self.scheduler.schedule()
        batch = [*plan.decodes, *(chunk.seq for chunk in plan.chunks)]
        assert not set(batch) & set(plan.preempted)
        sizes = [(seq.name, 1) for seq in plan.decodes]
        self.plans.append(sizes + [(seq.name, end - start) for seq, start, end in plan.chunks])
        assert sum(n for _, n in self.plans[-1]) <= self.scheduler.limits.max_batched_tokens
        self.scheduler.complete(plan)
        assert broken_rules(self.manager) == []
        self.ended |= {seq.name: seq for seq in self.scheduler.take_ended()}
        return plan

    def run(self, most_steps: int = 10_000) -> "Driven":
        """Step until there is no work; fail rather than loop."""
        for _ in range(most_steps):
            self.ended |= {seq.name: seq for seq in self.scheduler.take_ended()}
            if not self.scheduler.has_work:
                return self
            self.step()
        raise AssertionError(f"still at work after {most_steps} steps")

    def said(self, kind: str) -> list[Event]:
        """Return the events of one kind."""
        return [event for event in self.events if event.kind == kind]


@pytest.fixture
def drive() -> Callable[..., Driven]:
    """Make a scheduler over `num_blocks` blocks of `block_size` tokens; the rest are its limits."""

    def make(num_blocks: int = 64, block_size: int = 4, **limits: Any) -> Driven:
        return Driven(num_blocks, block_size, **limits)

    return make


@pytest.fixture(scope="session")
def clock() -> StepClock:
    """Llama 3.1 8B on one H100."""
    return StepClock(Deployment.of("llama-3.1-8b"), Device.of("H100"))
