"""How long a step takes at least on a device: the roofline, for a batch of unequal sequences.

A step reads the weights once, and for each sequence the cache that it attends to. Left out: launch
times, sampling, and what ranks send each other; so simulated times are lower bounds.
"""

from functools import lru_cache

from kvlab.arithmetic.plan_checks import positive
from kvlab.arithmetic.plan_deployment import Deployment
from kvlab.arithmetic.roofline import Device
from kvlab.arithmetic.roofline_work import StageWork, attention_flops, weights_read
from kvlab.serving.plan import StepLoad

PROBES = (1, 2, 33, 4097, 131_073)
"""Lengths at which a stage must lie on one straight line to be priced by sums alone."""


class StageCost:
    """The work of one stage's rank as a function of a step's load.

    Where flops and bytes of a sequence are a line in its pairs and its length, the sums of the load
    are enough; a stage with windows is priced span by span.
    """

    def __init__(self, deployment: Deployment, stage: int) -> None:
        self.deployment, self.stage = deployment, stage
        layers, weights = deployment.stage_layers, deployment.weights
        self.multiplied, self.share = weights.multiplied_per_token, (layers[stage], sum(layers))
        self.head = 2 * weights.head_parameters if stage == deployment.pp - 1 else 0
        self.cache_bytes = lru_cache(maxsize=1 << 16)(self._cache_bytes)
        self.attention = lru_cache(maxsize=1 << 16)(self._attention)
        self.weight_bytes = lru_cache(maxsize=1 << 14)(self._weights)
        once = self.attention(0, 1)
        self.per_pair = self.attention(0, 2) - 2 * once
        self.per_token_flops = once - self.per_pair  # cross-attention: the same for every token
        self.per_cached = self.cache_bytes(2) - self.cache_bytes(1)
        self.per_request = self.cache_bytes(1) - self.per_cached
        self.is_linear = all(self._on_the_line(n) for n in PROBES)

    def work(self, load: StepLoad) -> StageWork:
        """Return the FLOPs and bytes of one step."""
        part, whole = self.share
        flops = 2 * load.tokens * self.multiplied * part // whole + self.head * load.emitting
        if self.is_linear:
            flops += self.per_pair * load.pairs + self.per_token_flops * load.tokens
            cache = self.per_cached * load.context + self.per_request * load.batch
        else:
            flops += sum(self.attention(start, end) for start, end in load.spans)
            cache = sum(self.cache_bytes(end) for _, end in load.spans)
        return StageWork(-(-flops // self.deployment.tp), self.weight_bytes(load.tokens), cache)

    def _on_the_line(self, n: int) -> bool:
        pairs = n * (n + 1) // 2
        flops = self.per_pair * pairs + self.per_token_flops * n
        held = self.per_cached * n + self.per_request
        return self.attention(0, n) == flops and self.cache_bytes(n) == held

    def _cache_bytes(self, context: int) -> int:
        return self.deployment.request(context).stages[self.stage].request_bytes

    def _attention(self, start: int, end: int) -> int:
        return attention_flops(self.deployment, self.deployment.stages[self.stage], start, end)

    def _weights(self, tokens: int) -> int:
        return weights_read(self.deployment, self.stage, tokens)


class StepClock:
    """Seconds of a step: per stage the longer of its arithmetic and its reading, then the moves.

    A batch passes through pipeline stages one after the other. Blocks that are swapped cross the
    link to the host before the step; out and in are added up, nothing overlaps.

    >>> clock = StepClock(Deployment.of("llama-3.1-8b"), Device.of("H100"))
    >>> load = StepLoad(batch=32, tokens=32, emitting=32, pairs=32 * 8192, context=32 * 8192)
    >>> round(1000 * clock.seconds(load), 1)
    15.1
    """

    def __init__(
        self,
        deployment: Deployment,
        device: Device,
        *,
        block_size: int = 16,
        host_bytes_per_second: float | None = None,
    ) -> None:
        self.device, self.block_size = device, block_size
        self.stages = [StageCost(deployment, stage) for stage in range(deployment.pp)]
        self.link = host_bytes_per_second and positive(
            "host_bytes_per_second", host_bytes_per_second
        )
        self.needs_spans = not all(stage.is_linear for stage in self.stages)

    def seconds(self, load: StepLoad) -> float:
        """Return the least time of a step with this load."""
        device = self.device
        seconds = 0.0
        for stage in self.stages:
            seconds += device.seconds(stage.work(load))
        return seconds + self.move_seconds(load.moved_blocks)

    def move_seconds(self, num_blocks: int) -> float:
        """Return the time in which blocks cross to or from the host, every rank on its own link."""
        if not num_blocks or not self.link:
            return 0.0
        moved = max(stage.per_cached for stage in self.stages) * self.block_size * num_blocks
        return moved / self.link
