"""Try to break the block manager with many random operations, in pools of many shapes.

    python -m kvlab.paging.stress --operations 1000000

The same seed makes the same moves. All rules are checked every 1,000 operations and at the end of
each round, when every sequence has ended and not one block may be missing.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter

from kvlab.arithmetic.checks import whole_number
from kvlab.paging.block_manager import BlockManager
from kvlab.paging.prefix_index import Identity
from kvlab.paging.random_moves import RandomMoves
from kvlab.paging.shadow import RuleBroken

ROUND = 5_000
"""Operations with one pool; then another shape is drawn."""


def stress(
    operations: int, *, seed: int, check_every: int = 1_000, round_length: int = ROUND
) -> Counter[str]:
    """Make so many random moves; return how often each was made. Raises `RuleBroken`.

    >>> sum(stress(200, seed=1).values()) >= 200
    True
    """
    rng, done, made = random.Random(seed), Counter[str](), 0
    operations = whole_number("operations", operations)
    while made < operations:
        run = RandomMoves(random_manager(rng), rng)
        for number in range(min(round_length, operations - made)):
            made += 1
            try:
                run.step()
                if number % check_every == check_every - 1:
                    run.check()
            except RuleBroken as error:
                raise RuleBroken(f"seed {seed}, operation {made}: {error}") from error
        run.finish()
        done += run.done
        done += Counter({"evicted": run.manager.stats().evicted_blocks})
        done += Counter({k: v for k, v in run.manager.counts.items() if k in ("copied", "merged")})
        done += Counter({"cached tokens hit": run.manager.counts["hit"], "rounds": 1})
    return done


def random_manager(rng: random.Random) -> BlockManager:
    """Return an empty block manager of a random shape: size, window, hash, order of blocks."""
    num_blocks, block_size = rng.choice([3, 8, 20, 60]), rng.choice([1, 2, 3, 4, 7, 16])
    order = rng.sample(range(num_blocks), num_blocks)
    sort = rng.choice(["plain", "plain", "collide", "no prefixes", "window"])
    if sort == "window":
        window = rng.randint(1, 3 * block_size)
        return BlockManager(
            num_blocks, block_size, block_order=order, prefix_caching=False, sliding_window=window
        )
    return BlockManager(
        num_blocks,
        block_size,
        block_order=order,
        prefix_caching=sort != "no prefixes",
        hash_block=always_the_same if sort == "collide" else hash,
    )


def always_the_same(identity: Identity) -> int:
    """Return the worst hash there is: every block has this one."""
    return 7


def main() -> None:
    """Run from a terminal and print what was done."""
    parser = argparse.ArgumentParser(description="Try to break the block manager.")
    parser.add_argument("--operations", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--check-every", type=int, default=1_000)
    given = parser.parse_args()
    done = stress(given.operations, seed=given.seed, check_every=given.check_every)
    for name, number in done.most_common():
        print(f"{number:>12,}  {name}")
    print("every rule held")


if __name__ == "__main__":
    main()
