"""A paged cache: many sequences of any lengths, scattered over one pool of blocks and sharing it.

`BlockManager` says whose token lies where, `PagedStore` holds the keys and values, and here the two
are kept in step. Left out: whom to admit or preempt when the pool is full (`kvlab.serving`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol, Self

import torch

from kvlab.cache.paged_batch import PagedBatch, Span
from kvlab.cache.paged_store import PagedStore
from kvlab.errors import InvalidArgument
from kvlab.paging import BlockManager
from kvlab.paging.waste import paged_use

SeqId = Hashable


class Shapes(Protocol):
    """What a model's config must say: `LlamaConfig` does."""

    num_layers: int
    num_kv_heads: int
    head_dim: int


class PagedCache:
    """Sequences by name, each a list of tokens whose keys and values are in the pool.

    A step feeds new tokens of any number of sequences; it is done as a whole or not at all:

        with cache.step({"ann": [5, 6, 7], "bob": [9]}) as batch:
            logits = model(batch.input_ids, cache=batch, attention_mask=batch.attention_mask)

    `nbytes` counts the tokens held, a shared one once; `blocks_nbytes` the blocks in use, with
    their empty slots; `reserved_nbytes` the whole pool.
    """

    def __init__(self, store: PagedStore, manager: BlockManager) -> None:
        sizes = (store.num_blocks, store.block_size)
        if sizes != (manager.num_blocks, manager.block_size):
            rule = f"must be those of the store, {sizes}"
            given = (manager.num_blocks, manager.block_size)
            raise InvalidArgument("num_blocks, block_size", given, rule)
        self.store, self.manager = store, manager
        self.tokens: dict[SeqId, list[int]] = {}  # computed, in order

    @classmethod
    def of(
        cls,
        config: Shapes,
        *,
        num_blocks: int,
        block_size: int,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
        **options: object,
    ) -> Self:
        """Return an empty cache for a model; `options` go to its `BlockManager`."""
        manager = BlockManager(num_blocks, block_size, **options)  # type: ignore[arg-type]
        store = PagedStore(
            num_layers=config.num_layers,
            num_blocks=num_blocks,
            block_size=block_size,
            num_kv_heads=config.num_kv_heads,
            head_dim=config.head_dim,
            dtype=dtype,
            device=device,
        )
        return cls(store, manager)

    # -- how much it holds ----------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        """Bytes of the keys and values of the tokens held; a shared token counts once."""
        slot_nbytes = self.store.block_nbytes // self.store.block_size
        return paged_use(self.manager).used * slot_nbytes

    @property
    def blocks_nbytes(self) -> int:
        """Bytes of the blocks in use, empty slots and all."""
        return self.manager.num_used * self.store.block_nbytes

    @property
    def reserved_nbytes(self) -> int:
        """Bytes of the pool."""
        return self.store.reserved_nbytes

    # -- a step ---------------------------------------------------------------------------

    @contextmanager
    def step(
        self,
        new_tokens: Mapping[SeqId, Sequence[int]],
        *,
        extra_keys: Mapping[SeqId, Hashable] | None = None,
    ) -> Iterator[PagedBatch]:
        """Make room for new tokens and give the batch to run; keep them if all goes well.

        A name that is not known yet is a new sequence: tokens that the prefix index has are not
        run again. `extra_keys` say what else must be equal to share. Raises `OutOfBlocks`;
        whatever is raised, here or in the block, the cache is as it was.
        """
        spans: list[Span] = []
        try:
            for seq_id, tokens in new_tokens.items():
                spans.append(self._make_room(seq_id, list(tokens), extra_keys or {}))
            self.store.copy_blocks(self.manager.copies())
            left = [list(new_tokens[s])[start - self._length(s) :] for s, start, _ in spans]
            yield PagedBatch(self.store, self.manager, spans, left)
        except BaseException:
            self._undo(spans)
            raise
        for seq_id, tokens in new_tokens.items():
            self.tokens.setdefault(seq_id, []).extend(tokens)
            self.manager.commit(seq_id, self.tokens[seq_id])

    def _make_room(self, seq_id: SeqId, tokens: list[int], keys: Mapping[SeqId, Hashable]) -> Span:
        if not tokens:
            raise InvalidArgument("new_tokens", tokens, f"{seq_id!r} needs 1 token or more")
        held = self._length(seq_id)
        if seq_id in self.tokens:
            self.manager.append(seq_id, len(tokens))
            return Span(seq_id, held, held + len(tokens))
        cached = self.manager.allocate(seq_id, tokens, extra_keys=keys.get(seq_id, ()))
        return Span(seq_id, cached, len(tokens))

    def _length(self, seq_id: SeqId) -> int:
        return len(self.tokens.get(seq_id, ()))

    def _undo(self, spans: Sequence[Span]) -> None:
        self.store.copy_blocks(self.manager.copies())  # tables may name the copies already
        for seq_id, start, _ in spans:
            if seq_id in self.tokens:
                self.manager.truncate(seq_id, start)
            else:
                self.manager.free(seq_id)

    # -- a sequence -----------------------------------------------------------------------

    def fork(self, parent_id: SeqId, child_id: SeqId) -> None:
        """Let a new sequence begin with all the tokens of another; nothing is copied yet."""
        self.manager.fork(parent_id, child_id)
        self.tokens[child_id] = list(self.tokens[parent_id])

    def truncate(self, seq_id: SeqId, num_tokens: int) -> None:
        """Keep the first `num_tokens` tokens of a sequence."""
        self.manager.truncate(seq_id, num_tokens)
        del self.tokens[seq_id][num_tokens:]

    def free(self, seq_id: SeqId) -> None:
        """Let a sequence go; what others share, or may ask for again, stays."""
        self.manager.free(seq_id)
        del self.tokens[seq_id]
