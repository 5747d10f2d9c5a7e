"""How one memory is shared by weights, overhead, caches of several users, and what is left.

The memory is taken as one pool. Left out: ranks, blocks and what an engine reserves (`sizing`).
"""

from dataclasses import dataclass

from kvlab.arithmetic.checks import whole_number
from kvlab.arithmetic.dtypes import CacheDtype
from kvlab.arithmetic.request import size_request
from kvlab.arithmetic.storage import ModelStorage


@dataclass(frozen=True, slots=True)
class MemorySplit:
    """Everything in bytes; `request_bytes` is one user's cache at its context."""

    capacity_bytes: int
    weights_bytes: int
    overhead_bytes: int
    bytes_per_token: int
    request_bytes: int
    users: int

    @property
    def cache_bytes(self) -> int:
        """The caches of all users."""
        return self.users * self.request_bytes

    @property
    def free_bytes(self) -> int:
        """What is left; below zero when it does not fit."""
        return self.capacity_bytes - self.weights_bytes - self.overhead_bytes - self.cache_bytes

    @property
    def users_that_fit(self) -> int:
        """Whole users whose caches fit beside weights and overhead."""
        room = self.capacity_bytes - self.weights_bytes - self.overhead_bytes
        return max(room, 0) // self.request_bytes

    @property
    def users_at_weights(self) -> float:
        """Users at which the caches take as many bytes as the weights."""
        return self.weights_bytes / self.request_bytes


def split_memory(
    model: ModelStorage,
    *,
    context: int,
    users: int,
    weights_bytes: int,
    capacity_bytes: int,
    overhead_bytes: int = 0,
    cache_dtype: "str | CacheDtype" = "bf16",
) -> MemorySplit:
    """Return how `capacity_bytes` are shared when `users` hold `context` tokens each.

    Llama 3.1 8B in 16 bit on a nominal 80 GB card, 8,192 tokens each:

    >>> from kvlab.arithmetic.reader import read_model
    >>> split = split_memory(read_model("llama-3.1-8b"), context=8192, users=24,
    ...     weights_bytes=2 * 8_030_261_248, capacity_bytes=80 * 10**9, overhead_bytes=2 * 10**9)
    >>> split.request_bytes / 2**30, split.users_that_fit, round(split.users_at_weights, 2)
    (1.0, 57, 14.96)
    """
    one = size_request(model, context=context, cache_dtype=cache_dtype)
    return MemorySplit(
        whole_number("capacity_bytes", capacity_bytes),
        whole_number("weights_bytes", weights_bytes, minimum=0),
        whole_number("overhead_bytes", overhead_bytes, minimum=0),
        one.bytes_per_token,
        max(one.request_bytes, 1),
        whole_number("users", users),
    )
