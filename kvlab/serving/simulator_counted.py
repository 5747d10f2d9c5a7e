"""The schedule of `scheduler` in counted blocks, for requests that are a length and no more.

All that decode get one token a step, so a request is kept as what it had when it began, and the
step itself says how many tokens it has now, whether it needs a block, and whether it ends.
"""

from collections import deque
from heapq import heappop, heappush
from operator import add

from kvlab.serving.limits import SWAP, Limits
from kvlab.serving.simulator_traffic import Traffic


class NotQuick(Exception):
    """Something came up that only the scheduler itself decides."""


class Counted:
    """A scheduler between two steps; a request is named by its place in the order of arrival.

    `born[i]` is its tokens less the number of the step, while it decodes; `tokens[i]` its tokens
    while it does not. What decodes holds a slot for each token but the newest. Who runs came before
    all who wait, so the last one that runs, when it gives way, is the first one that waits.
    """

    def __init__(self, traffic: Traffic, size: int, num_blocks: int, limits: Limits) -> None:
        self.size, self.num_blocks, self.limits = size, num_blocks, limits
        self.swaps, self.reserves = limits.preemption == SWAP, limits.reserve_output
        _, self.prompts, answers, stated = traffic
        most = map(add, self.prompts, stated)  # the last token of an answer needs no slot
        self.peaks = [-(-(tokens - 1) // size) for tokens in most]
        self.finals = [*map(add, self.prompts, map(min, answers, stated))]
        self.tokens, count = [*self.prompts], len(self.prompts)
        self.born, self.computed, self.lost, self.ends_at = ([0] * count for _ in range(4))
        self.saved: dict[int, int] = {}  # blocks on the host, of who was swapped out
        self.running, self.waiting = list[int](), deque[int]()
        self.partial: int | None = None  # the last one that runs, where its chunks go on
        self.due = [0] * size  # how many that decode need a block in a step, by its number % size
        self.ends: list[tuple[int, int]] = []  # (step, request); of those that gave way since, too
        self.chunks: list[tuple[int, int, int]] = []
        self.free = num_blocks
        self.step = self.born_sum = self.peak_sum = self.moved = self.failed = 0
        self.recomputed = self.swapped_out = self.preemptions = 0
        self.blocked = False  # the head of the queue was tried, and nothing has changed since

    def add(self, i: int) -> bool:
        """Let a request in; False where it is refused because it could never run."""
        needed = self.peaks[i] if self.reserves else -(-self.prompts[i] // self.size)
        fits = needed <= self.num_blocks
        if fits:
            self.waiting.append(i)
            self.blocked = False
        return fits

    # -- before a step --------------------------------------------------------------------

    def plan(self) -> int:
        """Decide the next step; return how many decode. `chunks` are what else is computed."""
        self.step += 1
        if self.chunks or self.moved or self.failed:
            self.chunks, self.moved, self.failed = [], 0, 0
        needed, gave_way = self.due[self.step % self.size], self.preemptions
        if needed > self.free:
            self._grow_one_by_one()
        else:
            self.free -= needed
        decoding, budget = len(self.running), self.limits.max_batched_tokens
        if self.partial is not None:
            decoding -= 1
            budget -= self._plan_chunk(self.partial, budget - decoding)
        if (not self.blocked and self.preemptions == gave_way) or not self.running:
            self._admit(budget - decoding)
        if not (decoding or self.chunks) and (self.running or self.waiting):
            raise NotQuick
        return decoding

    def _grow_one_by_one(self) -> None:
        """Give blocks in order; where none is left, the last one gives way."""
        mine = self.step % self.size
        for i in list(self.running):
            if not self.running or i > self.running[-1]:
                return
            if i == self.partial or (2 - self.born[i]) % self.size != mine:
                continue
            while not self.free:
                last = self.running[-1]
                if len(self.running) == 1:
                    self._leave(i, self.born[i] + self.step - 2)
                    self.failed += 1
                else:
                    self._give_way()
                if last == i:
                    break
            else:
                self.free -= 1

    def _give_way(self) -> None:
        """Let the last running one wait again, at the head of the queue."""
        i = self.running[-1]
        if i == self.partial:
            self.partial, computed = None, self.computed[i]
            self._release(i, self.tokens[i])
        else:
            computed = self.born[i] + self.step - 2
            self.tokens[i] = computed + 1
            self._leave(i, computed)
        self.preemptions += 1
        if self.swaps:
            self.saved[i] = count = -(-computed // self.size)
            self.computed[i], self.moved = computed, self.moved + count
            self.swapped_out += count
        else:
            self.lost[i], self.computed[i] = computed, 0
        self.waiting.appendleft(i)

    def _leave(self, i: int, slots: int) -> None:
        """Take one that decodes, and holds so many slots, out of the running batch."""
        self.born_sum -= self.born[i]
        self.due[(2 - self.born[i]) % self.size] -= 1
        self.ends_at[i] = 0
        self._release(i, slots)

    def _release(self, i: int, slots: int) -> None:
        self.running.remove(i)
        self.free += -(-slots // self.size)
        self.peak_sum -= self.peaks[i]
        self.blocked = False

    def _admit(self, budget: int) -> None:
        """Admit from the head of the queue while seats, tokens and blocks last."""
        while budget > 0 and self.waiting:
            i = self.waiting[0]
            needed = -(-self.tokens[i] // self.size)
            if needed > self.num_blocks:
                self.waiting.popleft()
                self.saved.pop(i, None)
                self.failed += 1
                continue
            promised = self.reserves and self.peak_sum + self.peaks[i] > self.num_blocks
            full = len(self.running) >= self.limits.max_running
            if full or promised or needed > self.free:
                self.blocked = True
                return
            self.running.append(self.waiting.popleft())
            self.free -= needed
            self.peak_sum += self.peaks[i]
            self.moved += self.saved.pop(i, 0)
            self.recomputed += self.lost[i]
            self.lost[i] = 0
            budget -= self._plan_chunk(i, budget)

    def _plan_chunk(self, i: int, budget: int) -> int:
        """Plan a part of what a request has to compute; return its tokens."""
        start = self.computed[i]
        end = max(start, min(self.tokens[i], start + budget))
        if end > start:
            self.chunks.append((i, start, end))
        return end - start

    # -- after a step ---------------------------------------------------------------------

    def complete_chunks(self) -> list[int]:
        """Take in what the chunks computed; return the requests that got their first token."""
        self.blocked, first = False, []
        for i, _, end in self.chunks:
            known, self.computed[i] = self.tokens[i], end
            spare = end == known - 1 and known > self.prompts[i]  # a slot is there for what is next
            self.partial = i if end < known and not spare else None
            if spare and end % self.size == 0:
                raise NotQuick  # that slot is the first of a block, taken a step too early
            if self.partial is None:
                self.born[i] = born = end + 1 - self.step
                self.born_sum += born
                self.due[(2 - born) % self.size] += 1
                self.ends_at[i] = last = self.finals[i] - born
                heappush(self.ends, (last, i))
                if known == self.prompts[i]:
                    first.append(i)
        return first

    def finish(self) -> list[int]:
        """Take out the requests that got their last token, and return them."""
        ended = []
        while self.ends and self.ends[0][0] <= self.step:
            step, i = heappop(self.ends)
            if self.ends_at[i] == step:
                self._leave(i, self.finals[i] - 1)
                ended.append(i)
        return ended

    def is_settled(self) -> bool:
        """Return whether all that run decode, and nobody who waits may get in."""
        return bool(self.running) and self.partial is None and (self.blocked or not self.waiting)

    def next_end(self) -> int:
        """Return the step in which the next of those that decode gets its last token."""
        while self.ends_at[self.ends[0][1]] != self.ends[0][0]:
            heappop(self.ends)
        return self.ends[0][0]
