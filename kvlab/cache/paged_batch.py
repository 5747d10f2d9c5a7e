"""One forward pass over sequences of different lengths: a cache as the Llama sees it.

Rows are lined up at their right ends and padded on the left, so every row's last new token stands
in the last column. A row may be one decode step and the next a chunk of a prompt.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from kvlab.cache.paged_store import NO_TOKEN, PagedStore, table_slots
from kvlab.errors import InvalidArgument
from kvlab.paging import BlockManager


class Span(NamedTuple):
    """Positions start to end - 1 of a sequence, to be computed; those before are computed."""

    seq_id: Hashable
    start: int
    end: int


class PagedBatch:
    """The three calls of `KVCacheProtocol` over a store of blocks; made for one forward pass.

    Give the model `input_ids` (batch, q_len) and `attention_mask` (batch, kv_len) from here. Rows
    are the spans, in their order. A column is what the Llama's masks call a slot; positions follow
    from the mask, for each row counts its own tokens.
    """

    def __init__(
        self,
        store: PagedStore,
        manager: BlockManager,
        spans: Sequence[tuple[Hashable, int, int]],
        new_tokens: Sequence[Sequence[int]],
    ) -> None:
        """Look up all slots, once for all layers; the manager has given slots up to each `end`.

        new_tokens: for each span its end - start token ids.
        """
        self.store, self.spans = store, [Span(*span) for span in spans]
        if not self.spans:
            raise InvalidArgument("spans", spans, "name at least one sequence")
        for span in self.spans:
            check_span(manager, span)
        lengths = [end - start for _, start, end in self.spans]
        if [len(tokens) for tokens in new_tokens] != lengths:
            rule = f"must be as many in each row as its span has: {lengths}"
            raise InvalidArgument("new_tokens", [len(tokens) for tokens in new_tokens], rule)
        self.q_len = max(lengths)
        self.kv_len = max(end for _, _, end in self.spans)
        device = store.keys.device
        slots = torch.full((len(spans), self.kv_len), NO_TOKEN)
        mask, is_new = torch.zeros_like(slots), torch.zeros(len(spans), self.q_len).bool()
        for row, (seq_id, start, end) in enumerate(self.spans):
            table = torch.tensor([manager.block_table(seq_id)])
            slots[row, self.kv_len - end :] = table_slots(table, manager.block_size)[0, :end]
            mask[row, self.kv_len - end :] = 1
            is_new[row, self.q_len - (end - start) :] = True
        rows = [[0] * (self.q_len - len(tokens)) + list(tokens) for tokens in new_tokens]
        self.input_ids = torch.tensor(rows, device=device)  # (batch, q_len)
        self.attention_mask, self.slots = mask.to(device), slots.to(device)  # (batch, kv_len)
        self.is_new = is_new.to(device)  # (batch, q_len)
        self.new_slots = self.slots[:, -self.q_len :][self.is_new]  # (new tokens of all rows,)

    # -- what the Llama asks --------------------------------------------------------------

    def get_seq_length(self) -> int:
        """Return the columns before the first new one."""
        return self.kv_len - self.q_len

    def get_mask_sizes(self, q_len: int, layer_idx: int) -> tuple[int, int]:
        """Return (columns of keys, 0): every row is handed out whole."""
        return self.kv_len, 0

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int
    ) -> tuple[Tensor, Tensor]:
        """Write the new tokens of all rows to their slots; return every row's keys and values.

        In: (batch, num_kv_heads, q_len, head_dim). Out: (batch, num_kv_heads, kv_len, head_dim),
        zero in the padding.
        """
        given = (key_states.shape[0], key_states.shape[2])
        if given != tuple(self.is_new.shape):
            rule = f"(batch, q_len) must be {tuple(self.is_new.shape)}, as in input_ids"
            raise InvalidArgument("key_states", given, rule)
        new = (states.transpose(1, 2)[self.is_new] for states in (key_states, value_states))
        self.store.write(layer_idx, self.new_slots, *new)
        return self.store.gather(layer_idx, self.slots)


def check_span(manager: BlockManager, span: Span) -> None:
    """Refuse positions without slots, and a write to a block that is not the sequence's own."""
    seq_id, start, end = span
    if not 0 <= start < end <= manager.num_tokens(seq_id):
        rule = f"must lie in the {manager.num_tokens(seq_id)} tokens that have slots"
        raise InvalidArgument("span", (start, end), rule)
    size = manager.block_size
    for block_id in manager.block_table(seq_id)[start // size : -(-end // size)]:
        if block_id < 0 or not manager.may_write(block_id):
            rule = f"block {block_id} is not for {seq_id!r} alone: it can't be written"
            raise InvalidArgument("span", (start, end), rule)
