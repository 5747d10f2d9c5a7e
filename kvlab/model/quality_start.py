"""Before a cache is measured: what it is called, and whether it fits the model at all."""

from typing import Any

import torch

from kvlab.model.load import LoadedModel


def take_a_token(loaded: LoadedModel, cache: Any) -> None:
    """Let every layer of a new cache store one token of the model's shape and dtype.

    So what does not fit the model is refused here, before the first wait. Groups that must divide
    head_dim are such a thing: options alone don't tell.

    >>> from kvlab.cache import make_cache
    >>> from kvlab.model.load import load_model
    >>> tiny = load_model("tiny", device="cpu")
    >>> take_a_token(tiny, make_cache("int4", num_layers=2, q_group_size=7))
    Traceback (most recent call last):
    kvlab.errors.InvalidArgument: q_group_size=7: must divide the 32 channels of the values \
(head_dim)
    """
    config = loaded.model.config
    shape = (1, config.num_kv_heads, 1, config.head_dim)
    token = torch.ones(shape, dtype=loaded.dtype, device=loaded.device)
    for layer in cache.layers:
        layer.update(token, token)


def label_of(cache: str, options: dict[str, Any]) -> str:
    """Return a cache's name with its options, as a table or a legend shows it.

    >>> label_of("window", {"budget": "25%"}), label_of("int4", {"residual_length": 32})
    ('window 25%', 'int4 residual_length=32')
    """
    parts = [str(v) if k == "budget" else f"{k}={v}" for k, v in options.items()]
    return " ".join([cache, *parts])
