"""The engine: the scheduler driving a real Llama through a paged cache.

The same scheduler as the simulator's, and the same loop; only the worker differs. Left out: HTTP,
detokenising, several GPUs.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from kvlab.cache.paged_store import PagedStore
from kvlab.errors import InvalidArgument
from kvlab.model.llama import Llama
from kvlab.model.sampling import Sampler
from kvlab.paging import BlockManager
from kvlab.serving.events import Observer
from kvlab.serving.limits import SWAP, Limits
from kvlab.serving.llama_worker import LlamaWorker
from kvlab.serving.loop import FollowUp, ServingLoop
from kvlab.serving.request import Request
from kvlab.serving.scheduler import Scheduler
from kvlab.serving.sequence import Sequence
from kvlab.serving.step_clock import StepClock


class Answer(NamedTuple):
    """What one sample wrote, how it ended, the error where it did not, how often it gave way."""

    token_ids: list[int]
    end_reason: str
    error: str | None
    num_preemptions: int = 0


class Engine:
    """A model with a pool of `num_blocks` blocks, on the model's device and in its dtype.

    Under swap, the host has `limits.host_blocks` blocks, or as many as the pool. The pool stays:
    a second `serve` finds the prefixes of the first. With a `clock` the time is the clock's.
    """

    def __init__(
        self,
        model: Llama,
        *,
        num_blocks: int,
        block_size: int = 16,
        limits: Limits | None = None,
        prefix_caching: bool = True,
        clock: StepClock | None = None,
        observer: Observer | None = None,
    ) -> None:
        self.model, self.observer = model, observer
        rules = limits or Limits()
        if rules.max_seq_len is None:
            rules = replace(rules, max_seq_len=model.config.max_seq_len)
        if rules.preemption == SWAP and rules.host_blocks is None:
            rules = replace(rules, host_blocks=num_blocks)
        self.limits = rules
        self.manager = BlockManager(num_blocks, block_size, prefix_caching=prefix_caching)
        host = None
        if rules.preemption == SWAP and rules.host_blocks:
            host = self._store(rules.host_blocks, "cpu")
        store = self._store(num_blocks, None)
        self.worker = LlamaWorker(model, self.manager, store, host, clock)

    def serve(
        self,
        requests: Iterable[Request],
        *,
        on_step: Callable[[ServingLoop], None] | None = None,
    ) -> dict[tuple[int, int], Answer]:
        """Serve all requests; return the answer of each (request_id, sample).

        A request that was cut off before its samples parted has one answer, of sample 0.
        """
        answers: dict[tuple[int, int], Answer] = {}
        self.start(requests, answers, on_step=on_step).run()
        return answers

    def start(
        self,
        requests: Iterable[Request],
        answers: dict[tuple[int, int], Answer],
        *,
        follow_up: FollowUp | None = None,
        on_step: Callable[[ServingLoop], None] | None = None,
    ) -> ServingLoop:
        """Return the loop of `serve` before its first step; answers come in as they end.

        What a run that was broken off left in the pool is let go.
        """
        for seq_id in list(self.manager.tables):
            self.manager.free(seq_id)
        self.worker.samplers.clear()

        def ended(seq: Sequence) -> None:
            self.worker.forget(seq)
            how = (str(seq.end_reason), seq.error, seq.num_preemptions)
            answers[seq.name] = Answer(seq.emitted_ids, *how)

        scheduler = Scheduler(self.manager, self.limits, observer=self.observer)
        return ServingLoop(
            scheduler,
            self.worker,
            self._checked(requests),
            follow_up=follow_up,
            on_end=ended,
            on_step=on_step,
        )

    def _store(self, num_blocks: int, device: str | None) -> PagedStore:
        config, weight = self.model.config, self.model.lm_head.weight
        return PagedStore(
            num_layers=config.num_layers,
            num_blocks=num_blocks,
            block_size=self.manager.block_size,
            num_kv_heads=config.num_kv_heads,
            head_dim=config.head_dim,
            dtype=weight.dtype,
            device=weight.device if device is None else device,
        )

    def _checked(self, requests: Iterable[Request]) -> Iterator[Request]:
        """Pass requests on, each looked at first: a wrong one must not stop a batch half-way."""
        vocab_size = self.model.config.vocab_size
        for request in requests:
            where = f"request {request.request_id}: prompt_ids"
            if request.prompt_ids is None:
                raise InvalidArgument(where, None, "a real model needs the tokens of the prompt")
            if not 0 <= min(request.prompt_ids) <= max(request.prompt_ids) < vocab_size:
                rule = f"token ids run from 0 to {vocab_size - 1}"
                raise InvalidArgument(where, list(request.prompt_ids), rule)
            how = request.sampling
            Sampler(how.temperature, how.top_k, how.top_p, how.seed)  # a wrong setting is named
            yield request
