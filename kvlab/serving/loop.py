"""The loop around a scheduler: time passes, requests arrive, steps run, numbers are kept.

The engine and the simulator are this loop with two different workers.
"""

from collections.abc import Callable, Iterable

from kvlab.errors import KvlabError
from kvlab.serving.arrivals import Arrivals, Deadlines
from kvlab.serving.metrics import Metrics
from kvlab.serving.plan import StepLoad, StepPlan
from kvlab.serving.quiet import quiet_steps, skip
from kvlab.serving.request import Request
from kvlab.serving.scheduler import Scheduler
from kvlab.serving.sequence import Sequence
from kvlab.serving.worker import ClockWorker, Worker

FollowUp = Callable[[Sequence, float], Request | None]


class Stalled(KvlabError):
    """A scheduler with work to do planned none: a fault of ours, said instead of looping."""


class ServingLoop:
    """Serves requests until all have ended; `now` is in seconds, 0 at the start.

    The time is the worker's: between arrivals nothing waits, the clock jumps. `on_end` is told of
    each sequence that ended, `follow_up` of the last one of a request, and may return another
    request. `skips` lets a worker that allows it take quiet steps together.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        worker: Worker,
        requests: Iterable[Request],
        *,
        follow_up: FollowUp | None = None,
        on_end: Callable[[Sequence], None] | None = None,
        on_step: "Callable[[ServingLoop], None] | None" = None,
        skips: bool = True,
    ) -> None:
        self.scheduler, self.worker, self.follow_up = scheduler, worker, follow_up
        self.on_end, self.on_step = on_end, on_step
        self.arrivals, self.deadlines, self.metrics = Arrivals(requests), Deadlines(), Metrics()
        self.now = 0.0
        self._clock = worker.clock if skips and isinstance(worker, ClockWorker) else None
        if self._clock is not None and self._clock.needs_spans:
            self._clock = None  # each step has to be priced sequence by sequence

    def run(self) -> Metrics:
        """Take steps until there is nothing left to do; return what was measured."""
        while self.step() is not None:
            pass
        return self.metrics

    def step(self) -> StepPlan | None:
        """Take one step, and the quiet ones after it; None when all requests have ended."""
        scheduler = self.scheduler
        self._let_in()
        while not scheduler.has_work:
            if (due := self.arrivals.next_time) is None:
                return None
            self.now = max(self.now, due)
            self._let_in()
        plan = scheduler.schedule()
        self._check(plan)
        for seq in scheduler.take_entered():
            self.metrics.saw_entry(seq, self.now)
        tokens, seconds = self.worker.run(plan)
        self.now += seconds
        scheduler.complete(plan, tokens)
        self._note(seconds)
        if self._clock is not None:
            self._skip_quiet_steps()
        if self.on_step is not None:
            self.on_step(self)
        return plan

    def _let_in(self) -> None:
        """Add the requests that have arrived; abort those whose patience is over."""
        for request in self.arrivals.until(self.now):
            self.scheduler.add(request)
            self.deadlines.watch(request)
        for request_id in self.deadlines.passed(self.now):
            self.scheduler.abort(request_id)
        self._note_ends()

    def _check(self, plan: StepPlan) -> None:
        if not plan.batch and self.scheduler.has_work:
            running, waiting = len(self.scheduler.running), len(self.scheduler.waiting)
            raise Stalled(f"step {plan.step}: {running} run and {waiting} wait, and none got work")

    def _note(self, seconds: float) -> None:
        self.metrics.saw_steps(self.scheduler, seconds)
        for seq in self.scheduler.take_first_tokens():
            self.metrics.saw_first_token(seq, self.now)
        self._note_ends()

    def _note_ends(self) -> None:
        for seq in self.scheduler.take_ended():
            self.metrics.saw_end(seq, self.now)
            if self.on_end is not None:
                self.on_end(seq)
            asks = self.follow_up is not None and seq.ends_request
            following = self.follow_up(seq, self.now) if asks else None
            if following is not None:
                self.arrivals.follow(following)

    def _skip_quiet_steps(self) -> None:
        """Take the steps in which nothing can happen, each at its own price, up to an arrival."""
        steps = quiet_steps(self.scheduler)
        if not steps:
            return
        times = (self.arrivals.next_time, self.deadlines.next_time)
        until = min([due for due in times if due is not None], default=float("inf"))
        running, start, taken = self.scheduler.running, self.now, 0
        batch, context = len(running), sum([seq.num_tokens for seq in running])
        load = StepLoad(batch, batch, batch, context, context)
        while taken < steps and self.now < until:
            self.now += self._clock.seconds(load)  # type: ignore[union-attr]
            load.next_decode()
            taken += 1
        if taken:
            skip(self.scheduler, taken)
            self.metrics.saw_steps(self.scheduler, self.now - start)
