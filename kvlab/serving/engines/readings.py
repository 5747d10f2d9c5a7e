"""What an engine's metrics endpoint says, under the names that our own server's metrics have.

vLLM's names are ours. llama.cpp's are translated where both mean the same; it has no pool of blocks
and preempts nobody, so for its share in use stand the slots that are busy.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from kvlab.serving.engines.exposition import Sample, decimal, samples, whole
from kvlab.serving.timeline import Point

VLLM, LLAMACPP = "vllm", "llama.cpp"
USAGE = "vllm:kv_cache_usage_perc"
COUNTED = (
    "vllm:num_requests_running",
    "vllm:num_requests_waiting",
    "vllm:num_preemptions_total",
    "vllm:prefix_cache_queries_total",
    "vllm:prefix_cache_hits_total",
    "vllm:prompt_tokens_total",
    "vllm:generation_tokens_total",
    "vllm:request_success_total",
)
TIMES = (
    "time_to_first_token_seconds",
    "request_time_per_output_token_seconds",
    "request_queue_time_seconds",
)
SUMMED = (*COUNTED, *(f"vllm:{name}_{end}" for name in TIMES for end in ("sum", "count")))
FROM_LLAMACPP = {
    "vllm:num_requests_running": ("llamacpp:requests_processing",),
    "vllm:num_requests_waiting": ("llamacpp:requests_deferred",),
    "vllm:prefix_cache_hits_total": ("llamacpp:prompt_tokens_cached_total",),
    "vllm:prefix_cache_queries_total": (
        "llamacpp:prompt_tokens_total", "llamacpp:prompt_tokens_cached_total",
    ),
    "vllm:prompt_tokens_total": (
        "llamacpp:prompt_tokens_total", "llamacpp:prompt_tokens_cached_total",
    ),
    "vllm:generation_tokens_total": ("llamacpp:tokens_predicted_total",),
}  # fmt: skip


@dataclass(frozen=True)
class Readings:
    """One look at a metrics endpoint: numbers by vLLM's names, and what the pool is made of.

    `config` are the labels of `vllm:cache_config_info`, text as it was sent.
    """

    engine: str
    values: dict[str, float]
    config: dict[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> float:
        """Return a number by its vLLM name; 0 where the engine does not say it."""
        return self.values.get(name, 0.0)

    @property
    def num_blocks(self) -> int | None:
        """Blocks of the pool, the one that is never used included."""
        return whole(self.config.get("num_gpu_blocks"))

    @property
    def block_size(self) -> int | None:
        """Tokens of a block."""
        return whole(self.config.get("block_size"))

    @property
    def tokens(self) -> int | None:
        """Tokens that the pool holds, as the engine says; else blocks x block size."""
        said = whole(self.config.get("kv_cache_size_tokens"))
        if said is not None or self.num_blocks is None or self.block_size is None:
            return said
        return self.num_blocks * self.block_size

    @property
    def concurrency(self) -> float | None:
        """Requests of full length that fit, as the engine says."""
        return decimal(self.config.get("kv_cache_max_concurrency"))

    @property
    def budget_bytes(self) -> int | None:
        """Bytes of the cache on a rank, where they were set by hand."""
        return whole(self.config.get("kv_cache_memory_bytes"))

    @property
    def used_blocks(self) -> float | None:
        """Blocks in use: the engine's share is of all blocks but one."""
        if self.num_blocks is None or USAGE not in self.values:
            return None
        return self.values[USAGE] * (self.num_blocks - 1)

    @property
    def prefix_hit_rate(self) -> float | None:
        """The share of looked-up prompt tokens that were found; None before any."""
        asked = self["vllm:prefix_cache_queries_total"]
        return self["vllm:prefix_cache_hits_total"] / asked if asked else None

    def point(self, seconds: float) -> Point:
        """Return the look as a point of a timeline, the same that our own server has."""
        return Point(
            seconds,
            int(self["vllm:num_requests_running"]),
            int(self["vllm:num_requests_waiting"]),
            self[USAGE],
            int(self["vllm:num_preemptions_total"]),
            int(self["vllm:generation_tokens_total"]),
            int(self["vllm:request_success_total"]),
        )

    def as_vllm(self) -> dict[str, float]:
        """Return the numbers, as `Metrics.as_vllm` does for our own server."""
        return dict(self.values)

    def since(self, before: "Readings") -> dict[str, float]:
        """Return how far the counters have risen since an earlier look."""
        counters = [name for name in self.values if name.endswith(("_total", "_sum", "_count"))]
        return {name: self[name] - before[name] for name in counters}

    def to_dict(self) -> dict[str, Any]:
        """Return the look for a file."""
        return {"engine": self.engine, "values": self.values, "config": self.config}


def read_metrics(text: str, *, model: str | None = None) -> Readings | None:
    r"""Return what an engine's metrics endpoint says, or None where it is no engine that we know.

    With `model`, only the samples of that served model count. Several engines behind one address
    are added up; of their pools the fullest counts.

    >>> told = read_metrics('vllm:num_requests_running{engine="0"} 2\nvllm:kv_cache_usage_perc 0.5')
    >>> told["vllm:num_requests_running"], told.point(1.0).block_use
    (2.0, 0.5)
    >>> read_metrics("python_info 1") is None
    True
    """
    found = [sample for sample in samples(text) if _is_of(sample, model)]
    if any(sample.name.startswith("vllm:") for sample in found):
        return _vllm(found)
    if any(sample.name.startswith("llamacpp:") for sample in found):
        return _llamacpp(found)
    return None


def _is_of(sample: Sample, model: str | None) -> bool:
    return model is None or sample.labels.get("model_name", model) == model


def _vllm(found: Iterable[Sample]) -> Readings:
    values: dict[str, float] = {}
    config: dict[str, str] = {}
    for name, labels, value in found:
        if name in SUMMED:
            values[name] = values.get(name, 0.0) + value
        elif name == USAGE:
            values[name] = max(values.get(name, 0.0), value)
        elif name == "vllm:cache_config_info":
            config = labels
    return Readings(VLLM, values, config)


def _llamacpp(found: Iterable[Sample]) -> Readings:
    said = {sample.name: sample.value for sample in found}
    values = {
        name: sum(said[source] for source in sources)
        for name, sources in FROM_LLAMACPP.items()
        if all(source in said for source in sources)
    }
    return Readings(LLAMACPP, values)
