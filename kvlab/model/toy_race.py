"""The toy writes the same letters twice, token by token: what a race of the two ways consists of.

A beat is one token passing through the model. Left out: time; a beat is taken to last as long in
both lanes, whatever it reads.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kvlab.arithmetic.checks import whole_number
from kvlab.model.toy_runs import generate

AGAIN, NOW, READ, ABSENT = "again", "now", "read", "absent"
"""The states of a position in a step, as the figures name them."""


@dataclass(frozen=True)
class Beat:
    """One token in one step: its 0-based step and position, and whether it passed before.

    `emits` is the letter that the model says when it was the last token of its step, else "".
    """

    step: int
    position: int
    again: bool
    emits: str


@dataclass(frozen=True)
class ToyLane:
    """One lane after some beats. `rows` holds a row of states for each step begun.

    `forwards` counts the beats, `again` those of them that had passed before, `kept` the positions
    whose key and value lie in the cache.
    """

    written: str
    rows: tuple[tuple[str, ...], ...]
    forwards: int
    again: int
    kept: int
    finished: bool


def toy_beats(prompt: str, num_new: int, *, cached: bool) -> tuple[Beat, ...]:
    """Return every beat of a run; all that is emitted comes from the toy itself.

    >>> [len(toy_beats("AB", 6, cached=cached)) for cached in (False, True)]
    [27, 7]
    """
    found, seen = [], set()
    for number, forward in enumerate(generate(prompt, num_new, cached=cached)):
        for step in forward.steps:
            emits = forward.last.prediction if step is forward.steps[-1] else ""
            found.append(Beat(number, step.position, step.position in seen, emits))
            seen.add(step.position)
    return tuple(found)


def lane_at(beats: Sequence[Beat], count: int, *, cached: bool) -> ToyLane:
    """Return the lane after its first `count` beats, or after all where it has fewer.

    >>> lane = lane_at(toy_beats("AB", 6, cached=True), 4, cached=True)
    >>> lane.written, lane.kept, lane.rows[2]
    ('CDE', 4, ('read', 'read', 'read', 'now', 'absent', 'absent', 'absent'))
    """
    done = beats[: whole_number("count", count, minimum=0)]
    width = 1 + max(beat.position for beat in beats)
    rows: list[list[str]] = []
    for beat in done:
        if beat.step == len(rows):
            held = beat.position if cached else 0
            rows.append([READ] * held + [ABSENT] * (width - held))
        rows[beat.step][beat.position] = AGAIN if beat.again else NOW
    return ToyLane(
        written="".join(beat.emits for beat in done),
        rows=tuple(map(tuple, rows)),
        forwards=len(done),
        again=sum(beat.again for beat in done),
        kept=len(done) if cached else 0,
        finished=len(done) == len(beats),
    )
