"""What claims, questions and exercises of chapter 07 need: hits in whole blocks, and the bill."""

from collections.abc import Callable
from typing import Any

from kvlab.arithmetic.prices import find_price
from kvlab.paging import BlockManager
from kvlab.paging.waste import blocks_for, shared_and_own


def hit_tokens(prompt: int, equal: int, block_size: int) -> int:
    """Return how many of `equal` common tokens a prompt of `prompt` tokens finds in the cache.

    >>> hit_tokens(36, 34, 32), hit_tokens(64, 64, 32)
    (32, 32)
    """
    return min(equal, prompt - 1) // block_size * block_size


def hit_tokens_found(prompt: int, equal: int, block_size: int) -> int:
    """Return the same, found by a real block manager.

    >>> hit_tokens_found(36, 34, 32)
    32
    """
    manager = BlockManager(4 * (prompt + equal) + 4, block_size)
    old = [*range(equal), *range(10_000, 10_000 + block_size)]
    manager.allocate("old", old)
    manager.commit("old", old)
    return manager.match_prefix([*range(equal), *range(20_000, 20_000 + prompt - equal)])


def blocks_of_a_crowd(requests: int, shared: int, own: int, block_size: int) -> int:
    """Return the blocks in use when requests share a beginning and have `own` tokens behind it.

    >>> blocks_of_a_crowd(100, 1000, 0, 16)  # 62 shared, one of its own for each
    162
    """
    common = shared_and_own(shared, block_size)[0] // block_size
    rest = blocks_for(shared + own, block_size) - common
    if own == 0 and shared % block_size == 0:  # the last token is computed again, then merged
        rest = 0
    return common + requests * rest


def stored_for_a_crowd(requests: int, shared: int, block_size: int) -> list[int]:
    """Return [shared tokens, tokens of each alone, tokens stored in all, without sharing].

    >>> stored_for_a_crowd(100, 1000, 16)
    [992, 8, 1792, 100000]
    """
    common, own = shared_and_own(shared, block_size)
    return [common, own, common + requests * own, requests * shared]


def prefix_bill(
    tokens: int, uses: int, base_usd: float, write_percent: float, read_percent: float
) -> float:
    """Return the dollars of a prefix, written once and read at every later use.

    >>> round(prefix_bill(40_000, 25, 3.0, 125, 10), 4)
    0.438
    """
    factor = (write_percent + (uses - 1) * read_percent) / 100
    return tokens / 10**6 * base_usd * factor


def saving_percents(uses: list[int], price: str = "anthropic-5-minutes") -> list[float]:
    """Return the share saved over so many uses of a prefix, in percent, the write included.

    >>> [round(s, 1) for s in saving_percents([2, 5, 10, 50])]
    [32.5, 67.0, 78.5, 87.7]
    """
    return [100 * find_price(price).saving(n) for n in uses]


def saving_percent(uses: int, write_percent: float, read_percent: float) -> float:
    """Return the share of a prefix's price that is saved over so many uses, in percent.

    >>> saving_percent(10, 125, 10)
    78.5
    """
    return 100 - (write_percent + (uses - 1) * read_percent) / uses


def write_premiums() -> list[float]:
    """Return the price of writing over the base, for 5 minutes and for 1 hour.

    >>> write_premiums()
    [1.25, 2.0]
    """
    return [find_price(f"anthropic-{n}").write_premium for n in ("5-minutes", "1-hour")]


ALL: tuple[Callable[..., Any], ...] = (
    hit_tokens,
    hit_tokens_found,
    blocks_of_a_crowd,
    stored_for_a_crowd,
    prefix_bill,
    saving_percents,
    saving_percent,
    write_premiums,
)
