"""One layer's keys and values in blocks, for one batch of equal length: runs in transformers too.

Rows that were forked, as beams are, share blocks until one of them writes. The pool grows when it
is full. Left out: rows of different lengths and prefix sharing, which are in `paged.py`.
"""

from __future__ import annotations

from copy import deepcopy

import torch
from torch import Tensor

from kvlab.arithmetic.checks import whole_number
from kvlab.cache.base import KVLayer
from kvlab.cache.paged_store import empty_blocks, read_slots, table_slots, write_slots
from kvlab.paging import BlockManager
from kvlab.paging.waste import paged_use


class PagedLayer(KVLayer):
    """A block table for each row of the batch; `keys` and `values` are a pool of blocks.

    The pools are (num_blocks, block_size, num_kv_heads, head_dim). `nbytes` counts the tokens held,
    `blocks_nbytes` the blocks in use, `reserved_nbytes` the pool.

    >>> layer = PagedLayer(block_size=4)
    >>> prompt = torch.zeros(1, 2, 5, 8)
    >>> keys, values = layer.update(prompt, prompt)
    >>> keys.shape, layer.block_tables
    (torch.Size([1, 2, 5, 8]), [[0, 1]])
    >>> layer.nbytes, layer.blocks_nbytes  # 5 tokens, 8 slots, 128 bytes each
    (640, 1024)
    """

    is_croppable = True

    def __init__(self, block_size: int = 16, capacity: int | None = None) -> None:
        """`capacity`: the most tokens a row may hold; None: as many as memory has."""
        super().__init__()
        self.block_size = whole_number("block_size", block_size)
        if capacity is not None:
            self.capacity = whole_number("capacity", capacity)
        self.manager: BlockManager | None = None
        self.row_ids: list[int] = []  # the sequence of each row
        self.born = 0

    @property
    def block_tables(self) -> list[list[int]]:
        """The block ids of each row, in token order."""
        return [self.manager.block_table(row) for row in self.row_ids] if self.manager else []

    # -- what the base asks ---------------------------------------------------------------

    def allocate(self, key_states: Tensor, value_states: Tensor) -> None:
        """Make a pool in which the first tokens have room."""
        batch, num_kv_heads, q_len, head_dim = key_states.shape
        num_blocks = batch * -(-q_len // self.block_size)
        self.manager = BlockManager(num_blocks, self.block_size, prefix_caching=False)
        shape = (num_blocks, self.block_size, num_kv_heads)
        self.keys = empty_blocks((*shape, head_dim), key_states.dtype, key_states.device)
        width = value_states.shape[3]
        self.values = empty_blocks((*shape, width), value_states.dtype, value_states.device)
        self.row_ids, self.born = list(range(batch)), batch
        for row in self.row_ids:
            self.manager.allocate(row, 0)

    def store(self, key_states: Tensor, value_states: Tensor) -> tuple[Tensor, Tensor]:
        """Write behind the tokens of each row; return all tokens of all rows in order."""
        start, q_len = self.cumulative_length, key_states.shape[2]
        self._make_room(q_len)
        for row in self.row_ids if q_len else ():
            self.manager.append(row, q_len)
        for source, target in self.manager.copies():
            self.keys[target], self.values[target] = self.keys[source], self.values[source]
        slots = self._slots(start + q_len)  # (batch, kv_len)
        new = slots[:, start:].flatten()
        write_slots(self.keys, new, key_states.transpose(1, 2).flatten(0, 1))
        write_slots(self.values, new, value_states.transpose(1, 2).flatten(0, 1))
        return read_slots(self.keys, slots), read_slots(self.values, slots)

    def num_kept(self) -> int:
        """Return how many tokens a row holds: all that were seen."""
        return self.cumulative_length

    def held(self) -> tuple[Tensor, Tensor]:
        """Return the tokens of every row, (batch, num_kv_heads, tokens, head_dim)."""
        slots = self._slots(self.cumulative_length)
        return read_slots(self.keys, slots), read_slots(self.values, slots)

    def keep_first(self, n: int) -> None:
        """Give back the blocks behind the first `n` tokens."""
        for row in self.row_ids:
            self.manager.truncate(row, n)

    def take_rows(self, rows: Tensor) -> None:
        """Fork the rows that are named and let all others go: only block tables are copied.

        The pool moves to new tensors, for what the others held will be written over.
        """
        self.keys, self.values = self.keys.clone(), self.values.clone()
        old, self.row_ids = self.row_ids, []
        for row in rows.tolist():
            self.manager.fork(old[row], self.born)
            self.row_ids.append(self.born)
            self.born += 1
        for row in old:
            self.manager.free(row)

    # -- how much it holds ----------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        """Bytes of the keys and values of the tokens held; a shared token counts once."""
        return paged_use(self.manager).used * self._slot_nbytes if self.manager else 0

    @property
    def blocks_nbytes(self) -> int:
        """Bytes of the blocks in use, empty slots and all."""
        if self.manager is None:
            return 0
        return self.manager.num_used * self.block_size * self._slot_nbytes

    @property
    def reserved_nbytes(self) -> int:
        """Bytes of the pool."""
        return self.keys.nbytes + self.values.nbytes if self.manager else 0

    @property
    def _slot_nbytes(self) -> int:
        return self.reserved_nbytes // (len(self.keys) * self.block_size)

    # -- going back -----------------------------------------------------------------------

    def reset(self) -> None:
        """Become as new: no tokens, no memory."""
        super().reset()
        self.manager, self.row_ids, self.born = None, [], 0

    def snapshot(self) -> dict[str, object]:
        """Return what `restore` needs: block tables are copied, the pool is not."""
        return {
            **vars(self),
            "manager": deepcopy(self.manager),
            "row_ids": list(self.row_ids),
        }

    def copy_storage(self) -> None:
        """Move to tensors and block tables of its own."""
        super().copy_storage()
        self.manager, self.row_ids = deepcopy(self.manager), list(self.row_ids)

    # -- blocks ---------------------------------------------------------------------------

    def _slots(self, num_tokens: int) -> Tensor:
        tables = torch.tensor(self.block_tables, dtype=torch.long, device=self.keys.device)
        return table_slots(tables.view(len(self.row_ids), -1), self.block_size)[:, :num_tokens]

    def _make_room(self, num_new_tokens: int) -> None:
        """Let the pool grow, by half or by what is needed, before anything is taken from it."""
        needed = [self.manager.blocks_needed(row, num_new_tokens or 1) for row in self.row_ids]
        missing = sum(needed) - self.manager.num_free
        if missing <= 0:
            return
        extra = max(missing, len(self.keys) // 2)
        larger = []
        for pool in (self.keys, self.values):
            grown = empty_blocks((len(pool) + extra, *pool.shape[1:]), pool.dtype, pool.device)
            grown[: len(pool)] = pool
            larger.append(grown)
        self.keys, self.values = larger
        self.manager.pool.grow(extra)
