"""What holds in every chapter alike: its question, minutes, anchors, exercises, cards, self-check.

What is said in one chapter alone is checked in `test_NN.py` beside this file.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kvlab.course.bank import find_question, select_questions
from kvlab.course.chapters_map import CHAPTERS, find_chapter
from kvlab.course.claims import find_claim
from kvlab.course.exercises import Exercise, exercises_of
from kvlab.course.schema import TOPICS

SOURCES = Path(__file__).resolve().parents[2] / "chapters" / "src"
TEXTS = {
    path.name[:2]: path.read_text(encoding="utf-8") for path in sorted(SOURCES.glob("[0-9]*.py"))
}
NUMBERS = list(TEXTS)
EXERCISES = [exercise for number in NUMBERS for exercise in exercises_of(number)]
TOPIC_OF = dict(zip([f"{i:02d}" for i in range(1, 12)], TOPICS[1:], strict=True))
LESSONS = list(TOPIC_OF)
ASKS_MORE = ("01", "02", "04")
"""Chapters whose question is longer than the line of the map."""
EXTRA_WORDS = {"03-c": " of section 8"}
"""What a statement says more in its chapter, where there is something to point at."""


def prose(number: str) -> str:
    """The text of a chapter, without code."""
    return "\n".join(line[2:] for line in TEXTS[number].splitlines() if line.startswith("# "))


def minutes(number: str, kind: str) -> int:
    """The minutes of all sections of a kind together."""
    found = re.findall(rf"\*\*{kind} · (\d+) minutes?\*\*", prose(number))
    return sum(map(int, found))


def anchors(number: str) -> list[str]:
    """The places of a chapter that can be linked to."""
    return re.findall(r'<a id="([^"]+)"></a>', TEXTS[number])


def asked_ids(number: str) -> Iterator[list[str]]:
    """The questions of each self-check, as its cell names them: the cell is run without a page."""
    for cell in TEXTS[number].split("# %%"):
        if "from kvlab.widgets.quiz import quiz" in cell:
            code = cell.partition("\n")[2].replace("from kvlab.widgets.quiz import quiz", "")
            asked: list[str] = []
            exec(code, {"quiz": lambda ids=(), kept=asked, **_: kept.extend(ids)})
            yield asked


def test_every_chapter_of_the_map_but_the_optional_one_is_here() -> None:
    assert set(NUMBERS) >= {chapter.number for chapter in CHAPTERS if not chapter.optional}


@pytest.mark.parametrize("number", [*LESSONS, "13"])
def test_the_first_cell_asks_what_the_takeaways_answer(number: str) -> None:
    first = prose(number).split("After this chapter")[0]
    asked = re.findall(r"\*\*The question\.\*\* (.+\?)$", first, re.MULTILINE)
    assert len(asked) == 1
    if number not in ASKS_MORE:
        assert asked[0].startswith(find_chapter(number).question.rstrip("?"))
    assert "**The answer.**" in prose(number).split("## Takeaways")[1]


@pytest.mark.parametrize("number", NUMBERS)
def test_minutes_of_core_and_deep_sections_add_up_to_those_of_the_map(number: str) -> None:
    chapter = find_chapter(number)
    assert minutes(number, "Core") == chapter.core_minutes
    assert minutes(number, "Deep dive") == chapter.deep_minutes


@pytest.mark.parametrize("number", NUMBERS)
def test_every_question_is_taught_at_an_anchor_and_no_anchor_stands_twice(number: str) -> None:
    questions = select_questions(chapter=number)
    assert len(questions) >= (6 if number in LESSONS else 0)
    assert {question.anchor for question in questions} <= set(anchors(number))
    assert len(set(anchors(number))) == len(anchors(number))


@pytest.mark.parametrize("number", NUMBERS)
def test_a_self_check_asks_six_questions_of_the_bank(number: str) -> None:
    checks = [asked for asked in asked_ids(number) if asked]
    assert len(checks) == (number != "00"), "chapter 00 has its placement check"
    for asked in checks:
        assert len(set(asked)) == len(asked) == 6
        chapters = {find_question(name).chapter for name in asked}
        assert chapters == {number} if number != "13" else len(chapters) == len(asked)


@pytest.mark.parametrize("number", LESSONS)
def test_a_lesson_asks_in_several_ways_and_keeps_some_questions_for_practice(number: str) -> None:
    questions = select_questions(chapter=number)
    assert len({question.kind for question in questions}) >= 4
    topics = {question.topic for question in questions}
    assert TOPIC_OF[number] in topics and (len(topics) == 1 or number == "01")
    (asked,) = asked_ids(number)
    assert set(asked) < {question.id for question in questions}


@pytest.mark.parametrize("number", NUMBERS)
def test_two_to_five_cards_are_shown_and_they_are_of_this_chapter(number: str) -> None:
    shown = re.findall(r'claim_quiz\("([^"]+)"\)', TEXTS[number])
    assert 2 <= len(shown) == len(set(shown)) <= (6 if number == "06" else 5)
    for name in shown:
        claim = find_claim(name)
        assert claim.statement
        assert claim.chapter == number or number in ("00", "13"), "these look ahead and back"


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.id)
def test_an_exercise_stands_word_for_word_with_its_check_hint_and_solution(
    exercise: Exercise,
) -> None:
    number = exercise.id[:2]
    title = exercise.title if exercise.title.endswith("?") else f"{exercise.title}."
    text = prose(number).replace(EXTRA_WORDS.get(exercise.id, "no such words"), "")
    stands = (f"**{exercise.id}{dot} {title}** {exercise.statement}" in text for dot in ("", "."))
    assert any(stands)
    for cell in ("check", "hint_steps", "solution"):
        assert TEXTS[number].count(f'\n{cell}("{exercise.id}"') == 1


@pytest.mark.parametrize("number", NUMBERS)
def test_two_exercises_or_more_and_no_check_of_any_other(number: str) -> None:
    named = re.findall(r'^(?:check|hint_steps|solution)\("([^"]+)"', TEXTS[number], re.MULTILINE)
    assert set(named) == {exercise.id for exercise in exercises_of(number)}
    assert len(exercises_of(number)) >= 2
