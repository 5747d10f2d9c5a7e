"""What the Llama asks of a cache: three calls, and one more for caches that want to look.

A cache is anything with these methods; it need not inherit from anything. Position lives here and
nowhere else: `get_seq_length()` is the absolute position of the next token. No code that stores.
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
    """A cache that decides by attention weights what to keep. Optional."""

    wants_weights: bool

    def observe(self, attention_weights: Tensor, layer_idx: int, /) -> None:
        """See one layer's softmax, (batch, num_heads, q_len, kv_len), after its `update`."""
        ...


def wants_weights(cache: object) -> bool:
    """Return whether `cache` asks for the attention weights of every layer.

    A model computes them (the slower way) only for such a cache.

    >>> wants_weights(None)
    False
    """
    return bool(getattr(cache, "wants_weights", False))
