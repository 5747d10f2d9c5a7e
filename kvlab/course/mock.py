"""A mock interview as data: which questions, how they are mixed, and a clock that can stop."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from kvlab.arithmetic.checks import whole_number
from kvlab.course.asked import Asked
from kvlab.course.bank import load_questions
from kvlab.course.questions import Question
from kvlab.errors import InvalidArgument

SPOKEN, GRADED = 4, 8
"""Questions of half an hour: each spoken one takes about as long as two that are graded."""


def draw_interview(seed: int, *, spoken: int = SPOKEN, graded: int = GRADED) -> list[Asked]:
    """Return a mixed interview: no two of its graded questions on one topic while topics last.

    Spoken questions are open ones; the graded are of the core level or deeper, those of the set
    "interview" first. Placement questions are left out.

    >>> kinds = [asked.question.kind == "open" for asked in draw_interview(3)]
    >>> sum(kinds), len(kinds)
    (4, 12)
    """
    whole_number("seed", seed, minimum=0)
    whole_number("spoken", spoken, minimum=0)
    whole_number("graded", graded, minimum=0)
    if spoken + graded < 1:
        raise InvalidArgument("spoken + graded", spoken + graded, "must be 1 or more")
    random = Random(f"interview:{seed}")
    fit = [q for q in load_questions() if "placement" not in q.sets]
    aloud = _by_topic([q for q in fit if q.kind == "open"], spoken, random)
    short = [q for q in fit if q.kind != "open" and q.level >= 2]
    others = _by_topic(short, graded, random)
    return [Asked(question, seed) for question in _mixed(others, aloud)]


def _by_topic(pool: Sequence[Question], count: int, random: Random) -> list[Question]:
    """Draw topic by topic, each topic once before any comes again."""
    shuffled = random.sample(list(pool), len(pool))
    shuffled.sort(key=lambda question: "interview" not in question.sets)  # stable
    topics = random.sample(sorted({q.topic for q in shuffled}), len({q.topic for q in shuffled}))
    chosen: list[Question] = []
    while len(chosen) < min(count, len(shuffled)):
        for topic in topics:
            left = [q for q in shuffled if q.topic == topic and q not in chosen]
            chosen += left[:1]
    return chosen[:count]


def _mixed(graded: Sequence[Question], spoken: Sequence[Question]) -> list[Question]:
    """Spread the spoken questions evenly among the graded ones."""
    places = [(i + 0.5) / len(graded) for i in range(len(graded))]
    between = [(i + 0.9) / len(spoken) for i in range(len(spoken))]
    every = [*zip(places, graded, strict=True), *zip(between, spoken, strict=True)]
    return [question for _, question in sorted(every, key=lambda pair: pair[0])]


@dataclass
class Stopwatch:
    """Seconds that run, stop and go on, up to a limit; `now` tells the time in seconds.

    >>> moments = iter([0.0, 40.0, 100.0, 130.0])
    >>> watch = Stopwatch(60, now=lambda: next(moments))
    >>> watch.go(); watch.stop(); watch.go(); watch.over
    True
    """

    limit_seconds: float
    now: Callable[[], float] = time.monotonic
    _before: float = field(default=0.0, init=False)
    _since: float | None = field(default=None, init=False)

    @property
    def running(self) -> bool:
        """Whether time is counted now; it may be over all the same."""
        return self._since is not None

    @property
    def seconds(self) -> float:
        """The seconds counted so far, never more than the limit."""
        more = 0.0 if self._since is None else self.now() - self._since
        return min(self._before + more, self.limit_seconds)

    @property
    def left(self) -> float:
        """The seconds left."""
        return self.limit_seconds - self.seconds

    @property
    def over(self) -> bool:
        """Whether the time is used up."""
        return self.left <= 0

    def go(self) -> None:
        """Start, or go on after a stop."""
        if self._since is None:
            self._since = self.now()

    def stop(self) -> None:
        """Stop counting."""
        self._before, self._since = self.seconds, None


def minutes_and_seconds(seconds: float) -> str:
    """Write seconds as a clock does.

    >>> minutes_and_seconds(605.4)
    '10:05'
    """
    whole = int(seconds)
    return f"{whole // 60}:{whole % 60:02d}"
