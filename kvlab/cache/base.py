"""One layer's keys and values: what every storage idea of kvlab shares.

`update` and `get_mask_sizes` are written here, once, because position errors live there.
Left to each idea: `allocate`, `store`, `num_kept`, `held`, and what it can undo or reorder.
"""

from __future__ import annotations

import copy
from typing import Self

import torch
from torch import Tensor

from kvlab.cache.hf import LayerAdapter
from kvlab.cache.lengths import row_numbers, token_count
from kvlab.cache.measure import storage_nbytes
from kvlab.errors import CacheFull, InvalidArgument, Unsupported


class KVLayer(LayerAdapter):
    """The keys and values of one transformer layer, (batch, num_kv_heads, tokens, head_dim).

    `cumulative_length` counts the tokens seen. It is also the position of the next token, even
    in a layer that keeps fewer tokens than it has seen.
    """

    wants_weights = False  # True where `observe` decides what to keep
    wants_queries = False  # True where `observe_queries` does
    picks_tokens = False  # True where a padded batch would go wrong
    own_mask_reason = ""  # why one mask for all layers, as transformers makes it, will not do
    repositions = False  # True where keys are turned to other places than their own
    capacity: int | None = None  # most tokens the layer can hold; None: no limit

    def __init__(self) -> None:
        super().__init__()
        self.cumulative_length = 0
        self.batch_size = -1  # known at the first update

    # -- what each storage idea writes ----------------------------------------------------

    def allocate(self, key_states: Tensor, value_states: Tensor) -> None:
        """Make room of the right kind for tokens like these; store nothing yet."""
        raise NotImplementedError

    def store(self, key_states: Tensor, value_states: Tensor) -> tuple[Tensor, Tensor]:
        """Keep the new tokens; return the keys and values that attention may see."""
        raise NotImplementedError

    def num_kept(self) -> int:
        """Return how many tokens are physically held."""
        raise NotImplementedError

    def held(self) -> tuple[Tensor, ...]:
        """Return tensors, or views, with the tokens held and nothing more."""
        raise NotImplementedError

    def keep_first(self, n: int) -> None:
        """Forget all tokens but the first `n`, where 0 <= n < tokens seen."""
        raise Unsupported(f"{type(self).__name__} cannot be shortened")

    def take_rows(self, rows: Tensor) -> None:
        """Let row i of the batch become what row `rows[i]` was, in tensors of its own."""
        raise Unsupported(f"{type(self).__name__} cannot reorder the sequences of a batch")

    def observe(self, attention_weights: Tensor) -> None:
        """See the attention weights, (batch, num_heads, q_len, kv_len); does nothing here."""

    def observe_queries(self, query_states: Tensor) -> None:
        """See the queries, (batch, num_heads, q_len, head_dim); does nothing here."""

    # -- what is the same for all ---------------------------------------------------------

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        """Store q_len new tokens; return the keys and values that attention may see.

        The length moves last: when `store` fails, the layer has seen nothing new.
        """
        self._check_shapes(key_states, value_states)
        self._check_room(key_states.shape[2])
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        self._check_kind(key_states)
        visible = self.store(key_states, value_states)
        self.cumulative_length += key_states.shape[2]
        return visible

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Allocate, now that the first tokens show shape, dtype and device."""
        self.batch_size, self.num_kv_heads, _, self.head_dim = key_states.shape
        self.dtype, self.device = key_states.dtype, key_states.device
        self.allocate(key_states, value_states)
        self.is_initialized = True

    def get_seq_length(self) -> int:
        """Return the tokens seen: the position of the next token, not what is kept."""
        return self.cumulative_length

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Return (keys that `update` will return, absolute position of the first of them)."""
        kept = self.num_kept()
        return kept + query_length, self.cumulative_length - kept

    def get_next_position(self) -> int:
        """Return the place at which RoPE turns the next token: here, the tokens seen."""
        return self.cumulative_length

    def get_key_slots(self, query_length: int, *, windowed: bool) -> Tensor | None:
        """Return which tokens `update` will return, where a mask must know; see `PlacingCache`."""

    @property
    def nbytes(self) -> int:
        """Bytes of the keys and values of the tokens held."""
        return sum(tensor.nbytes for tensor in self.held()) if self.is_initialized else 0

    @property
    def reserved_nbytes(self) -> int:
        """Bytes allocated, whether or not tokens fill them yet."""
        return storage_nbytes(self)

    def truncate_to(self, n: int) -> None:
        """Keep the first `n` tokens, 0 <= n <= tokens seen."""
        n = token_count(n, self.cumulative_length)
        if n < self.cumulative_length:
            self.keep_first(n)
            self.cumulative_length = n

    def select_rows(self, rows: Tensor) -> None:
        """Keep these sequences of the batch, in this order; a row may be named twice."""
        rows = row_numbers("rows", rows).to(self.device)
        if len(rows) == 0 or not 0 <= int(rows.min()) <= int(rows.max()) < self.batch_size:
            rule = f"must name rows from 0 to {self.batch_size - 1}"
            raise InvalidArgument("rows", rows.tolist(), rule)
        with torch.inference_mode(False):  # the new tensors must stay writable in any mode
            self.take_rows(rows)
        self.batch_size = len(rows)

    def reset(self) -> None:
        """Become as new: no tokens, no memory."""
        self.keys = self.values = None
        self.is_initialized = False
        self.cumulative_length, self.batch_size = 0, -1

    # -- going back -----------------------------------------------------------------------

    def snapshot(self) -> dict[str, object]:
        """Return what `restore` needs, without copying a tensor.

        Right for a layer that replaces its tensors, or writes only past the tokens it holds.
        """
        return dict(vars(self))

    def restore(self, snapshot: dict[str, object]) -> None:
        """Become again what the layer was at `snapshot`."""
        vars(self).clear()
        vars(self).update(snapshot)

    def clone(self) -> Self:
        """Return a layer with the same tokens that shares no memory with this one."""
        twin = copy.copy(self)
        twin.copy_storage()
        return twin

    def copy_storage(self) -> None:
        """Move to tensors of its own, so that writing disturbs nobody who holds the old ones."""
        with torch.inference_mode(False):  # the new tensors must stay writable in any mode
            for name, value in vars(self).items():
                if isinstance(value, Tensor):
                    setattr(self, name, value.detach().clone())

    # -- clear refusals -------------------------------------------------------------------

    def _check_shapes(self, key_states: Tensor, value_states: Tensor) -> None:
        shapes = tuple(key_states.shape), tuple(value_states.shape)
        if key_states.ndim != 4 or shapes[0][:3] != shapes[1][:3]:
            rule = "must both be (batch, num_kv_heads, q_len, head_dim)"
            raise InvalidArgument("key_states, value_states", shapes, rule)

    def _check_room(self, q_len: int) -> None:
        if self.capacity is not None and self.num_kept() + q_len > self.capacity:
            raise CacheFull(
                f"cache full: {self.num_kept()} of {self.capacity} tokens held,"
                f" no room for {q_len} more"
            )

    def _check_kind(self, states: Tensor) -> None:
        held = (self.batch_size, self.num_kv_heads, self.head_dim, self.dtype, self.device)
        batch, num_kv_heads, _, head_dim = states.shape
        offered = (batch, num_kv_heads, head_dim, states.dtype, states.device)
        if offered != held:
            rule = "(batch, KV heads, head_dim, dtype, device) must equal the cache's: "
            raise InvalidArgument("key_states", offered, rule + str(held))
