"""A model laid out on the GPUs of one replica: which bytes each rank holds, weights and cache.

Left out: how much memory the ranks have (`sizing`) and how fast they are (`roofline`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from kvlab.arithmetic.dtypes import cache_dtype
from kvlab.arithmetic.plan_dense import read_weights
from kvlab.arithmetic.plan_weights import Weights, given_weights, weights_format
from kvlab.arithmetic.ranks import check_tp, split_layers, stage_sizes
from kvlab.arithmetic.reader import read_model
from kvlab.arithmetic.request import RequestSize, size_request
from kvlab.arithmetic.storage import LayerStorage, ModelStorage
from kvlab.errors import InvalidArgument

ModelSource = Mapping[str, Any] | str | Path | ModelStorage


@dataclass(frozen=True)
class Deployment:
    """One replica: tp ranks in each of pp stages. `of` reads a model; the fields are checked there.

    >>> eight = Deployment.of("llama-3.1-70b", tp=8)
    >>> eight.ranks, eight.weight_bytes[0], eight.request(8192).bytes_per_token_per_rank
    (8, 17640734720, 40960)
    """

    model: ModelStorage
    weights: Weights
    weights_dtype: str = "bf16"
    cache_dtype: str = "bf16"
    tp: int = 1
    pp: int = 1
    source_length: int = 0

    @classmethod
    def of(
        cls,
        model: ModelSource,
        *,
        parameters: int | None = None,
        weights_dtype: str = "bf16",
        cache_dtype: str = "bf16",
        tp: int = 1,
        pp: int = 1,
        source_length: int = 0,
        allow_hub: bool = False,
    ) -> "Deployment":
        """Return the replica, every argument checked by name.

        `model` is what `read_model` takes, or a `ModelStorage` with its number of `parameters`.
        """
        storage, weights = _read(model, parameters, allow_hub)
        ranks = check_tp(storage, tp)
        stage_sizes(max(storage.num_layers, 1), pp)
        return cls(
            storage,
            weights,
            weights_format(weights_dtype).name,
            _cache_name(cache_dtype),
            ranks,
            pp,
            source_length,
        )

    @property
    def ranks(self) -> int:
        """GPUs of one replica."""
        return self.tp * self.pp

    @cached_property
    def stage_layers(self) -> tuple[int, ...]:
        """Layers of each pipeline stage."""
        return stage_sizes(max(self.model.num_layers, 1), self.pp)

    @cached_property
    def weight_bytes(self) -> tuple[int, ...]:
        """Bytes of weights on the fullest rank of each stage."""
        last = self.pp - 1
        return tuple(
            self.weights.bytes_on_rank(
                layers=layers,
                tp=self.tp,
                first=stage == 0,
                last=stage == last,
                weights_dtype=self.weights_dtype,
            )
            for stage, layers in enumerate(self.stage_layers)
        )

    def request(self, context: int, batch: int = 1) -> RequestSize:
        """Return the cache of `batch` requests that hold `context` tokens each, by stage."""
        return size_request(
            self.model,
            context=context,
            batch=batch,
            cache_dtype=self.cache_dtype,
            tp=self.tp,
            pp=self.pp,
            source_length=self.source_length,
        )

    def heads_that_do_not_divide(self) -> tuple[int, ...]:
        """Return the KV head counts for which an engine refuses this tp: neither divides the other.

        >>> Deployment.of({"num_hidden_layers": 2, "num_attention_heads": 12, "hidden_size": 96,
        ...     "num_key_value_heads": 6, "intermediate_size": 64, "vocab_size": 100}, tp=4
        ... ).heads_that_do_not_divide()
        (6,)
        """
        counts = {x.num_kv_heads for x in self.model.layers if x.num_kv_heads > 1}
        return tuple(sorted(c for c in counts if c % self.tp and self.tp % c))

    @cached_property
    def stages(self) -> tuple[tuple[LayerStorage, ...], ...]:
        """The stores of each pipeline stage."""
        return split_layers(self.model, self.pp)


def _read(
    model: ModelSource, parameters: int | None, allow_hub: bool
) -> tuple[ModelStorage, Weights]:
    if isinstance(model, ModelStorage):
        if parameters is None:
            raise InvalidArgument("parameters", None, "must be given for a model without a config")
        return model, given_weights(parameters, model.num_layers)
    storage = read_model(model, allow_hub=allow_hub)
    return storage, read_weights(model, parameters=parameters, allow_hub=allow_hub)


def _cache_name(name: str) -> str:
    return cache_dtype(name).name
