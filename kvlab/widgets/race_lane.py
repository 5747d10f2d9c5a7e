"""What a step does to a lane of the race, and what can be said when all lanes have finished."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from kvlab.figures.race import Lane

_HALF_CHARACTER = "\N{REPLACEMENT CHARACTER}"


class StepLike(Protocol):
    """What a lane's generator yields for each emitted token, as `kvlab.model.decode.Step`."""

    token_id: int
    seconds: float
    cache_bytes: int
    total_token_forwards: int


def advanced(lane: Lane, step: StepLike, text: str) -> Lane:
    """Return the lane after one more token; `text` is all it wrote, half characters held back.

    >>> from types import SimpleNamespace
    >>> step = SimpleNamespace(seconds=0.5, cache_bytes=64, total_token_forwards=5)
    >>> advanced(Lane("cached"), step, "Paris").tokens_per_second
    2.0
    """
    return replace(
        lane,
        text=lane.text if text.endswith(_HALF_CHARACTER) else text,
        num_tokens=lane.num_tokens + 1,
        seconds=lane.seconds + step.seconds,
        cache_bytes=step.cache_bytes,
        token_forwards=step.total_token_forwards,
    )


def verdict(lanes: Sequence[Lane], token_ids: Sequence[Sequence[int]]) -> str:
    """Return what the finished lanes show in one line; "" while one is still under way.

    >>> lanes = [Lane("a", seconds=4, state="finished"), Lane("b", seconds=1, state="finished")]
    >>> verdict(lanes, [[7, 8], [7, 8]])
    'The same text, token for token. \u201cb\u201d took 4.0 times less time.'
    """
    if len(lanes) < 2 or any(lane.state != "finished" for lane in lanes):
        return ""
    same = all(list(ids) == list(token_ids[0]) for ids in token_ids)
    words = "The same text, token for token." if same else "The texts differ."
    ordered = sorted(lanes, key=lambda lane: lane.seconds)
    fastest, slowest = ordered[0], ordered[-1]
    if not fastest.seconds > 0:
        return words
    ratio = slowest.seconds / fastest.seconds
    return f"{words} \u201c{fastest.name}\u201d took {ratio:.1f} times less time."
