"""What claims and questions of chapter 04 need: ridges, traffic and times of the two phases."""

from collections.abc import Callable
from typing import Any

from kvlab.arithmetic.catalogue import model_shape
from kvlab.arithmetic.gpus import find_gpu
from kvlab.arithmetic.plan_deployment import Deployment
from kvlab.arithmetic.roofline import (
    Device,
    crossover_batch,
    crossover_tokens,
    seconds_to_ship,
    time_decode,
)


def ridge_tokens(gpu: str) -> float:
    """Return the tokens of a pass at which 16-bit matrices stop waiting for their weights.

    >>> round(ridge_tokens("H100"))
    295
    """
    return Device.of(gpu).ridge_tokens()


def ridge_share_percent(gpu: str) -> float:
    """Return the share of the matrix rate that 1 FLOP a byte can use, in percent."""
    return 100 / Device.of(gpu).ridge


def milliseconds_to_read(num_bytes: int, gpu: str, ranks: int = 1) -> float:
    """Return the least time in which `ranks` equal GPUs read so many bytes between them."""
    return 1000 * num_bytes / (ranks * find_gpu(gpu).bandwidth_gb_s * 1e9)


def weights_of(model: str) -> int:
    """Return the bytes of a model's weights in bf16 on one GPU."""
    return sum(Deployment.of(model).weight_bytes)


def cache_of(model: str, context: int, batch: int = 1) -> int:
    """Return the bytes of the bf16 cache of `batch` requests of `context` tokens."""
    return Deployment.of(model).request(context, batch).request_bytes


def cached_tokens_that_equal_weights(model: str) -> float:
    """Return the cached tokens, over the whole batch, that are as many bytes as all weights."""
    return crossover_tokens(weight_bytes=weights_of(model), bytes_per_token=cache_of(model, 1))


def batch_that_moves_more_cache(model: str, context: int) -> int:
    """Return the first batch whose decode step moves more cache than weights, all of them.

    >>> batch_that_moves_more_cache("llama-3.1-8b", 8192)
    15
    """
    each = cache_of(model, 1)
    return crossover_batch(weight_bytes=weights_of(model), bytes_per_token=each, context=context)


def batch_without_embedding(model: str, context: int) -> int:
    """Return that batch with the input embedding left out: a step reads one row a sequence.

    Right as a thought, but not the convention here; for models whose head is another table.

    >>> batch_without_embedding("llama-3.1-8b", 4096)
    28
    """
    shape, each = model_shape(model), cache_of(model, 1)
    read = weights_of(model) - 2 * shape.vocab_size * shape.hidden_size
    return crossover_batch(weight_bytes=read, bytes_per_token=each, context=context)


def step_milliseconds(model: str, gpu: str, tp: int, context: int, batch: int) -> float:
    """Return the least time of a decode step in milliseconds, weights and cache in bf16.

    >>> round(step_milliseconds("llama-3.1-70b", "H100", 8, 8192, 32), 2)
    8.47
    """
    one = Deployment.of(model, tp=tp)
    return 1000 * time_decode(one, Device.of(gpu), context=context, batch=batch).seconds


def throughput_growth(model: str, gpu: str, context: int, batch: int) -> float:
    """Return the tokens a second of a batch over those of one request, at best."""
    one, device = Deployment.of(model), Device.of(gpu)
    many, single = (time_decode(one, device, context=context, batch=n) for n in (batch, 1))
    return many.tokens_per_second / single.tokens_per_second


def milliseconds_to_ship(model: str, context: int, link_gb_s: float) -> float:
    """Return the least time to send one request's bf16 cache over a link of so many GB/s."""
    size = cache_of(model, context)
    return 1000 * seconds_to_ship(size, link_bytes_per_second=link_gb_s * 1e9)


ALL: tuple[Callable[..., Any], ...] = (
    ridge_tokens,
    ridge_share_percent,
    milliseconds_to_read,
    weights_of,
    cache_of,
    cached_tokens_that_equal_weights,
    batch_that_moves_more_cache,
    batch_without_embedding,
    step_milliseconds,
    throughput_growth,
    milliseconds_to_ship,
)
