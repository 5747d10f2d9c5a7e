"""What claims about the size of a cache need beyond the formula: two ways, units, crossings."""

from collections.abc import Callable
from typing import Any

from kvlab.arithmetic.catalogue import find_model, model_shape
from kvlab.arithmetic.flop_steps import forward_flops
from kvlab.arithmetic.reader import read_model
from kvlab.arithmetic.request import size_request
from kvlab.arithmetic.storage import SHARED
from kvlab.arithmetic.units import GB, GIB, MB, MIB


def request_mib(model: str, contexts: list[int]) -> list[float]:
    """Return the cache of one request at each length, in MiB.

    >>> request_mib("meta-llama-3-8b", [2048])
    [256.0]
    """
    return [size_request(read_model(model), context=n).request_bytes / MIB for n in contexts]


def requests_gib(model: str, requests: int, contexts: list[int]) -> list[float]:
    """Return the caches of `requests` requests at each length, in GiB."""
    storage = read_model(model)
    sizes = (size_request(storage, context=n, batch=requests) for n in contexts)
    return [one.request_bytes / GIB for one in sizes]


def percent_of_weights(model: str, context: int) -> float:
    """Return one request's cache over the model's 16-bit weights, in percent.

    >>> round(percent_of_weights("meta-llama-3-8b", 32768), 1)
    26.7
    """
    return 100 * _request(model, context) / _weights(model)


def users_against_weights(model: str, users: int, context: int) -> list[float]:
    """Return the caches of `users` in GiB and in GB, and the users that equal the weights."""
    size = users * _request(model, context)
    return [size / GIB, size / GB, _weights(model) / _request(model, context)]


def in_decimal_units(mebibytes: int, gibibytes: int) -> list[float]:
    """Return MiB as MB, and GiB as GB."""
    return [mebibytes * MIB / MB, gibibytes * GIB / GB]


def head_dim_two_ways(models: list[str]) -> list[float]:
    """Return for each model hidden size over query heads, then the head_dim of its config."""
    found: list[float] = []
    for name in models:
        storage = read_model(name)
        found += [(storage.hidden_size or 0) / (storage.num_heads or 1), storage.layers[0].k_dim]
    return found


def twice_the_query_heads(model: str) -> list[int]:
    """Return bytes a token as it is, with twice the query heads, and the latter without head_dim.

    >>> twice_the_query_heads("llama-3.1-70b")
    [327680, 327680, 163840]
    """
    shape, config = model_shape(model), dict(find_model(model).config)
    doubled = config | {"num_attention_heads": 2 * shape.num_heads}
    written = doubled | {"head_dim": shape.head_dim}
    silent = {key: value for key, value in doubled.items() if key != "head_dim"}
    return [2 * read_model(c).elements_per_token for c in (config, written, silent)]


def block_rounding_mib(model: str, block_size: int) -> float:
    """Return the most that one request's last block wastes, in MiB."""
    return (block_size - 1) * 2 * read_model(model).elements_per_token / MIB


def long_context(model: str, tokens: int) -> list[float]:
    """Return the cache in GB, and the attention of a whole prefill over its linear layers."""
    work = forward_flops(model_shape(model), q_len=tokens)
    return [_request(model, tokens) / GB, work.attention / work.linear]


def layers_and_sharing(model: str) -> list[int]:
    """Return the layers of a model, and those of them that keep no keys and values of their own."""
    storage = read_model(model)
    return [storage.num_layers, sum(layer.kind == SHARED for layer in storage.layers)]


def bytes_per_token_of(model: str) -> int:
    """Return the 16-bit bytes that a token adds while every layer still grows."""
    return 2 * read_model(model).elements_per_token


def _request(model: str, context: int) -> int:
    return size_request(read_model(model), context=context).request_bytes


def _weights(model: str) -> int:
    return 2 * (find_model(model).parameters or 0)


ALL: tuple[Callable[..., Any], ...] = (
    request_mib,
    requests_gib,
    percent_of_weights,
    users_against_weights,
    in_decimal_units,
    head_dim_two_ways,
    twice_the_query_heads,
    block_rounding_mib,
    long_context,
    layers_and_sharing,
    bytes_per_token_of,
)
