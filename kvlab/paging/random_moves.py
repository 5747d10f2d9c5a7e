"""Random moves on a block manager, checked against a shadow memory. `stress.py` makes many."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

from kvlab.errors import OutOfBlocks
from kvlab.paging.block_manager import BlockManager
from kvlab.paging.rules import broken_rules
from kvlab.paging.shadow import RuleBroken, Shadow, random_tokens

MOVES = {"arrive": 20, "append": 60, "commit": 50, "fork": 8, "truncate": 6, "end": 16, "drop": 0.1}
"""The moves, and how often each is made."""


@dataclass
class RandomMoves:
    """A block manager under random moves, and beside it what it should hold."""

    manager: BlockManager
    rng: random.Random
    shadows: dict[int, Shadow] = field(default_factory=dict)
    done: Counter[str] = field(default_factory=Counter)
    born: int = 0

    def __post_init__(self) -> None:
        self.memory = [0] * (self.manager.num_blocks * self.manager.block_size)
        self.longest = max(2, len(self.memory) // 3)
        self.moves, self.weights = list(MOVES), list(MOVES.values())

    def step(self) -> None:
        """Make one random move; a refusal must leave everything as it was."""
        (move,) = self.rng.choices(self.moves, self.weights)
        if not self.shadows and move != "drop":
            move = "arrive"
        before = self._outline()
        try:
            getattr(self, f"_{move}")()
            self.done[move] += 1
        except OutOfBlocks as refusal:
            self.done["refused"] += 1
            if refusal.needed <= refusal.available:
                raise RuleBroken(f"refused although there was room: {refusal}") from None
            if self.manager.sliding_window is None and before != self._outline():
                raise RuleBroken(f"a refused {move} changed the pool") from None
            if self.shadows:
                self.end(self._pick())  # somebody has to make room, or all would ask for ever

    def _outline(self) -> tuple[int, int, int]:
        tokens = [table.num_tokens for table in self.manager.tables.values()]
        return self.manager.num_free, len(tokens), sum(tokens)

    def check(self) -> None:
        """Check every rule, and read back every sequence."""
        if broken := broken_rules(self.manager):
            raise RuleBroken("; ".join(broken))
        for seq_id in self.shadows:
            self._read_back(seq_id)

    def finish(self) -> None:
        """End all sequences; nothing may be lost."""
        for seq_id in list(self.shadows):
            self.end(seq_id)
        self.check()
        self.manager.drop_idle()
        if len(self.manager.pool.free_block_ids) != self.manager.num_blocks:
            raise RuleBroken("blocks were lost")

    # -- the moves ------------------------------------------------------------------------

    def arrive(self, tokens: list[int], tenant: str, chunk: int | None) -> int:
        """Let a prompt come, whole or with a first chunk; return its number."""
        manager, seq_id = self.manager, self.born
        possible = manager.can_allocate(tokens, num_new_tokens=chunk, extra_keys=tenant)
        expected = manager.match_prefix(tokens, tenant)
        try:
            cached = manager.allocate(seq_id, tokens, num_new_tokens=chunk, extra_keys=tenant)
        except OutOfBlocks:
            if possible:
                raise RuleBroken("refused what can_allocate had promised") from None
            raise
        if not possible or cached != expected or cached >= len(tokens):
            raise RuleBroken(f"{cached} of {len(tokens)} tokens were cached, not {expected}")
        self.born += 1
        self.shadows[seq_id] = Shadow(tokens[: manager.num_tokens(seq_id)], tenant, cached)
        self._write(seq_id)
        return seq_id

    def append(self, seq_id: int, tokens: list[int]) -> None:
        """Let a sequence grow by these tokens."""
        self.manager.append(seq_id, len(tokens))
        self.shadows[seq_id].tokens += tokens
        self._write(seq_id)

    def commit(self, seq_id: int, num_computed: int) -> None:
        """Say that tokens are computed; all of them must still be there."""
        self.manager.commit(seq_id, self.shadows[seq_id].tokens, num_computed)
        self._read_back(seq_id)

    def fork(self, seq_id: int) -> int:
        """Let a twin of a sequence come; return its number."""
        child, shadow, self.born = self.born, self.shadows[seq_id], self.born + 1
        self.manager.fork(seq_id, child)
        self.shadows[child] = Shadow(list(shadow.tokens), shadow.tenant, shadow.written)
        return child

    def truncate(self, seq_id: int, n: int) -> None:
        """Take the last tokens back."""
        shadow = self.shadows[seq_id]
        self.manager.truncate(seq_id, n)
        shadow.tokens, shadow.written = shadow.tokens[:n], n

    def end(self, seq_id: int) -> None:
        """Let a sequence go."""
        self.manager.free(seq_id)
        del self.shadows[seq_id]

    # -- the same at random ---------------------------------------------------------------

    def _pick(self) -> int:
        return self.rng.choice(list(self.shadows))

    def _arrive(self) -> None:
        """Prompts begin with one of four texts, so that many begin alike."""
        rng, length = self.rng, self.rng.randint(1, self.longest)
        common = max(rng.randint(0, length), rng.randint(0, length))
        text = random.Random(rng.randrange(4))
        tokens = random_tokens(text, common) + random_tokens(rng, length - common)
        chunk = rng.choice([None, rng.randint(0, length)])
        self.arrive(tokens, rng.choice(["", "", "ann", "bob"]), chunk)

    def _append(self) -> None:
        most = self.rng.choice([1, 1, 1, 2 * self.manager.block_size])
        self.append(self._pick(), random_tokens(self.rng, self.rng.randint(1, most)))

    def _commit(self) -> None:
        seq_id = self._pick()
        self.commit(seq_id, self.rng.randint(0, len(self.shadows[seq_id].tokens)))

    def _fork(self) -> None:
        self.fork(self._pick())

    def _truncate(self) -> None:
        seq_id = self._pick()
        if not self.manager.tables[seq_id].num_dropped:  # what left the window can't come back
            self.truncate(seq_id, self.rng.randint(0, len(self.shadows[seq_id].tokens)))

    def _end(self) -> None:
        self.end(self._pick())

    def _drop(self) -> None:
        self.manager.drop_idle()

    # -- the shadow memory ----------------------------------------------------------------

    def _write(self, seq_id: int) -> None:
        """Carry out the copies, then write what is new: only to blocks with a single owner."""
        manager, shadow, size = self.manager, self.shadows[seq_id], self.manager.block_size
        for source, target in manager.copies():
            part = self.memory[source * size : (source + 1) * size]
            self.memory[target * size : (target + 1) * size] = part
        start, end, prints = shadow.written, len(shadow.tokens), shadow.fingerprints()
        for position, slot in enumerate(manager.slot_mapping(seq_id, start, end), start):
            if not manager.may_write(slot // size):
                raise RuleBroken(f"{seq_id} would write to a block that is not its own")
            self.memory[slot] = prints[position]
        shadow.written = end

    def _read_back(self, seq_id: int) -> None:
        shadow = self.shadows[seq_id]
        first = self.manager.tables[seq_id].num_dropped * self.manager.block_size
        slots = self.manager.slot_mapping(seq_id, first, len(shadow.tokens))
        if [self.memory[slot] for slot in slots] != shadow.fingerprints()[first:]:
            raise RuleBroken(f"{seq_id} does not read what it wrote")
