"""What one step does, decided before it runs: the order that a scheduler gives to a worker."""

from dataclasses import dataclass, field
from typing import NamedTuple

from kvlab.serving.sequence import Sequence

COPY, SWAP_OUT, SWAP_IN = "copy", "swap_out", "swap_in"


class Move(NamedTuple):
    """One block to copy: within the pool, or to and from a block of host memory.

    Moves are carried out in their order, before anything is computed: a later one may write to a
    block that an earlier one saves.
    """

    kind: str
    source: int
    target: int


class Chunk(NamedTuple):
    """Positions start to end - 1 of a sequence, to be computed in one go."""

    seq: Sequence
    start: int
    end: int


@dataclass(slots=True)
class StepLoad:
    """What a step asks of the device, summed over its batch.

    `tokens` are computed, `emitting` of the sequences need logits, `pairs` are query-key pairs,
    `context` the tokens cached after the step, `moved_blocks` go to or come from the host.
    `spans`, the (start, end) of each sequence, are only filled for layers that need them.
    """

    batch: int = 0
    tokens: int = 0
    emitting: int = 0
    pairs: int = 0
    context: int = 0
    moved_blocks: int = 0
    spans: list[tuple[int, int]] = field(default_factory=list)

    def next_decode(self) -> None:
        """Become the load of the next step of the same batch, all of it decoding."""
        self.context += self.batch
        self.pairs = self.context


@dataclass(slots=True)
class StepPlan:
    """One step: blocks to move, sequences that decode one token, chunks of prompts.

    `emitting` are the sequences that get a token, in the order in which a worker returns them:
    a sample that is about to part from another (`forked_from`) takes its token from the same
    logits. No sequence is both preempted and in the batch.
    """

    step: int
    moves: list[Move] = field(default_factory=list)
    decodes: list[Sequence] = field(default_factory=list)
    chunks: list[Chunk] = field(default_factory=list)
    emitting: list[Sequence] = field(default_factory=list)
    preempted: list[Sequence] = field(default_factory=list)
    context: int = 0

    @property
    def batch(self) -> int:
        """Sequences that compute something."""
        return len(self.decodes) + len(self.chunks)

    def load(self) -> StepLoad:
        """Return what the step asks of the device; only before the step is completed."""
        decodes, context = len(self.decodes), self.context
        load = StepLoad(decodes, decodes, len(self.emitting), context, context)
        for _, start, end in self.chunks:
            load.batch += 1
            load.tokens += end - start
            load.pairs += triangle(end) - triangle(start)
            load.context += end
        load.moved_blocks = sum(move.kind != COPY for move in self.moves)
        return load

    def spans(self) -> list[tuple[int, int]]:
        """Return the positions that each sequence computes; only before the step is completed."""
        decoded = [(seq.num_tokens - 1, seq.num_tokens) for seq in self.decodes]
        return decoded + [(start, end) for _, start, end in self.chunks]


def triangle(n: int) -> int:
    """Return 1 + 2 + ... + n: the query-key pairs of the first n tokens.

    >>> triangle(4)
    10
    """
    return n * (n + 1) // 2
