"""Many steps at once, where nothing can happen in them but that every sequence decodes.

Until the next one ends, the next request arrives or blocks run short, each step is like the last.
Taking them together is faster and changes nothing: not the schedule, not an event, not a block
count. Steps of a real model are never skipped.
"""

from kvlab.serving.scheduler import Scheduler
from kvlab.serving.sequence import made_up_id


def quiet_steps(scheduler: Scheduler) -> int:
    """Return how many of the next steps are plain decodes of all that run; the end is not one.

    0 where that is not certain: a prompt is being computed, the head of the queue may get in, the
    pool is nearly full, or tokens are known that others could share.
    """
    running = scheduler.running
    if not running or (scheduler.waiting and not scheduler.head_is_blocked):
        return 0
    steps = min([seq.stops_after - seq.num_emitted for seq in running]) - 1
    if steps <= 0:
        return 0
    for seq in running:
        if seq.num_tokens - seq.num_computed != 1 or not seq.num_emitted:
            return 0
        if seq.request.written_ids is not None:
            return 0
    manager, batch = scheduler.manager, len(running)
    spare = manager.num_free // batch - 1  # blocks each may take, after a copy of its tail
    return max(0, min(steps, spare * manager.block_size))


def skip(scheduler: Scheduler, steps: int) -> None:
    """Bring every running sequence `steps` tokens further: at most what `quiet_steps` returned."""
    memory, block_size = scheduler.memory, scheduler.manager.block_size
    for seq in scheduler.running:
        ahead = seq.num_tokens + steps - 1 - seq.num_slots
        if ahead > 0:
            memory.grow(seq, ahead)
        if seq.token_ids is not None:
            first = made_up_id(seq)
            seq.token_ids.extend(range(first, first - steps, -1))
        before = seq.num_computed // block_size
        seq.num_computed += steps
        seq.num_tokens += steps
        seq.num_emitted += steps
        if seq.num_computed // block_size > before:
            memory.publish(seq)
    memory.moves()  # there is nothing to copy: no model looks at these blocks
    scheduler.counts.steps += steps
    scheduler.counts.generation_tokens += steps * len(scheduler.running)
    scheduler.last_batch = len(scheduler.running)
