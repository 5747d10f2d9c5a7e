"""Keys and values in blocks: the memory behind block tables. It obeys slots and knows no sequence.

A slot is block_id x block_size + offset. The vectors of all KV heads of one token lie side by side,
so writing and reading a slot is writing and reading one row. Which slot is whose: `kvlab.paging`.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from kvlab.arithmetic.checks import whole_number
from kvlab.errors import CacheFull, InvalidArgument, is_out_of_memory

NO_TOKEN = -1
"""In place of a slot: nothing is there, read zeros."""


class PagedStore:
    """K and V of all layers, each (num_layers, num_blocks, block_size, num_kv_heads, head_dim).

    >>> store = PagedStore(num_layers=1, num_blocks=4, block_size=2, num_kv_heads=1, head_dim=3)
    >>> token = torch.ones(1, 1, 3)  # (tokens, num_kv_heads, head_dim)
    >>> store.write(0, torch.tensor([5]), token, token)
    >>> keys, values = store.gather(0, torch.tensor([[NO_TOKEN, 5]]))
    >>> keys.tolist()
    [[[[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]]]
    """

    def __init__(
        self,
        *,
        num_layers: int,
        num_blocks: int,
        block_size: int,
        num_kv_heads: int,
        head_dim: int,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> None:
        """Reserve all the memory now; what it contains does not matter."""
        sizes = {
            "num_layers": num_layers,
            "num_blocks": num_blocks,
            "block_size": block_size,
            "num_kv_heads": num_kv_heads,
            "head_dim": head_dim,
        }
        shape = tuple(whole_number(name, value) for name, value in sizes.items())
        self.num_layers, self.num_blocks, self.block_size = shape[:3]
        self.keys = empty_blocks(shape, dtype, device)
        self.values = empty_blocks(shape, dtype, device)

    @property
    def block_nbytes(self) -> int:
        """Bytes of one block: K and V of block_size tokens in all layers."""
        return self.reserved_nbytes // self.num_blocks

    @property
    def reserved_nbytes(self) -> int:
        """Bytes allocated for all blocks."""
        return self.keys.nbytes + self.values.nbytes

    def write(self, layer_idx: int, slots: Tensor, keys: Tensor, values: Tensor) -> None:
        """Put tokens, (tokens, num_kv_heads, head_dim), into their slots, (tokens,)."""
        write_slots(self.keys[layer_idx], slots, keys)
        write_slots(self.values[layer_idx], slots, values)

    def gather(self, layer_idx: int, slots: Tensor) -> tuple[Tensor, Tensor]:
        """Return keys and values of slots, (batch, kv_len), as attention wants them.

        Both are (batch, num_kv_heads, kv_len, head_dim), zero where the slot is `NO_TOKEN`.
        """
        return read_slots(self.keys[layer_idx], slots), read_slots(self.values[layer_idx], slots)

    def copy_blocks(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Copy whole blocks, (from, to) one after the other, in all layers."""
        self.copy_blocks_to(self, pairs)

    def copy_blocks_to(self, other: PagedStore, pairs: Iterable[tuple[int, int]]) -> None:
        """Copy blocks of this store into blocks of another: out to the host, or back in."""
        if other.keys[:, 0].shape != self.keys[:, 0].shape:
            rule = f"its blocks must be {tuple(self.keys[:, 0].shape)}, as here"
            raise InvalidArgument("other", tuple(other.keys[:, 0].shape), rule)
        for source, target in pairs:
            check_block("from", source, self.num_blocks)
            check_block("to", target, other.num_blocks)
            other.keys[:, target] = self.keys[:, source]
            other.values[:, target] = self.values[:, source]


def empty_blocks(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device | str) -> Tensor:
    """Return uninitialised memory; `CacheFull` where the machine has not so much."""
    if max(shape) >= 2**63:  # more than torch can count
        raise CacheFull(f"no memory for blocks of shape {shape}")
    try:
        with torch.inference_mode(False):  # memory made inside that mode can't be written outside
            return torch.empty(shape, dtype=dtype, device=device)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise CacheFull(f"no memory for blocks of shape {shape}") from None


def write_slots(blocks: Tensor, slots: Tensor, states: Tensor) -> None:
    """Put (tokens, num_kv_heads, head_dim) into slots of one layer's blocks."""
    blocks.view(-1, *blocks.shape[2:])[slots] = states  # (slots, num_kv_heads, head_dim)


def read_slots(blocks: Tensor, slots: Tensor) -> Tensor:
    """Return (batch, num_kv_heads, kv_len, head_dim) from slots (batch, kv_len) of one layer.

    What lies in slots that are not asked for may be anything, NaN too: 0 times NaN is NaN, so a
    mask over scores would not protect the values.
    """
    rows = blocks.view(-1, *blocks.shape[2:])[slots.clamp(min=0)]  # (batch, kv_len, heads, dim)
    empty = (slots == NO_TOKEN)[:, :, None, None]
    return rows.masked_fill_(empty, 0).transpose(1, 2)


def table_slots(block_tables: Tensor, block_size: int) -> Tensor:
    """Return the slots of tables (batch, blocks) position by position; a block below 0 has none.

    >>> table_slots(torch.tensor([[2, -1]]), block_size=3).tolist()
    [[6, 7, 8, -1, -1, -1]]
    """
    offsets = torch.arange(block_size, device=block_tables.device)
    slots = block_tables[:, :, None] * block_size + offsets
    return slots.masked_fill((block_tables < 0)[:, :, None], NO_TOKEN).flatten(1)


def check_block(argument: str, block_id: int, num_blocks: int) -> None:
    """Refuse a block that is not in the pool: a negative one would silently be another."""
    if not 0 <= block_id < num_blocks:
        raise InvalidArgument(argument, block_id, f"blocks run from 0 to {num_blocks - 1}")
