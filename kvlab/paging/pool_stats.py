"""One look at a pool of blocks: how full it is, and what happened so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvlab.paging.block_pool import BlockPool


@dataclass(frozen=True, slots=True)
class PoolStats:
    """One look at a pool, in blocks, and what happened so far.

    free + idle + used = num_blocks. Hits and questions are counted in tokens.
    """

    num_blocks: int
    num_free_blocks: int
    num_idle_blocks: int
    num_used_blocks: int
    num_sequences: int
    peak_used_blocks: int
    prefix_query_tokens: int
    prefix_hit_tokens: int
    evicted_blocks: int
    copied_blocks: int
    merged_blocks: int

    @property
    def hit_rate(self) -> float:
        """The share of prompt tokens that were found in the prefix index; 0.0 before any."""
        asked = self.prefix_query_tokens
        return self.prefix_hit_tokens / asked if asked else 0.0


def look_at(pool: BlockPool, num_sequences: int, counts: Mapping[str, int]) -> PoolStats:
    """Return what a pool and a manager's counters say now."""
    return PoolStats(
        num_blocks=pool.num_blocks,
        num_free_blocks=len(pool.free_block_ids),
        num_idle_blocks=len(pool.idle_block_ids),
        num_used_blocks=pool.num_used,
        num_sequences=num_sequences,
        peak_used_blocks=pool.peak_used,
        prefix_query_tokens=counts["asked"],
        prefix_hit_tokens=counts["hit"],
        evicted_blocks=pool.num_evictions,
        copied_blocks=counts["copied"],
        merged_blocks=counts["merged"],
    )
