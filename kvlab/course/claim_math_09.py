"""What claims and questions of chapter 09 need: windows, what they leave, and what tiers move."""

from collections.abc import Callable
from typing import Any

from kvlab.arithmetic.reader import read_model
from kvlab.arithmetic.request import size_request
from kvlab.arithmetic.tier_times import tier_times

MIB, GIB, GB = 2**20, 2**30, 10**9


def first_visible(query: int, window: int, counts_itself: bool = True) -> int:
    """Return the first position that a query sees through a window of so many tokens.

    `counts_itself` tells whether the window counts the query's own token.

    >>> first_visible(8001, 4096), first_visible(8001, 4096, counts_itself=False)
    (3906, 3905)
    """
    return max(0, query - window + (1 if counts_itself else 0))


def both_conventions(query: int, window: int) -> list[int]:
    """Return the first visible position with the own token counted, and without."""
    return [first_visible(query, window, counts_itself) for counts_itself in (True, False)]


def visible_tokens(query: int, window: int, counts_itself: bool = True) -> int:
    """Return how many positions a query sees, its own among them."""
    return query - first_visible(query, window, counts_itself) + 1


def windowed_reach(layers: int, window: int) -> int:
    """Return how many positions on a token can reach through so many windowed layers.

    The window counts the query's own token, so each layer hands on by one less.

    >>> windowed_reach(4, 4)
    12
    """
    return layers * (window - 1)


def whole_and_hand_counted_reach(layers: int, window: int) -> list[int]:
    """Return layers x window, as it is often said, and the reach with the own token counted."""
    return [layers * window, windowed_reach(layers, window)]


def cache_mib(model: str, context: int) -> float:
    """Return the payload of one request in MiB, 16 bit, windowed layers capped.

    >>> cache_mib("mistral-7b-v0.1", 131_072)
    512.0
    """
    return size_request(read_model(model), context=context).request_bytes / MIB


def hybrid_gib(
    windowed: int, window: int, full: int, kv_heads: int, head_dim: int, context: int
) -> float:
    """Return the GiB of one request of a model of windowed and full layers, 16 bit.

    A windowed layer counts `window` tokens, or the context where that is shorter.
    """
    tokens = windowed * min(window, context) + full * context
    return tokens * 2 * kv_heads * head_dim * 2 / GIB


def windows_of_models(models: list[str]) -> list[int]:
    """Return the window of each model, 0 where no layer has one.

    >>> windows_of_models(["mistral-7b-v0.1", "mistral-7b-v0.3"])
    [4096, 0]
    """
    found = []
    for model in models:
        windows = [layer.window for layer, _ in read_model(model).counted if layer.window]
        found.append(max(windows, default=0))
    return found


def fetch_milliseconds(gigabytes: float, link_gb_s: float, links: int = 1) -> float:
    """Return the least time in which so many links bring so many bytes."""
    return 1000 * gigabytes / (link_gb_s * links)


def tier_seconds(model: str, tokens: int, tp: int, place: int) -> list[float]:
    """Return the seconds of a way back from a tier, by its place in the list, and of a prefill."""
    times = tier_times(model, tokens=tokens, gpu="H100", tp=tp)
    return [times.rows[place].seconds, times.prefill_seconds]


ALL: tuple[Callable[..., Any], ...] = (
    first_visible,
    both_conventions,
    visible_tokens,
    windowed_reach,
    whole_and_hand_counted_reach,
    cache_mib,
    hybrid_gib,
    windows_of_models,
    fetch_milliseconds,
    tier_seconds,
)
