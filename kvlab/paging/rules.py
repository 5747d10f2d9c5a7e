"""The rules that a block manager must keep after every operation, each checked in full."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from kvlab.paging.block_manager import BlockManager
from kvlab.paging.prefix_index import NONE, ROOT, PrefixIndex


def broken_rules(*managers: BlockManager) -> list[str]:
    """Return a sentence for each rule that does not hold; an empty list is a sound pool.

    Give all managers that share one pool. Costs time for every block and table: for tests.

    >>> manager = BlockManager(num_blocks=4, block_size=2)
    >>> _ = manager.allocate("a", 3)
    >>> broken_rules(manager)
    []
    >>> manager.pool.ref_count[0] += 1
    >>> broken_rules(manager)
    ['block 0 counts 2 users, but 1 block tables hold it']
    """
    return [
        *_pool_rules(*managers),
        *(sentence for manager in managers for sentence in _table_rules(manager)),
        *(sentence for manager in managers for sentence in _index_rules(manager)),
    ]


def _pool_rules(*managers: BlockManager) -> Iterator[str]:
    """Free, idle and used blocks are all blocks, and no block is two of these."""
    pool = managers[0].pool
    tables = [table for manager in managers for table in manager.tables.values()]
    users = Counter(block_id for table in tables for block_id in table.held())
    for block_id in range(pool.num_blocks):
        if pool.ref_count[block_id] != users[block_id]:
            said, held = pool.ref_count[block_id], users[block_id]
            yield f"block {block_id} counts {said} users, but {held} block tables hold it"
    free, idle, used = set(pool.free_block_ids), set(pool.idle_block_ids), set(users)
    if len(free) != len(pool.free_block_ids):
        yield "a block is in the free list twice"
    if free & idle or free & used or idle & used:
        yield f"blocks are in two states: {sorted(free & idle | free & used | idle & used)}"
    if free | idle | used != set(range(pool.num_blocks)):
        yield f"{len(free)} free + {len(idle)} idle + {len(used)} used != {pool.num_blocks}"


def _table_rules(manager: BlockManager) -> Iterator[str]:
    """A table has ceil(tokens / block_size) blocks, none twice, and committed ones are cached."""
    pool = manager.pool
    for seq_id, table in manager.tables.items():
        held = table.held()
        if len(table.block_ids) != manager.blocks_for(table.num_tokens):
            yield f"{seq_id}: {table.num_tokens} tokens in {len(table.block_ids)} blocks"
        if len(held) != len(set(held)) or any(block_id < 0 for block_id in held):
            yield f"{seq_id}: its table {held} names a block twice, or none"
        if not all(pool.identity_of[b] for b in table.block_ids[: table.num_committed]):
            yield f"{seq_id}: a committed block can't be found"
        if table.room > len(table.block_ids) * manager.block_size:
            yield f"{seq_id}: room for {table.room} tokens in {len(table.block_ids)} blocks"
        if table.room > table.num_tokens and held and not manager.may_write(held[-1]):
            yield f"{seq_id}: would write to block {held[-1]}, which is not its own"


def _index_rules(manager: BlockManager) -> Iterator[str]:
    """A cached block lies under its hash, once; its parent is cached and outlives it."""
    index, pool = manager.index, manager.pool
    if index is None:
        return
    listed = list(_listed(index))
    cached = {b for b in range(pool.num_blocks) if pool.identity_of[b] is not None}
    if sorted(block_id for _, block_id in listed) != sorted(cached):
        yield "the index does not list each cached block once"
    for key, block_id in listed:
        identity = index.identity_of[block_id]
        if identity is None or index.hash_block(identity) != key:
            yield f"block {block_id} lies under a hash that is not its own"
        elif index.find(identity) != block_id:
            yield f"block {block_id} holds the same as another cached block"
    if cached & set(pool.free_block_ids):
        yield "a free block can still be found"
    idle_rank = {block_id: rank for rank, block_id in enumerate(pool.idle_block_ids)}
    for block_id in cached:
        parent = index.identity_of[block_id][0]
        if parent != ROOT and parent not in cached:
            yield f"block {block_id} is cached, its parent {parent} is not"
        elif parent in idle_rank and idle_rank[parent] < idle_rank.get(block_id, len(idle_rank)):
            yield f"block {parent} would be evicted before its child {block_id}"
    for seq_id, table in manager.tables.items():
        for before, block_id in zip([ROOT, *table.block_ids], table.block_ids, strict=False):
            if block_id in cached and index.identity_of[block_id][0] != before:
                yield f"{seq_id}: block {block_id} is cached as what follows another block"


def _listed(index: PrefixIndex) -> Iterator[tuple[int, int]]:
    """Give (hash, block) for every block that a look-up would come by."""
    for key, block_id in index.first_with.items():
        while block_id != NONE:
            yield key, block_id
            block_id = index.next_with[block_id]
