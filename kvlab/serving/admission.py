"""How requests come in and go out: the door of the scheduler.

A request is refused at once where it could never run. Others wait for blocks; only the head of the
queue is tried, with a prefix looked up anew each time, because what was found while it waited may
be gone.
"""

from bisect import insort
from itertools import count
from operator import attrgetter

from kvlab.errors import InvalidArgument
from kvlab.paging.block_manager import BlockManager
from kvlab.serving import events
from kvlab.serving.counts import Counts
from kvlab.serving.events import Event, Observer
from kvlab.serving.limits import Limits
from kvlab.serving.memory import Memory, extra_keys
from kvlab.serving.plan import StepPlan
from kvlab.serving.queue import WaitingQueue, order_key
from kvlab.serving.request import Request
from kvlab.serving.sequence import ABORTED, ENDED, OUTGROWN, REFUSED, RUNNING, WAITING, Sequence

BY_KEY = attrgetter("key")


class Admission:
    """The queue, the running batch in its order, and the ways in and out of both."""

    def __init__(self, manager: BlockManager, limits: Limits, observer: Observer | None) -> None:
        self.manager, self.limits, self.observer = manager, limits, observer
        self.memory = Memory(manager, limits)
        self.counts = Counts()
        self.waiting = WaitingQueue()
        self.running: list[Sequence] = []  # by key: the last one gives way first
        self.running_width = 0  # what all running ones will be once their samples have parted
        self.last_batch = 0
        self.head_is_blocked = False  # the head was tried, and nothing has changed for it since
        self.live: dict[int, list[Sequence]] = {}  # request -> its sequences that have not ended
        self.entered: list[Sequence] = []
        self.first_tokens: list[Sequence] = []
        self.ended: list[Sequence] = []
        self.preempted: list[Sequence] = []  # in the step that is being planned
        self._new_ids = count()

    # -- what one may ask and do ----------------------------------------------------------

    @property
    def has_work(self) -> bool:
        """Whether anything runs or waits."""
        return bool(self.running or self.waiting)

    def add(self, request: Request) -> Sequence:
        """Let a request in, or refuse it for good; the sequence returned says which.

        Raises `InvalidArgument` for a number that a live request has already.
        """
        if request.request_id in self.live:
            rule = "a request with this number has not ended yet"
            raise InvalidArgument("request_id", request.request_id, rule)
        number = self.counts.requests_added
        self.counts.requests_added += 1
        seq = Sequence(next(self._new_ids), request, order_key(self.limits.policy, request, number))
        self.live[request.request_id] = [seq]
        refused = self._refusal(request)
        if refused is not None:
            self._end(seq, REFUSED, f"request {request.request_id}: {refused}")
            return seq
        self.waiting.push(seq)
        self.head_is_blocked = False
        self._say(events.QUEUED, seq, request.prompt_tokens)
        return seq

    def abort(self, request_id: int) -> int:
        """End all samples of a request between two steps; return how many had not ended yet."""
        stopped = list(self.live.get(request_id, ()))
        for seq in stopped:
            self._end(seq, ABORTED, f"request {request_id}: aborted")
        return len(stopped)

    def take_ended(self) -> list[Sequence]:
        """Return the sequences that ended since the last call."""
        ended, self.ended = self.ended, []
        return ended

    def take_entered(self) -> list[Sequence]:
        """Return the sequences that were admitted for the first time since the last call."""
        entered, self.entered = self.entered, []
        return entered

    def take_first_tokens(self) -> list[Sequence]:
        """Return the sequences that got their first token since the last call."""
        first, self.first_tokens = self.first_tokens, []
        return first

    # -- in -------------------------------------------------------------------------------

    def _refusal(self, request: Request) -> str | None:
        limits, memory = self.limits, self.memory
        if limits.max_waiting is not None and len(self.waiting) >= limits.max_waiting:
            return f"the queue is full: {limits.max_waiting:,} wait already"
        longest = limits.max_seq_len
        if longest is not None and request.peak_tokens > longest:
            return f"needs {request.peak_tokens:,} positions, has {longest:,}"
        if request.num_samples > limits.max_running:
            return f"needs to run {request.num_samples:,} samples, may run {limits.max_running:,}"
        needed, held = memory.least_blocks(request), self.manager.num_blocks
        return f"needs {needed:,} blocks, has {held:,}" if needed > held else None

    def _admit(self, plan: StepPlan, budget: int) -> None:
        """Admit from the head of the queue while slots, tokens and blocks last."""
        while budget > 0 and (seq := self.waiting.head()) is not None:
            if self.manager.blocks_for(seq.num_tokens) > self.manager.num_blocks:
                self._outgrew(seq, self.manager.blocks_for(seq.num_tokens))
                continue
            if self.running_width + seq.width > self.limits.max_running:
                self.head_is_blocked = True
                return
            if not self.limits.chunked_prefill and plan.chunks and self._to_compute(seq) > budget:
                return  # it goes first in the next step
            saved = len(seq.host_blocks or ())
            found = self.memory.admit(seq, self.running)
            if found is None:
                self.head_is_blocked = True
                return
            self.counts.swapped_in_blocks += max(0, saved - found // self.manager.block_size)
            self._enter(seq, found)
            budget -= self._plan_chunk(plan, seq, budget)

    def _enter(self, seq: Sequence, found: int) -> None:
        """Move the head of the queue to the running batch, `found` tokens of it computed."""
        self.waiting.pop()
        seq.state = RUNNING
        insort(self.running, seq, key=BY_KEY)
        self.running_width += seq.width
        if seq.num_preemptions:
            self.counts.recomputed_tokens += max(0, seq.lost - found)
            seq.lost = 0
            self._say(events.RESUMED, seq, seq.num_computed)
            return
        if seq.token_ids is not None:
            self.counts.prefix_query_tokens += seq.num_tokens
            self.counts.prefix_hit_tokens += found
        self.counts.prompt_tokens += seq.num_tokens
        self.entered.append(seq)
        self._say(events.ADMITTED, seq, found)

    def _to_compute(self, seq: Sequence) -> int:
        if seq.token_ids is None:
            return seq.pending
        found = self.manager.match_prefix(seq.token_ids, extra_keys(seq.request))
        return seq.num_tokens - max(found, seq.num_computed)

    def _samples_of(self, seq: Sequence) -> list[Sequence]:
        """Make the samples that will part from a sequence once its prompt is computed."""
        request = seq.request
        if seq.width == 1 or seq.num_emitted:
            return []
        siblings = []
        for sample in range(1, request.num_samples):
            twin = Sequence(next(self._new_ids), request, (*seq.key[:2], sample), sample)
            twin.forked_from = seq
            siblings.append(twin)
        self.live[request.request_id].extend(siblings)
        return siblings

    # -- out ------------------------------------------------------------------------------

    def _end(self, seq: Sequence, reason: str, error: str | None = None) -> None:
        """End a sequence wherever it is, and give back all that it holds."""
        if seq.state == RUNNING:
            self.running.remove(seq)
            self.running_width -= seq.width
            self.memory.release(seq)
            self.head_is_blocked = False
        elif seq.state == WAITING:
            self.waiting.forget(seq)
        self.memory.forget_host(seq)
        seq.state, seq.end_reason, seq.error = ENDED, reason, error
        living = self.live[seq.request.request_id]
        living.remove(seq)
        seq.ends_request = not living
        if not living:
            del self.live[seq.request.request_id]
        self.ended.append(seq)
        kind = events.REFUSED if reason == REFUSED else events.ENDED
        self._say(kind, seq, seq.num_emitted, error or reason)

    def _outgrew(self, seq: Sequence, needed: int) -> None:
        said = f"outgrew the pool at {seq.num_tokens:,} tokens"
        rule = f"needs {needed:,} blocks, has {self.manager.num_blocks:,}"
        self._end(seq, OUTGROWN, f"request {seq.request.request_id}: {said}: {rule}")

    # -- small things ---------------------------------------------------------------------

    def _say(self, kind: str, seq: Sequence, tokens: int, note: str = "") -> None:
        if self.observer is not None:
            request_id = seq.request.request_id
            self.observer(Event(self.counts.steps, kind, request_id, seq.sample, tokens, note))
