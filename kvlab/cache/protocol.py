"""What the Llama asks of a cache: three calls, and more for caches that drop tokens.

A cache is anything with these methods; it need not inherit from anything. Position lives here and
nowhere else: `get_seq_length()` is the absolute position of the next token, unless
`get_next_position()` says otherwise. No code that stores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from torch import Tensor


@runtime_checkable
class KVCacheProtocol(Protocol):
    """The three calls of a forward pass, in the order in which they are made.

    >>> from kvlab.cache import make_cache
    >>> isinstance(make_cache("growing", num_layers=2), KVCacheProtocol)
    True
    """

    def get_seq_length(self) -> int:
        """Return how many tokens the cache has seen: the position of the next one.

        transformers' StaticCache answers with a 0-d tensor, so callers wrap it in `int(...)`.
        """
        ...

    def get_mask_sizes(self, q_len: int, layer_idx: int, /) -> tuple[int, int]:
        """Return `(kv_len, kv_offset)`: keys that `update` will return, position of key 0.

        Asked before `update`, with the `q_len` tokens that are about to be stored.
        """
        ...

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, /
    ) -> tuple[Tensor, Tensor]:
        """Store the new keys and values of one layer; return all that attention may see.

        In: (batch, num_kv_heads, q_len, head_dim). Out: (batch, num_kv_heads, kv_len, head_dim).
        """
        ...


class ObservingCache(KVCacheProtocol, Protocol):
    """A cache that decides by queries or attention weights what to keep. Optional.

    Asked after `update` and for each layer, where `wants_queries` or `wants_weights` is true.
    """

    wants_queries: bool
    wants_weights: bool

    def observe_queries(self, query_states: Tensor, layer_idx: int, /) -> None:
        """See one layer's queries as RoPE turned them, (batch, num_heads, q_len, head_dim)."""
        ...

    def observe(self, attention_weights: Tensor, layer_idx: int, /) -> None:
        """See one layer's softmax, (batch, num_heads, q_len, kv_len)."""
        ...


class PlacingCache(KVCacheProtocol, Protocol):
    """A cache whose keys do not simply stand one behind the other. Optional.

    Three numbers, each with its own name, and the same only until the first token is dropped.
    Tokens seen, `get_seq_length()`: what was fed so far, kept or not; masks, the length of an
    `attention_mask` and continuing a text count by it. Tokens kept, `layer.num_kept()`: what
    memory holds. Next position, `get_next_position()`: the place at which RoPE turns the next
    query and key. Positions kept: it is the tokens seen, for the keys held were turned at their
    true places. Positions re-rotated: it is the tokens kept, for the keys are handed out turned
    to 0, 1, 2, ... The Llama asks for all three; transformers takes the first for the third, so
    there a re-rotating cache needs `position_ids` (`call_model` gives them).
    """

    picks_tokens: bool  # keeps some tokens and not others: padding would be taken for tokens

    def get_next_position(self) -> int:
        """Return the place at which RoPE turns the next token."""
        ...

    def get_key_slots(self, q_len: int, layer_idx: int, /, *, windowed: bool) -> Tensor | None:
        """Return which tokens `update` will return, (batch or 1, num_kv_heads or 1, kv_len).

        Each is named by how many tokens were seen before it; -1 is a place with no token. None:
        they may be taken to stand one behind the other from `kv_offset` on, which holds for gaps,
        too, unless the model's layer is `windowed` and counts distances. Asked before `update`.
        """
        ...


def wants_weights(cache: object) -> bool:
    """Return whether `cache` asks for the attention weights of every layer.

    A model computes them (the slower way) only for such a cache.

    >>> wants_weights(None)
    False
    """
    return bool(getattr(cache, "wants_weights", False))
