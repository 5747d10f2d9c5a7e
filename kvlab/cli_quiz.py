"""`kvlab quiz`: questions in a terminal, graded at once, with the score by topic at the end.

Every answer is kept the moment it is given, so stopping loses at most the one under way.
"""

import sys
from collections.abc import Iterator, Sequence
from random import Random, randrange
from textwrap import fill
from typing import TYPE_CHECKING, Annotated

import typer

from kvlab.arithmetic.checks import whole_number
from kvlab.errors import InvalidArgument

if TYPE_CHECKING:
    from kvlab.course.asked import Asked
    from kvlab.course.progress import Progress

WIDTH = 88
HELP = "Enter: check. ?: show the answer. s: skip. q: stop here."


def quiz(
    topic: Annotated[str | None, typer.Option(help="One topic, such as memory or paging.")] = None,
    count: Annotated[int, typer.Option(help="How many questions.")] = 10,
    seed: Annotated[int | None, typer.Option(help="Draws questions and their numbers.")] = None,
    level: Annotated[int | None, typer.Option(help="1 first steps, 2 core, 3 deep.")] = None,
    review: Annotated[bool, typer.Option("--review", help="What you missed last time.")] = False,
) -> None:
    """Answer questions of the course. Stop with q or Ctrl+C: what you answered is kept."""
    from kvlab.course.progress import Progress

    progress = Progress()
    drawn = randrange(10**6) if seed is None else whole_number("seed", seed, minimum=0)
    asked = choose(progress, topic=topic, level=level, count=count, seed=drawn, review=review)
    print(f"{len(asked)} questions, seed {drawn}. {HELP}")
    results: list[tuple[Asked, bool]] = []
    try:
        for number, question in enumerate(asked, 1):
            right = put(question, f"\n{number} of {len(asked)}", progress)
            if right is None:
                break
            results.append((question, right))
    except (KeyboardInterrupt, EOFError):
        print("\nstopped; what you answered is kept")
    _say_score(results)
    if progress.note:
        print(progress.note, file=sys.stderr)


def choose(
    progress: "Progress",
    *,
    topic: str | None,
    level: int | None,
    count: int,
    seed: int,
    review: bool,
) -> "list[Asked]":
    """Return the questions to ask, in a seeded order; missed ones, longest ago first, to review."""
    from kvlab.course.asked import Asked, ask
    from kvlab.course.bank import select_questions
    from kvlab.course.schema import TOPICS

    whole_number("count", count)
    if topic is not None and topic not in TOPICS:
        raise InvalidArgument("topic", topic, f"must be one of {', '.join(TOPICS)}")
    if level is not None and level not in (1, 2, 3):
        raise InvalidArgument("level", level, "must be 1, 2 or 3")
    found = select_questions(topic=topic, level=level)
    if not review:
        if not found:
            raise InvalidArgument("level", level, f"no question of the topic {topic} has it")
        return ask(found, seed=seed, count=count)
    known = {question.id: question for question in found}
    missed = [known[item] for item in progress.misses() if item in known]
    if not missed:
        raise InvalidArgument("review", True, "nothing you missed is left to ask again")
    numbers = Random(seed)
    return [Asked(question, numbers.randrange(10**6)) for question in missed[:count]]


def put(asked: "Asked", heading: str, progress: "Progress") -> bool | None:
    """Ask one question until it is answered; return whether it was right, None to stop here."""
    question = asked.question
    print(f"{heading}  [{question.topic}, chapter {question.chapter}]")
    print(fill(asked.text, WIDTH))
    for letter, option in zip("ABCDEFGHIJ", asked.options, strict=False):
        print(fill(f"{letter}  {option}", WIDTH, initial_indent="  ", subsequent_indent="     "))
    if question.kind == "open":
        return _mark_own(asked, progress)
    shown = False
    for typed in _lines(asked):
        if typed == "q":
            return None
        if typed == "s":
            return False
        if typed == "?":
            shown = True
            print(fill(asked.solution(), WIDTH))
            _keep(progress, asked, "shown", right=False)
            return False
        grade = asked.grade(typed)
        print(fill(f"{grade.verdict.value}. {grade.feedback}", WIDTH))
        if not grade.answered:
            continue
        _keep(progress, asked, grade.verdict, right=grade.right and not shown)
        if grade.right:
            return True
        print("Try again, or ? for the answer.")
    return None


def _mark_own(asked: "Asked", progress: "Progress") -> bool | None:
    """Let the learner speak, then mark the points of the rubric by their numbers."""
    from kvlab.course.practice import own_mark

    rubric = asked.question.rubric  # type: ignore[attr-defined]
    print("Say your answer aloud. Then press Enter to see the points.")
    if _line("> ") == "q":
        return None
    print(fill(asked.solution().split("\nPoints:")[0], WIDTH))
    for number, point in enumerate(rubric, 1):
        print(fill(f"{number}  {point}", WIDTH, initial_indent="  ", subsequent_indent="     "))
    print("Which points did you make? Their numbers, such as 1 3 4; Enter for none.")
    typed = _line("> ")
    if typed == "q":
        return None
    made = {int(word) for word in typed.replace(",", " ").split() if word.isdecimal()}
    verdict, right = own_mark(made, len(rubric))
    if 1 not in made:
        print("The first point is the scope: say it before any number.")
    print(f"{verdict} points.")
    _keep(progress, asked, verdict, right=right)
    return right


def _keep(progress: "Progress", asked: "Asked", verdict: object, *, right: bool) -> None:
    progress.record(asked.question.id, str(verdict), right=right, seed=asked.seed)


def _lines(asked: "Asked") -> Iterator[str]:
    from kvlab.course.question_html import how_to_answer

    print(f"({how_to_answer(asked)})")
    while True:
        typed = _line("> ")
        if typed:
            yield typed


def _line(prompt: str) -> str:
    """Return a typed line; the end of the input stops the quiz as Ctrl+D does."""
    print(prompt, end="", flush=True)
    typed = sys.stdin.readline() if sys.stdin is not None else ""
    if not typed:
        raise EOFError
    return typed.strip()


def _say_score(results: "Sequence[tuple[Asked, bool]]") -> None:
    from kvlab.course.chapters_map import find_chapter

    if not results:
        return
    print(f"\n{sum(right for _, right in results)} of {len(results)} right at the last try")
    topics = sorted({asked.question.topic for asked, _ in results})
    for topic in topics:
        of = [(asked, right) for asked, right in results if asked.question.topic == topic]
        missed = sorted({asked.question.chapter for asked, right in of if not right})
        again = ", ".join(f"{number} {find_chapter(number).title}" for number in missed)
        words = f"  {topic:15} {sum(right for _, right in of)} of {len(of)}"
        print(words + (f"   read again: {again}" if again else ""))
