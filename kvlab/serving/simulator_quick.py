"""The simulation of `simulator`, several times faster, where nothing but lengths matters.

Requests of one sample whose tokens nobody knows share no block, so blocks are counted, not named,
and all that decode move on together. Looks and totals are the scheduler's, to the last bit. Left
out: priorities, prefixes, samples, timeouts, pipeline stages, layers with windows.
"""

from kvlab.serving.limits import Limits
from kvlab.serving.plan import triangle
from kvlab.serving.queue import FCFS
from kvlab.serving.simulator_counted import Counted, NotQuick
from kvlab.serving.simulator_gauges import Gauges
from kvlab.serving.simulator_price import LinePrice
from kvlab.serving.simulator_traffic import Outcome, Traffic
from kvlab.serving.step_clock import StepClock
from kvlab.serving.watch import BLOCKS, BUDGET, NOBODY, SEATS, Watch

NEVER = float("inf")


def quick_run(
    traffic: Traffic, clock: StepClock, *, num_blocks: int, limits: Limits, max_looks: int
) -> Outcome | None:
    """Serve the requests as `scheduled_run` does; None where only the scheduler itself can do it.

    >>> from kvlab.arithmetic.plan_deployment import Deployment
    >>> from kvlab.arithmetic.roofline import Device
    >>> clock = StepClock(Deployment.of("llama-3.1-8b"), Device.of("H100"))
    >>> eight = Traffic([0.0] * 8, [512] * 8, [100] * 8, [100] * 8)
    >>> run = quick_run(eight, clock, num_blocks=1000, limits=Limits(), max_looks=99)
    >>> run.requests_finished, run.looks[-1].step, round(run.looks[-1].seconds, 2)
    (8, 100, 0.55)
    """
    plain = limits.policy == FCFS and limits.max_waiting is None and limits.max_seq_len is None
    plain = plain and limits.host_blocks is None and limits.chunked_prefill
    if not plain or len(clock.stages) > 1 or clock.needs_spans:
        return None
    try:
        return _Server(traffic, clock, num_blocks, limits, Watch(max_looks=max_looks)).run()
    except NotQuick:
        return None


class _Server(Counted):
    """The loop around the counted schedule: requests arrive, steps take time, looks are kept."""

    def __init__(
        self,
        traffic: Traffic,
        clock: StepClock,
        num_blocks: int,
        limits: Limits,
        watch: Watch,
    ) -> None:
        super().__init__(traffic, clock.block_size, num_blocks, limits)
        self.price, self.gauges = LinePrice(clock), Gauges(traffic.times, num_blocks, watch)
        self.times = [*traffic.times, NEVER]
        self.now, self.coming = 0.0, 0

    def run(self) -> Outcome:
        """Take steps until nothing is left to do."""
        gauges, times, watch = self.gauges, self.times, self.gauges.watch
        while True:
            if times[self.coming] <= self.now:
                self._let_in()
            while not (self.running or self.waiting):
                if times[self.coming] == NEVER:
                    return gauges.told(self.recomputed, self.swapped_out)
                self.now = max(self.now, times[self.coming])
                self._let_in()
            self._take_step()
            settled = self.is_settled()
            if settled and self.free >= 2 * len(self.running):
                self._take_quiet_steps()
            over = not (self.running or self.waiting)
            gauges.preemptions = self.preemptions
            if over or self.now >= watch.due:
                running, waiting = len(self.running), len(self.waiting)
                gauges.look(self.step, self.now, running, waiting, self.free, self._waits_for())
            if settled:
                self._take_settled_steps()

    def _let_in(self) -> None:
        while self.times[self.coming] <= self.now:
            if not self.add(self.coming):
                self.gauges.saw_refused(self.now)
            self.coming += 1

    def _take_step(self) -> None:
        """Take a planned step: its time passes, then its tokens are there."""
        decoding = self.plan()
        chunks, gauges = self.chunks, self.gauges
        context = self.born_sum + decoding * (self.step - 1)
        if chunks or self.moved or not decoding:
            seconds = self._seconds(decoding, context)
            batch = decoding + len(chunks)
        else:
            seconds, batch = self.price.decode(decoding, context), decoding
        self.now = now = self.now + seconds
        gauges.busy += seconds
        gauges.batch_seconds += seconds * batch
        if chunks:
            for i in self.complete_chunks():
                gauges.saw_first_token(i, now)
        if self.failed:
            gauges.saw_outgrown(self.failed, now)
        if self.ends and self.ends[0][0] <= self.step:
            for i in self.finish():
                gauges.saw_end(i, self.finals[i] - self.prompts[i], now)

    def _seconds(self, decoding: int, context: int) -> float:
        """Return the time of a step with chunks or moves; `context` is what decodes read."""
        batch, tokens, emitting, pairs = decoding, decoding, decoding, context
        for i, start, end in self.chunks:
            batch, tokens = batch + 1, tokens + end - start
            emitting += end == self.tokens[i]
            pairs += triangle(end) - triangle(start)
            context += end
        return self.price.seconds(batch, tokens, emitting, pairs, context, self.moved)

    def _take_quiet_steps(self) -> None:
        """Take the steps in which nothing can happen, as `quiet` does, up to an arrival."""
        batch, start, until = len(self.running), self.now, self.times[self.coming]
        steps = min(self.next_end() - self.step - 1, (self.free // batch - 1) * self.size)
        if steps > 0 and start < until:
            context = self.born_sum + batch * self.step
            taken, self.now = self.price.decodes(batch, context, start, steps, until)
            self._skip(taken)
            seconds = self.now - start
            self.gauges.busy += seconds
            self.gauges.batch_seconds += seconds * batch

    def _skip(self, steps: int) -> None:
        """Bring all that run so many tokens further; none ends, and each finds its blocks."""
        cycles, rest = divmod(steps, self.size)
        first = self.step + 1
        needed = sum([self.due[number % self.size] for number in range(first, first + rest)])
        self.free -= cycles * len(self.running) + needed
        self.step += steps

    def _take_settled_steps(self) -> None:
        """Take step after step while all that run decode, find their blocks, and none ends."""
        gauges, decode, due, size = self.gauges, self.price.decode, self.due, self.size
        batch, waiting, waits_for = len(self.running), len(self.waiting), self._waits_for()
        until, last, watch = self.times[self.coming], self.next_end() - 1, gauges.watch
        born_sum, crowd = self.born_sum, 2 * batch
        while self.now < until and self.step < last:
            needed = due[(self.step + 1) % size]
            if needed > self.free:
                return
            seconds = decode(batch, born_sum + batch * self.step)
            self.step += 1
            self.free -= needed
            self.now += seconds
            gauges.busy += seconds
            gauges.batch_seconds += seconds * batch
            if self.free >= crowd:
                self._take_quiet_steps()
            if self.now >= watch.due:
                gauges.look(self.step, self.now, batch, waiting, self.free, waits_for)

    def _waits_for(self) -> str:
        if not self.waiting:
            return NOBODY
        if len(self.running) + 1 > self.limits.max_running:
            return SEATS
        short = -(-self.tokens[self.waiting[0]] // self.size) > self.free
        return BLOCKS if short or self.blocked else BUDGET
