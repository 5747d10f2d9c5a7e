"""Who computes what in the next step: continuous batching over a pool of blocks.

Every step, each running sequence decodes one token; prompts take what is left of the token budget;
whoever waits is admitted while there is room. When the pool is full, the last in order gives way.
It knows no model, no tensor and no clock: a worker carries a plan out and hands back tokens.
"""

from bisect import insort
from collections.abc import Sequence as Items
from itertools import repeat

from kvlab.errors import InvalidArgument, OutOfBlocks
from kvlab.paging.block_manager import BlockManager
from kvlab.serving import events
from kvlab.serving.admission import BY_KEY, Admission
from kvlab.serving.events import Observer
from kvlab.serving.limits import SWAP, Limits
from kvlab.serving.plan import Chunk, StepPlan
from kvlab.serving.sequence import LENGTH, RUNNING, STOPPED, Sequence, made_up_id


class Scheduler(Admission):
    """One pool, one queue, one running batch; requests come in by `Admission`.

    Call `schedule`, carry out the plan, call `complete` with a token for each emitting sequence.
    Progress is certain: the first running sequence takes the blocks of all others before it gives
    up, and one that is alone and still has too few ends with an error that says so.

    >>> from kvlab.serving.request import Request
    >>> scheduler = Scheduler(BlockManager(num_blocks=8, block_size=4))
    >>> _ = scheduler.add(Request(1, prompt_tokens=6, max_new_tokens=2))
    >>> for _ in range(2):
    ...     scheduler.complete(scheduler.schedule())
    >>> [(seq.name, seq.end_reason, seq.num_computed) for seq in scheduler.take_ended()]
    [((1, 0), 'length', 7)]
    """

    def __init__(
        self,
        manager: BlockManager,
        limits: Limits | None = None,
        *,
        observer: Observer | None = None,
    ) -> None:
        super().__init__(manager, limits or Limits(), observer)

    # -- before a step --------------------------------------------------------------------

    def schedule(self) -> StepPlan:
        """Decide the next step: decodes, then chunks of admitted prompts, then new ones."""
        self.counts.steps += 1
        plan = StepPlan(self.counts.steps)
        self.preempted = plan.preempted
        unfinished = self._plan_decodes(plan)
        budget = self.limits.max_batched_tokens - len(plan.decodes)
        for seq in unfinished:
            budget -= self._plan_chunk(plan, seq, budget)
        if not plan.preempted or not self.running:  # else the room just made would be lost again
            self._admit(plan, budget)
        plan.moves = self.memory.moves()
        self.last_batch = plan.batch
        return plan

    def _plan_decodes(self, plan: StepPlan) -> list[Sequence]:
        """Plan one token for whoever is past its prompt; return those who are not."""
        unfinished, decodes, append, context = [], plan.decodes, self.manager.append, 0
        for seq in self.running:  # whoever gives way goes from the end of this list
            known = seq.num_tokens
            if known - seq.num_computed > 1 or not seq.num_emitted:
                unfinished.append(seq)
                continue
            if known > seq.num_slots:  # by one: `memory.grow`, without a call for it
                try:
                    append(seq.seq_id)
                except OutOfBlocks as short:
                    if not self._grown_at_last(seq, short.needed):
                        continue
                seq.num_slots += 1
            decodes.append(seq)
            context += known
        plan.context = context
        plan.emitting.extend(decodes)
        return unfinished

    def _grown_at_last(self, seq: Sequence, needed: int) -> bool:
        """Let others give way until a sequence has a slot more; False where it had to go itself."""
        while True:
            self._make_room(seq, needed)
            if seq.state != RUNNING:
                return False
            try:
                self.manager.append(seq.seq_id)
            except OutOfBlocks as short:
                needed = short.needed
            else:
                return True

    def _make_room(self, seq: Sequence, needed: int) -> None:
        """Let the last in order give way, perhaps `seq` itself; alone, it has outgrown the pool."""
        if len(self.running) > 1:
            self._preempt()
        else:
            self._outgrew(seq, needed + len(self.manager.block_table(seq.seq_id)))

    def _preempt(self) -> None:
        """Let the last running sequence wait again; the order is the one of the queue."""
        seq = self.running.pop()
        self.running_width -= seq.width
        self.counts.preemptions += 1
        seq.num_preemptions += 1
        how = self.limits.preemption
        if how == SWAP and self.memory.swap_out(seq):
            self.counts.swapped_out_blocks += len(seq.host_blocks or ())
            lost = 0
        else:
            how = "recompute"
            lost = seq.lost = seq.num_computed
            seq.num_computed = 0
        self.memory.release(seq)
        self.head_is_blocked = False
        self.waiting.push(seq)
        self.preempted.append(seq)
        self._say(events.PREEMPTED, seq, lost, how)

    def _plan_chunk(self, plan: StepPlan, seq: Sequence, budget: int) -> int:
        """Plan a part of what a sequence has to compute; return its tokens."""
        start = seq.num_computed
        end = min(seq.num_tokens, start + budget)
        if not self.limits.chunked_prefill and not plan.chunks:
            end = seq.num_tokens
        if end <= start:
            return 0
        plan.chunks.append(Chunk(seq, start, end))
        self._say(events.CHUNK, seq, end - start)
        if end == seq.num_tokens:
            plan.emitting.append(seq)
            plan.emitting.extend(self._samples_of(seq))
        return end - start

    # -- after a step ---------------------------------------------------------------------

    def complete(self, plan: StepPlan, tokens: Items[int | None] | None = None) -> None:
        """Take in what a step computed: one token for each of `plan.emitting`.

        None, as a whole or for one of them, is a token that nobody knows.
        """
        if tokens is not None and len(tokens) != len(plan.emitting):
            rule = f"must be {len(plan.emitting)}, one for each emitting sequence"
            raise InvalidArgument("number of tokens", len(tokens), rule)
        for seq, start, end in plan.chunks:
            seq.num_computed = end
            self.counts.prefill_tokens += end - start
            self.memory.publish(seq)
            self.head_is_blocked = False  # what was published may be what the head waits for
        block_size = self.manager.block_size
        for seq in plan.decodes:
            seq.num_computed = computed = seq.num_computed + 1
            if computed % block_size == 0:
                self.memory.publish(seq)
        self._emit(plan, tokens)

    def _emit(self, plan: StepPlan, tokens: Items[int | None] | None) -> None:
        ended = []
        given = repeat(None) if tokens is None else tokens
        for seq, token in zip(plan.emitting, given, strict=False):
            emitted, known = seq.num_emitted, seq.token_ids
            if not emitted:
                self._first_token(seq)
            if known is not None:
                if token in seq.request.stop_ids:
                    seq.end_reason = STOPPED
                known.append(made_up_id(seq) if token is None else token)
            seq.num_tokens += 1
            seq.num_emitted = emitted = emitted + 1
            if emitted >= seq.stops_after or seq.end_reason is not None:
                ended.append(seq)
        self.counts.generation_tokens += len(plan.emitting)
        for seq in ended:
            reached = seq.num_emitted >= seq.request.max_new_tokens
            self._end(seq, seq.end_reason or (LENGTH if reached else STOPPED))

    def _first_token(self, seq: Sequence) -> None:
        """Let a sample part from the one that computed the prompt for both, and say so."""
        parent = seq.forked_from
        if parent is not None:
            self.memory.fork(parent, seq)
            seq.state, parent.width = RUNNING, 1
            insort(self.running, seq, key=BY_KEY)
            self.counts.forks += 1
            self._say(events.FORKED, seq, seq.num_computed)
        self.first_tokens.append(seq)
        self._say(events.FIRST_TOKEN, seq, seq.num_tokens)
