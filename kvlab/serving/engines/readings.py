"""What an engine's metrics endpoint says, under the names that our own server's metrics have.

vLLM's names are ours. llama.cpp's are translated where both mean the same; it has no pool of blocks
and preempts nobody, so for its share in use stand the slots that are busy.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from kvlab.serving.engines.exposition import Sample, decimal, samples, whole
from kvlab.serving.engines.faults import printable
from kvlab.serving.engines.reading_names import (
    CONCURRENCY,
    COUNTS,
    FROM_LLAMACPP,
    HITS,
    MOST,
    QUERIES,
    SUMMED,
    USAGE,
    can_be,
    sound,
)  # fmt: skip
from kvlab.serving.timeline import Point

VLLM, LLAMACPP = "vllm", "llama.cpp"


@dataclass(frozen=True)
class Readings:
    """One look at a metrics endpoint: numbers by vLLM's names, and what the pool is made of.

    `config` are the labels of `vllm:cache_config_info`, text as it was sent. `left_out` are
    numbers that cannot be (no number, below 0, hits above queries), by name, as they were sent.
    """

    engine: str
    values: dict[str, float]
    config: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict, compare=False)

    def __getitem__(self, name: str) -> float:
        """Return a number by its vLLM name; 0 where the engine does not say it."""
        return self.values.get(name, 0.0)

    def _count(self, label: str) -> int | None:
        said = whole(self.config.get(label))
        return said if said is not None and said <= MOST else None

    @property
    def odd(self) -> dict[str, str]:
        """Numbers and labels of the pool that cannot be, by name, as they were sent."""
        sent = {name: self.config.get(name, "None") for name in (*COUNTS, CONCURRENCY)}
        found = {name: self._count(name) for name in COUNTS} | {CONCURRENCY: self.concurrency}
        labels = {n: printable(t, 40) for n, t in sent.items() if found[n] is None}
        return self.left_out | {n: t for n, t in labels.items() if t not in ("None", "")}

    @property
    def num_blocks(self) -> int | None:
        """Blocks of the pool, the one that is never used included."""
        return self._count("num_gpu_blocks")

    @property
    def block_size(self) -> int | None:
        """Tokens of a block."""
        return self._count("block_size")

    @property
    def tokens(self) -> int | None:
        """Tokens that the pool holds, as the engine says; else blocks x block size."""
        said = self._count("kv_cache_size_tokens")
        if said is not None or self.num_blocks is None or self.block_size is None:
            return said
        return self.num_blocks * self.block_size

    @property
    def concurrency(self) -> float | None:
        """Requests of full length that fit, as the engine says."""
        said = decimal(self.config.get(CONCURRENCY))
        return said if said is not None and said <= MOST else None

    @property
    def budget_bytes(self) -> int | None:
        """Bytes of the cache on a rank, where they were set by hand."""
        return self._count("kv_cache_memory_bytes")

    @property
    def used_blocks(self) -> float | None:
        """Blocks in use: the engine's share is of all blocks but one."""
        if self.num_blocks is None or USAGE not in self.values:
            return None
        return self.values[USAGE] * (self.num_blocks - 1)

    @property
    def prefix_hit_rate(self) -> float | None:
        """The share of looked-up prompt tokens that were found; None before any."""
        asked = self[QUERIES]
        return self[HITS] / asked if asked and HITS not in self.left_out else None

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
    left_out: dict[str, str] = {}
    for name, labels, value in found:
        if (name in SUMMED or name == USAGE) and not can_be(name, value):
            left_out.setdefault(name, f"{value:g}")
        elif name in SUMMED:
            values[name] = values.get(name, 0.0) + value
        elif name == USAGE:
            values[name] = max(values.get(name, 0.0), value)
        elif name == "vllm:cache_config_info":
            config = labels
    return Readings(VLLM, sound(values, left_out), config, left_out)


def _llamacpp(found: Iterable[Sample]) -> Readings:
    said = {sample.name: sample.value for sample in found}
    odd = {n: f"{v:g}" for n, v in said.items() if not can_be(n, v)}
    left_out = {
        name: odd[source]
        for name, sources in FROM_LLAMACPP.items()
        for source in sources
        if source in odd
    }
    values = {
        name: sum(said[source] for source in sources)
        for name, sources in FROM_LLAMACPP.items()
        if all(source in said for source in sources)
    }
    return Readings(LLAMACPP, sound(values, left_out), left_out=left_out)
