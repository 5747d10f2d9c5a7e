"""The diagnostic: one question for each of ten chapters, and which of them can be skipped."""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from kvlab.arithmetic.checks import whole_number
from kvlab.course.asked import Asked
from kvlab.course.bank import select_questions
from kvlab.course.chapters_map import CHAPTERS, INTERVIEW, find_chapter

ASKED_ABOUT = tuple(number for number in INTERVIEW.minutes if number != "13")
"""The ten chapters of the interview path before the interview itself."""


def draw_diagnostic(seed: int) -> list[Asked]:
    """Return a question for each of the ten chapters, in reading order, with fresh numbers.

    Those of the set "diagnostic" go first; a chapter without one gives a core question.

    >>> [asked.question.chapter for asked in draw_diagnostic(1)] == list(ASKED_ABOUT)
    True
    """
    whole_number("seed", seed, minimum=0)
    random = Random(f"diagnostic:{seed}")
    drawn = []
    for chapter in ASKED_ABOUT:
        pool = [q for q in select_questions(chapter=chapter) if q.kind != "open"]
        chosen = [q for q in pool if "diagnostic" in q.sets] or [q for q in pool if q.level == 2]
        drawn.append(Asked(random.choice(chosen), seed))
    return drawn


@dataclass(frozen=True)
class Advice:
    """Chapter numbers to skim, to read, and those nothing was asked about."""

    skim: tuple[str, ...]
    read: tuple[str, ...]
    not_asked: tuple[str, ...]

    @property
    def minutes(self) -> int:
        """Core minutes of the chapters to read."""
        return sum(find_chapter(number).core_minutes for number in self.read)


def advise(right: Mapping[str, bool]) -> Advice:
    """Return what to read after the diagnostic; `right` says it for each chapter answered.

    A chapter without an answer is to be read. Nothing is asked about the others.

    >>> advise({"01": True, "02": False}).skim
    ('01',)
    """
    skim = tuple(number for number in ASKED_ABOUT if right.get(number))
    read = tuple(number for number in ASKED_ABOUT if not right.get(number))
    others = (chapter.number for chapter in CHAPTERS if chapter.number not in ("00", "13"))
    return Advice(skim, read, tuple(number for number in others if number not in ASKED_ABOUT))
