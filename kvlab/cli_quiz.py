"""`kvlab quiz`: questions in a terminal, graded at once, with the score by topic at the end.

Every answer is in the file before its verdict is shown, so stopping loses at most the one under
way. Misses come back by the rule of `kvlab.course.practice`, as they do in chapter 13.
"""

import sys
from collections.abc import Mapping, Sequence
from random import Random, randrange
from typing import TYPE_CHECKING, Annotated

import typer

from kvlab.arithmetic.checks import whole_number
from kvlab.cli_quiz_ask import Outcome, Sitting, put, say_count
from kvlab.errors import InvalidArgument

if TYPE_CHECKING:
    from kvlab.course.asked import Asked
    from kvlab.course.progress import Progress

HELP = "Enter: check. ?: show the answer. s: skip. q: stop here."


def quiz(
    topic: Annotated[str | None, typer.Option(help="One topic, such as memory or paging.")] = None,
    count: Annotated[int, typer.Option(help="How many questions at most.")] = 10,
    seed: Annotated[int | None, typer.Option(help="Draws questions and their numbers.")] = None,
    level: Annotated[int | None, typer.Option(help="1 first steps, 2 core, 3 deep.")] = None,
    review: Annotated[bool, typer.Option("--review", help="Misses that are due today.")] = False,
) -> None:
    """Answer questions of the course. Stop with q or Ctrl+C: each answer is saved as you go."""
    from kvlab.course.progress import Progress

    sitting = Sitting(Progress())
    drawn = randrange(10**6) if seed is None else whole_number("seed", seed, minimum=0)
    _check(topic, level, count)
    if review:
        asked, words = choose_due(
            sitting.progress, topic=topic, level=level, count=count, seed=drawn
        )
        print(words)
    else:
        asked = choose(topic=topic, level=level, count=count, seed=drawn)
    if asked:
        print(f"{say_count(len(asked), 'question')}, seed {drawn}. {HELP}")
        _ask_all(asked, sitting)
    sitting.tell()


def _check(topic: str | None, level: int | None, count: int) -> None:
    """Raise `InvalidArgument` for a topic or level that is not there, or a count below 1."""
    from kvlab.course.schema import TOPICS

    whole_number("count", count)
    if topic is not None and topic not in TOPICS:
        raise InvalidArgument("topic", topic, f"must be one of {', '.join(TOPICS)}")
    if level is not None and level not in (1, 2, 3):
        raise InvalidArgument("level", level, "must be 1, 2 or 3")


def choose(*, topic: str | None, level: int | None, count: int, seed: int) -> "list[Asked]":
    """Return the questions to ask, in a seeded order."""
    from kvlab.course.asked import ask
    from kvlab.course.bank import select_questions

    found = select_questions(topic=topic, level=level)
    if not found:
        raise InvalidArgument("level", level, f"no question of the topic {topic} has it")
    return ask(found, seed=seed, count=count)


def choose_due(
    progress: "Progress", *, topic: str | None, level: int | None, count: int, seed: int
) -> "tuple[list[Asked], str]":
    """Return the misses that are due today, the longest due first, and a sentence about them."""
    from kvlab.course.asked import Asked
    from kvlab.course.bank import select_questions
    from kvlab.course.practice import among, review_today, today

    known = {question.id: question for question in select_questions(topic=topic, level=level)}
    due, words = review_today(progress.answers(), today(), known, of=among(topic, level))
    numbers = Random(seed)
    return [Asked(known[one.question_id], numbers.randrange(10**6)) for one in due[:count]], words


def _ask_all(asked: "Sequence[Asked]", sitting: Sitting) -> None:
    """Ask one question after the other, and say the score however it ends."""
    if hasattr(sys.stdin, "reconfigure"):  # a byte that is no text is an answer that can't be read
        sys.stdin.reconfigure(errors="replace")
    try:
        for number, question in enumerate(asked, 1):
            put(question, f"\n{number} of {len(asked)}", sitting)
    except (KeyboardInterrupt, EOFError):
        print(f"\nstopped; {sitting.says()}")
    else:
        if sitting.saved < sitting.given:
            print(f"\n{sitting.says()}")
    _say_score(asked, sitting.outcomes)


def _say_score(asked: "Sequence[Asked]", outcomes: Mapping[str, Outcome]) -> None:
    """Print the score, by topic too, with what to read again; what was skipped is no answer."""
    from kvlab.course.chapters_map import find_chapter

    if not outcomes:
        return
    print(f"\n{_score(list(outcomes.values()))}")
    given = [one.question for one in asked if one.question.id in outcomes]
    given = [question for question in given if outcomes[question.id] is not Outcome.SKIPPED]
    for topic in sorted({question.topic for question in given}):
        of = [question for question in given if question.topic == topic]
        missed = [question for question in of if outcomes[question.id] is not Outcome.RIGHT]
        chapters = sorted({question.chapter for question in missed})
        again = ", ".join(f"{number} {find_chapter(number).title}" for number in chapters)
        words = f"  {topic:15} {len(of) - len(missed)} of {len(of)}"
        print(words + (f"   read again: {again}" if again else ""))
    if {Outcome.LATER, Outcome.WRONG} & set(outcomes.values()):
        print("A miss comes back tomorrow, then later and later: kvlab quiz --review")


def _score(outcomes: Sequence[Outcome]) -> str:
    """Write one line of counts.

    >>> _score([Outcome.RIGHT, Outcome.LATER, Outcome.WRONG, Outcome.SKIPPED])
    '1 of 3 right at the first try, 1 more at a later one; 1 skipped'
    """
    count = {outcome: outcomes.count(outcome) for outcome in Outcome}
    answered = len(outcomes) - count[Outcome.SKIPPED]
    said = f"{count[Outcome.RIGHT]} of {answered} right at the first try" if answered else ""
    if count[Outcome.LATER]:
        said += f", {count[Outcome.LATER]} more at a later one"
    skipped = f"{count[Outcome.SKIPPED]} skipped" if count[Outcome.SKIPPED] else ""
    return "; ".join(filter(None, (said, skipped)))
