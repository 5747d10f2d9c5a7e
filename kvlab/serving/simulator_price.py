"""The seconds of a step from its sums alone, for many steps at once: what `StepClock` says of them.

Only for a clock of one stage whose work is a line in pairs and lengths. The sums are whole numbers
and the divisions are the clock's, so the seconds are the same to the last bit.
"""

from bisect import bisect_left
from itertools import accumulate, count, islice, repeat
from operator import truediv

from kvlab.serving.step_clock import StepClock

NEVER = float("inf")
EXACT = 2**53
"""Below it every whole number is a float of its own, and so is each sum of two."""


class LinePrice:
    """Prices of steps; token counts are those of `StepLoad`."""

    def __init__(self, clock: StepClock) -> None:
        (stage,), device = clock.stages, clock.device
        self._move, self._tp = clock.move_seconds, stage.deployment.tp
        self._rate, self._width = device.flops_per_second, device.bytes_per_second
        self._multiplied, self._share, self._head = stage.multiplied, stage.share, stage.head
        self._per_pair, self._per_token = stage.per_pair, stage.per_token_flops
        self._per_cached, self._per_request = stage.per_cached, stage.per_request
        self._weights = stage.weight_bytes
        self._of_batch: dict[int, tuple[int, int]] = {}

    def seconds(
        self, batch: int, tokens: int, emitting: int, pairs: int, context: int, moved: int
    ) -> float:
        """Return the least time of one step.

        >>> from kvlab.arithmetic.plan_deployment import Deployment
        >>> from kvlab.arithmetic.roofline import Device
        >>> clock = StepClock(Deployment.of("llama-3.1-8b"), Device.of("H100"))
        >>> round(1000 * LinePrice(clock).seconds(32, 32, 32, 32 * 8192, 32 * 8192, 0), 1)
        15.1
        """
        part, whole = self._share
        flops = 2 * tokens * self._multiplied * part // whole + self._head * emitting
        flops += self._per_pair * pairs + self._per_token * tokens
        read = self._weights(tokens) + self._per_cached * context + self._per_request * batch
        seconds = max(-(-flops // self._tp) / self._rate, read / self._width)
        return seconds + self._move(moved) if moved else seconds

    def decode(self, batch: int, context: int) -> float:
        """Return the least time of a step in which `batch` sequences decode, nothing else."""
        flops, read = self._of_batch.get(batch) or self._fixed(batch)
        compute = -(-(flops + self._per_pair * context) // self._tp) / self._rate
        reading = (read + self._per_cached * context) / self._width
        return compute if compute > reading else reading

    def decodes(
        self, batch: int, context: int, now: float, steps: int, until: float
    ) -> tuple[int, float]:
        """Return how many of `steps` decodes begin before `until`, and the time after them.

        The first has `context` tokens cached, each one after it `batch` more.
        """
        if now >= until:
            return 0, now
        flops, read = self._of_batch.get(batch) or self._fixed(batch)
        last = context + batch * (steps - 1)
        compute = (flops + self._per_pair * last) / self._tp / self._rate
        start, grows = read + self._per_cached * context, self._per_cached * batch
        if compute * 1.001 >= start / self._width or start + grows * steps >= EXACT:
            return self._one_by_one(batch, context, now, steps, until)
        if until < NEVER:  # no step is shorter than the first
            steps = min(steps, int((until - now) / (start / self._width)) + 2)
        loads = islice(count(float(start), float(grows)), steps)
        times = [*accumulate(map(truediv, loads, repeat(self._width)), initial=now)]
        taken = min(steps, bisect_left(times, until))
        return taken, times[taken]

    def _one_by_one(
        self, batch: int, context: int, now: float, steps: int, until: float
    ) -> tuple[int, float]:
        taken = 0
        while taken < steps and now < until:
            now += self.decode(batch, context + batch * taken)
            taken += 1
        return taken, now

    def _fixed(self, batch: int) -> tuple[int, int]:
        """Return the FLOPs and bytes of a decode that don't grow with its context."""
        part, whole = self._share
        flops = 2 * batch * self._multiplied * part // whole + self._head * batch
        flops += self._per_token * batch
        fixed = flops, self._weights(batch) + self._per_request * batch
        self._of_batch[batch] = fixed
        return fixed
