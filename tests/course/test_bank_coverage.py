"""The bank is large and even enough, and all it asks is taught in a cell that can be found."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from kvlab.course.bank import find_question, load_questions
from kvlab.course.questions import KINDS, LEVELS
from kvlab.course.schema import TOPICS

SOURCES = Path(__file__).parents[2] / "chapters" / "src"
ROWS = json.loads(Path(__file__).with_name("bank_coverage.json").read_text(encoding="utf-8"))
QUESTIONS = load_questions()
INTERVIEWERS_ASK = (
    *(1, 2, 3, 4, 6, 11, 14, 15, 17, 18, 19, 21, 22, 23, 24, 25, 27, 30, 32, 33),
    *(34, 35, 36, 39, 40, 41, 43, 44, 45, 46, 48, 49, 50, 52, 53, 57, 58, 59, 60, 61),
    *(62, 63, 64, 66, 68, 70, 71, 72, 73, 76, 77, 79, 80, 81, 82, 83, 85, 86, 87, 88),
)
"""The numbers of the sixty interview questions that the course answers; some numbers are free."""


def anchors_of(chapter: str) -> set[str]:
    """The places of a chapter that can be linked to."""
    (source,) = SOURCES.glob(f"{chapter}_*.py")
    return set(re.findall(r'<a id="([^"]+)"></a>', source.read_text(encoding="utf-8")))


ANCHORS = {chapter: anchors_of(chapter) for chapter in sorted({q.chapter for q in QUESTIONS})}


def test_every_interview_question_has_one_row():
    assert tuple(row["line"] for row in ROWS) == INTERVIEWERS_ASK
    assert len({row["key"] for row in ROWS}) == len(INTERVIEWERS_ASK) == 60


@pytest.mark.parametrize("row", ROWS, ids=[row["key"] for row in ROWS])
def test_an_interview_question_is_asked_in_the_bank_and_taught_in_a_cell(row):
    question = find_question(row["question"])
    assert (question.chapter, question.anchor) == (row["chapter"], row["anchor"])
    assert row["anchor"] in ANCHORS[row["chapter"]]


@pytest.mark.parametrize("chapter", sorted(ANCHORS))
def test_every_question_of_the_bank_finds_the_cell_that_teaches_it(chapter):
    lost = [q.id for q in QUESTIONS if q.chapter == chapter and q.anchor not in ANCHORS[chapter]]
    assert lost == []


def test_an_interview_question_is_not_asked_by_the_same_card_twice():
    assert len({row["question"] for row in ROWS}) == len(ROWS)


def test_the_bank_is_large_and_every_kind_topic_and_level_is_there():
    kinds, topics, levels = (
        Counter(getattr(question, field) for question in QUESTIONS)
        for field in ("kind", "topic", "level")
    )
    assert len(QUESTIONS) >= 160
    assert {kind for kind in KINDS if kinds[kind] >= 6} == set(KINDS)
    assert {topic for topic in TOPICS if topics[topic] >= 7} == set(TOPICS)
    assert {level for level in LEVELS if levels[level] >= 25} == set(LEVELS)


@pytest.mark.parametrize("topic", [topic for topic in TOPICS if topic != "basics"])
def test_a_topic_has_several_kinds_and_a_spoken_answer(topic):
    kinds = {question.kind for question in QUESTIONS if question.topic == topic}
    assert len(kinds) >= 4
    assert "open" in kinds


def test_no_two_questions_have_the_same_text():
    assert max(Counter(question.text for question in QUESTIONS).values()) <= 4
    texts = Counter((q.text, getattr(q, "options", ())) for q in QUESTIONS)
    assert max(texts.values()) == 1
