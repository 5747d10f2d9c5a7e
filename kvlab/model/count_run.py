"""Count the work of a real run while it happens, from the shapes of the matrices that meet.

Hooks see what enters each linear layer; a mode of torch sees every call of attention, its mask
included. No formula is used, so a closed form can be checked against it. Left out, as in
`kvlab.arithmetic.flops`: embeddings, norms, RoPE, softmax; also caches that ask for the weights.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from kvlab.arithmetic.flops import FlopCount
from kvlab.model.llama import Llama

PARTS = {
    "q_proj": "query_output_projections",
    "o_proj": "query_output_projections",
    "k_proj": "key_value_projections",
    "v_proj": "key_value_projections",
    "gate_proj": "mlp",
    "up_proj": "mlp",
    "down_proj": "mlp",
    "lm_head": "lm_head",
}
"""The part of a `FlopCount` that each linear layer belongs to, by the layer's name."""


@dataclass
class RunCount:
    """What has run so far: passes through the model, tokens fed, and FLOPs by part.

    `passes` counts calls of the model; `token_forwards` the tokens fed, over all rows of a batch.
    """

    passes: int = 0
    token_forwards: int = 0
    work: Counter[str] = field(default_factory=Counter)

    @property
    def flops(self) -> FlopCount:
        """The work so far, 2 FLOPs for each multiply-add."""
        return FlopCount(**self.work)


@contextmanager
def count_run(model: Llama) -> Iterator[RunCount]:
    """Count everything that `model` does inside the block, whoever calls it.

    Attention counts the pairs that the mask lets through: the work needed, not what a kernel that
    also computes masked scores would do. No other model may attend in this thread meanwhile.

    >>> from kvlab.model.config import LlamaConfig
    >>> model = Llama(LlamaConfig(num_layers=1, num_heads=2, num_kv_heads=1, head_dim=4,
    ...     hidden_size=8, intermediate_size=16, vocab_size=10, max_seq_len=32))
    >>> with count_run(model) as count:
    ...     _ = model(torch.tensor([[1, 2, 3]]))
    >>> count.token_forwards, count.flops.attention_scores  # 6 pairs x 2 heads x 4 x 2
    (3, 96)
    """
    count = RunCount()
    hooks = [model.model.embed_tokens.register_forward_pre_hook(partial(_on_tokens, count))]
    for path, layer in model.named_modules():
        if isinstance(layer, nn.Linear):
            part = PARTS[path.rsplit(".", 1)[-1]]
            hooks.append(layer.register_forward_pre_hook(partial(_on_linear, count, part)))
    try:
        with _AttentionMode(count):
            yield count
    finally:
        for hook in hooks:
            hook.remove()


def _on_tokens(count: RunCount, layer: nn.Module, inputs: tuple[Tensor, ...]) -> None:
    count.passes += 1
    count.token_forwards += inputs[0].numel()


def _on_linear(count: RunCount, part: str, layer: nn.Linear, inputs: tuple[Tensor, ...]) -> None:
    """Rows times a matrix: one multiply-add for each row and each number of the matrix."""
    rows = inputs[0].numel() // layer.in_features
    count.work[part] += 2 * rows * layer.in_features * layer.out_features


class _AttentionMode(TorchFunctionMode):
    """Look at the arguments of every call of attention in this thread, then let it run."""

    def __init__(self, count: RunCount) -> None:
        super().__init__()
        self.count = count

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        options = kwargs or {}
        if func is F.scaled_dot_product_attention:
            query, key, value = args[:3]
            pairs = _pairs(query, key, options)
            self.count.work["attention_scores"] += 2 * pairs * key.shape[-1]
            self.count.work["attention_values"] += 2 * pairs * value.shape[-1]
        return func(*args, **options)


def _pairs(query: Tensor, key: Tensor, options: dict[str, Any]) -> int:
    """Return the query-key pairs that the mask lets through, over all rows and query heads."""
    (batch, heads, q_len, _), kv_len = query.shape, key.shape[2]
    mask = options.get("attn_mask")
    if mask is None:
        mask = torch.ones(q_len, kv_len, dtype=torch.bool)
        mask = mask.tril() if options.get("is_causal") else mask
    return int(mask.expand(batch, heads, q_len, kv_len).sum())
