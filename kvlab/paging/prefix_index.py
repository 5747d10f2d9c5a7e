"""Which full block holds which tokens after which others: how a later request finds a prefix.

A hash only says where to look. A hit counts after (parent, tokens, extra keys) were compared, so
two blocks with the same hash can't be taken for one another, not even on purpose.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

ROOT = -1
"""The parent of a sequence's first block."""

NONE = -1
"""No block."""

TokenIds = Sequence[int]
"""Token ids; or any sequence whose slices are hashable and equal where the tokens are."""


class ExtraKeys(NamedTuple):
    """What else must be equal before two requests may share: whose they are and what reads them.

    Each has its own place, so adapter "x" and salt "x" differ.

    >>> ExtraKeys(salt="x") == ExtraKeys(adapter="x")
    False
    """

    salt: str | None = None
    adapter: str | None = None
    model: str | None = None


Identity = tuple[int, Hashable, Hashable]
"""What a cached block is: (block before it, tokens in it, extra keys). A plain tuple, for speed."""


class PrefixIndex:
    """From (parent block, tokens, extra keys) to the block that holds their keys and values.

    The parent stands for all tokens before: the same words after other words are another block.

    >>> index = PrefixIndex([None] * 4)
    >>> index.add_or_find(2, (ROOT, (5, 6), ()))
    2
    >>> index.find((ROOT, (5, 6), ())), index.find((2, (5, 6), ()))
    (2, -1)
    """

    def __init__(
        self, identity_of: list[Identity | None], hash_block: Callable[[Identity], int] = hash
    ) -> None:
        """Keep the identity of each cached block in `identity_of`, None for all others.

        `hash_block` may collide as often as it likes: that costs time and nothing else.
        """
        self.identity_of, self.hash_block = identity_of, hash_block
        self.hash_of = [0] * len(identity_of)
        self.first_with: dict[int, int] = {}  # hash -> the cached block with it that came last
        self.next_with = [NONE] * len(identity_of)  # ... and the one with the same hash before it

    def __len__(self) -> int:
        return sum(identity is not None for identity in self.identity_of)

    def find(self, identity: Identity) -> int:
        """Return the block with exactly this identity, or `NONE`."""
        block_id = self.first_with.get(self.hash_block(identity), NONE)
        while block_id != NONE and self.identity_of[block_id] != identity:
            block_id = self.next_with[block_id]  # only their hashes are equal
        return block_id

    def add_or_find(self, block_id: int, identity: Identity) -> int:
        """Make a full, computed block findable; or return the other one that already is."""
        key, first_with, identity_of = self.hash_block(identity), self.first_with, self.identity_of
        first = known = first_with.get(key, NONE)
        while known != NONE:
            if identity_of[known] == identity:
                return known
            known = self.next_with[known]
        identity_of[block_id], self.hash_of[block_id] = identity, key
        first_with[key], self.next_with[block_id] = block_id, first
        return block_id

    def forget(self, block_id: int) -> None:
        """Take out a block that is about to hold other tokens."""
        key, after = self.hash_of[block_id], self.next_with[block_id]
        self.identity_of[block_id] = None
        before = self.first_with[key]
        if before != block_id:
            while self.next_with[before] != block_id:
                before = self.next_with[before]
            self.next_with[before] = after
        elif after == NONE:
            del self.first_with[key]
        else:
            self.first_with[key] = after

    def longest_match(self, tokens: TokenIds, block_size: int, extra_keys: Hashable) -> list[int]:
        """Return the cached blocks with which `tokens` begin, all full.

        At least one token is left over: its forward pass gives the first new token.
        """
        found: list[int] = []
        block_id, first_with, identity_of = ROOT, self.first_with, self.identity_of
        hash_block = self.hash_block
        for start in range(0, len(tokens) - block_size, block_size):
            part = tokens[start : start + block_size]
            identity = (block_id, tuple(part) if part.__class__ is list else part, extra_keys)
            block_id = first_with.get(hash_block(identity), NONE)
            if block_id != NONE and identity_of[block_id] != identity:
                block_id = self.find(identity)  # another one came first with this hash
            if block_id == NONE:
                break
            if not found and tokens.__class__ is list:
                tokens = tuple(tokens)  # one copy of all, instead of one more for each block
            found.append(block_id)
        return found
