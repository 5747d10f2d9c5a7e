"""The routed experts of a model, from its config: which weights a token leaves unread.

Left out: routing that is not even, and experts that are moved or copied between ranks.
"""

from collections.abc import Mapping
from typing import Any

from kvlab.arithmetic.plan_weights import Experts

COUNT_KEYS = ("n_routed_experts", "num_local_experts", "num_experts")
CHOSEN_KEYS = ("num_experts_per_tok", "experts_per_token", "top_k_experts", "moe_topk")
TWO_MATRICES = ("nemotron_h",)
"""Families whose experts have no gate: two matrices an expert, not three."""


def find_experts(config: Mapping[str, Any], parameters: int) -> Experts | None:
    """Return the routed experts of a text config, or None when it has none or they do not add up.

    >>> from kvlab.arithmetic.catalogue import find_model
    >>> row = find_model("deepseek-v3")
    >>> experts = find_experts(row.config, row.parameters)
    >>> experts.count, experts.per_token, round((row.parameters - experts.idle) / 1e9, 1)
    (256, 8, 37.6)
    """
    count, chosen = _first(config, COUNT_KEYS), _first(config, CHOSEN_KEYS)
    inner = _first(config, ("moe_intermediate_size", "intermediate_size"))
    hidden, layers = _first(config, ("hidden_size",)), _expert_layers(config)
    if not (count and chosen and inner and hidden and layers) or chosen >= count:
        return None
    matrices = 2 if config.get("model_type") in TWO_MATRICES else 3
    routed = layers * count * matrices * hidden * inner
    return Experts(routed, count, chosen) if routed < parameters else None


def _expert_layers(config: Mapping[str, Any]) -> int:
    layers = _first(config, ("num_hidden_layers",))
    pattern = config.get("hybrid_override_pattern")
    if isinstance(pattern, str):
        return pattern.count("E")
    step = _first(config, ("expert_layer_period", "interleave_moe_layer_step")) or 1
    step = max(step, _first(config, ("decoder_sparse_step",)) or 1)
    only_dense = config.get("mlp_only_layers")
    dense = _first(config, ("first_k_dense_replace",))
    dense += len(only_dense) if isinstance(only_dense, list) else 0
    return max(layers - dense, 0) // step


def _first(config: Mapping[str, Any], keys: tuple[str, ...]) -> int:
    values = (config.get(key) for key in keys)
    plain = (v for v in values if isinstance(v, int) and not isinstance(v, bool) and v > 0)
    return next(plain, 0)
