"""What a sequence should hold, kept beside a block manager to check it.

A number stands for the keys and values of a token. It depends on all tokens before it, as they do,
so a slot that was overwritten, not copied or wrongly shared can't go unseen.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import accumulate

from kvlab.errors import KvlabError


class RuleBroken(KvlabError):
    """The block manager broke one of its rules; the message says which."""


@dataclass
class Shadow:
    """One sequence: its tokens, whose it is, and how many tokens are written.

    >>> first, second = Shadow([1, 2], "ann"), Shadow([3, 2], "ann")
    >>> first.fingerprints()[1] == second.fingerprints()[1]  # the same token after another one
    False
    """

    tokens: list[int]
    tenant: str
    written: int = 0

    def fingerprints(self) -> list[int]:
        """Return for each token a number that depends on it and on all before it."""
        start = hash(self.tenant)
        return list(accumulate(self.tokens, lambda *pair: hash(pair), initial=start))[1:]


def random_tokens(rng: random.Random, n: int) -> list[int]:
    """Return token ids from so small a vocabulary that equal blocks happen by chance."""
    return [rng.randrange(9) for _ in range(n)]
