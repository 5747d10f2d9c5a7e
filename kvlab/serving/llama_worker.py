"""Carries out plans with a real Llama: moves blocks, runs the model, chooses tokens.

All decodes of a step are one forward pass, each chunk of a prompt another: padding a decode to the
length of a chunk would compute far more than it saves.
"""

from collections.abc import Sequence as Items
from time import perf_counter

import torch
from torch import Tensor

from kvlab.cache.paged_batch import PagedBatch
from kvlab.cache.paged_store import PagedStore
from kvlab.errors import InvalidArgument
from kvlab.model.fast_llama import paged_model
from kvlab.model.llama import Llama
from kvlab.model.sampling import Sampler
from kvlab.paging import BlockManager
from kvlab.serving.plan import COPY, SWAP_OUT, Chunk, Move, StepPlan
from kvlab.serving.sequence import Sequence
from kvlab.serving.step_clock import StepClock
from kvlab.serving.worker import price


class LlamaWorker:
    """A model, the store of its pool, and one on the host for swapped blocks (None: no swaps).

    Each sample draws from a generator of its own, so its tokens depend on its own logits alone.
    With a `clock` the seconds are the clock's: the schedule is then the simulator's.
    """

    def __init__(
        self,
        model: Llama,
        manager: BlockManager,
        store: PagedStore,
        host: PagedStore | None = None,
        clock: StepClock | None = None,
    ) -> None:
        self.model = paged_model(model)
        self.manager, self.store, self.host = manager, store, host
        self.step_clock = clock
        self.samplers: dict[int, Sampler] = {}
        self.token_forwards = 0

    def run(self, plan: StepPlan) -> tuple[Items[int], float]:
        """Carry out a plan; return a token for each of `plan.emitting`, and the seconds taken."""
        started = perf_counter()
        self._move(plan.moves)
        logits = self._logits(plan)
        tokens = self._choose(plan.emitting, logits)
        seconds = perf_counter() - started
        return tokens, seconds if self.step_clock is None else price(self.step_clock, plan)

    def forget(self, seq: Sequence) -> None:
        """Drop what is kept for a sequence that has ended."""
        self.samplers.pop(seq.seq_id, None)

    def _move(self, moves: list[Move]) -> None:
        for kind, source, target in moves:
            if kind == COPY:
                self.store.copy_blocks([(source, target)])
            elif self.host is None:
                raise InvalidArgument("host", None, "a plan that swaps needs a store on the host")
            elif kind == SWAP_OUT:
                self.store.copy_blocks_to(self.host, [(source, target)])
            else:
                self.host.copy_blocks_to(self.store, [(source, target)])

    @torch.no_grad()
    def _logits(self, plan: StepPlan) -> dict[int, Tensor]:
        """Run the model over all that the plan computes; return logits (vocab_size,) by seq_id."""
        decodes = [Chunk(seq, seq.num_tokens - 1, seq.num_tokens) for seq in plan.decodes]
        passes = [decodes] if decodes else []
        passes += [[chunk] for chunk in plan.chunks]
        found = {}
        for rows in passes:
            spans = [(seq.seq_id, start, end) for seq, start, end in rows]
            tokens = [known_ids(seq)[start:end] for seq, start, end in rows]
            batch = PagedBatch(self.store, self.manager, spans, tokens)
            ids = batch.input_ids
            mask = batch.attention_mask
            logits = self.model(ids, cache=batch, attention_mask=mask, last_token_only=True)
            self.token_forwards += sum(end - start for _, start, end in rows)
            found |= {row.seq.seq_id: logits[i, -1] for i, row in enumerate(rows)}
        return found

    def _choose(self, emitting: list[Sequence], logits: dict[int, Tensor]) -> list[int]:
        """Return the next token of each sequence; a sample about to part reads its parent's row."""
        if not emitting:
            return []
        origins = [seq if seq.num_emitted else seq.forked_from or seq for seq in emitting]
        rows = torch.stack([logits[origin.seq_id] for origin in origins])
        tokens = Sampler().pick(rows).tolist()  # greedy, for all at once
        for index, seq in enumerate(emitting):
            if seq.request.sampling.temperature:
                sampler = self.samplers.get(seq.seq_id) or self._new_sampler(seq)
                tokens[index] = int(sampler.pick(rows[index : index + 1]))
        return tokens

    def _new_sampler(self, seq: Sequence) -> Sampler:
        how = seq.request.sampling
        sampler = Sampler(how.temperature, how.top_k, how.top_p, how.seed + seq.sample)
        self.samplers[seq.seq_id] = sampler
        return sampler


def known_ids(seq: Sequence) -> list[int]:
    """Return the tokens of a sequence; raises `InvalidArgument` where only lengths are known."""
    if seq.token_ids is None:
        rule = f"request {seq.request.request_id}: a real model needs the tokens of the prompt"
        raise InvalidArgument("prompt_ids", None, rule)
    return seq.token_ids
