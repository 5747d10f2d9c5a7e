"""What questions and exercises of chapter 12 need: what an engine reports, computed beforehand."""

from collections.abc import Callable
from typing import Any


def pool_blocks(budget: int, token_bytes: int, block_size: int) -> int:
    """Return the whole blocks that `budget` bytes of a rank hold.

    >>> pool_blocks(2**30, 23_040, 128)
    364
    """
    return budget // (token_bytes * block_size)


def pool_tokens(budget: int, token_bytes: int, block_size: int) -> int:
    """Return the tokens of a pool: whole blocks alone count.

    >>> pool_tokens(2**30, 23_040, 128), pool_tokens(2**30, 46_080, 128)
    (46592, 23296)
    """
    return pool_blocks(budget, token_bytes, block_size) * block_size


def use_percent(used_blocks: int, num_blocks: int) -> float:
    """Return vLLM's share of blocks in use, in percent: one block is held back.

    >>> round(use_percent(16, 128), 3)
    12.598
    """
    return 100 * used_blocks / (num_blocks - 1)


def mean_between(sum_before: float, count_before: int, sum_after: float, count_after: int) -> float:
    """Return the mean of a histogram between two looks at a metrics page.

    >>> mean_between(120.0, 400, 150.0, 500)
    0.3
    """
    return (sum_after - sum_before) / (count_after - count_before)


ALL: tuple[Callable[..., Any], ...] = (
    pool_blocks, pool_tokens, use_percent, mean_between,
)  # fmt: skip
