"""Paging: blocks, block tables, reference counts, prefix sharing. Pure bookkeeping, no torch.

Read `block_pool.py`, `block_table.py` and `prefix_index.py` first, then `block_manager.py` with its
two halves, `block_queries.py` and `block_steps.py`. Beside it: `contiguous.py` is what it replaced,
`hybrid.py` for layers with different windows, `waste.py` for what holds no token, `events.py` and
`replay.py` for pictures, `rules.py` and `stress.py` to be sure.
"""

from kvlab.paging.block_manager import BlockManager
from kvlab.paging.block_pool import BlockPool
from kvlab.paging.contiguous import ContiguousManager
from kvlab.paging.events import Event, EventLog
from kvlab.paging.hybrid import HybridManager
from kvlab.paging.pool_stats import PoolStats
from kvlab.paging.prefix_index import ExtraKeys, PrefixIndex
from kvlab.paging.replay import PoolState, Replay
from kvlab.paging.token_runs import TokenRuns

__all__ = [
    "BlockManager",
    "BlockPool",
    "ContiguousManager",
    "Event",
    "EventLog",
    "ExtraKeys",
    "HybridManager",
    "PoolState",
    "PoolStats",
    "PrefixIndex",
    "Replay",
    "TokenRuns",
]
