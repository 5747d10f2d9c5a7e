"""The question bank: load every file of `data/questions`, find and select questions."""

from functools import lru_cache
from pathlib import Path

from kvlab._paths import data_dir
from kvlab.course.question_loader import read_question
from kvlab.course.questions import Question
from kvlab.course.schema import read_rows
from kvlab.errors import InvalidArgument


def load_questions(folder: Path | None = None) -> tuple[Question, ...]:
    """Return every question of the bank (or of the files in `folder`).

    Raises `InvalidArgument` naming the file, the row, the field and the rule.

    >>> len({question.id for question in load_questions()}) == len(load_questions())
    True
    """
    return _load(folder or data_dir() / "questions")


def find_question(question_id: str) -> Question:
    """Return the question of that id; raises `InvalidArgument` when there is none."""
    for question in load_questions():
        if question.id == question_id:
            return question
    raise InvalidArgument("question_id", question_id, "is not in the question bank")


def select_questions(
    *,
    chapter: str | None = None,
    topic: str | None = None,
    level: int | None = None,
    in_set: str | None = None,
) -> tuple[Question, ...]:
    """Return the questions of a chapter, topic, level or set (placement, diagnostic, interview).

    >>> len(select_questions(in_set="placement"))
    6
    """
    return tuple(
        question
        for question in load_questions()
        if chapter in (None, question.chapter)
        and topic in (None, question.topic)
        and level in (None, question.level)
        and (in_set is None or in_set in question.sets)
    )


@lru_cache(maxsize=8)
def _load(folder: Path) -> tuple[Question, ...]:
    """Read and check all files of a folder."""
    questions: dict[str, Question] = {}
    for path in sorted(folder.glob("*.json")):
        for row in read_rows(path, "questions"):
            question = read_question(row)
            if question.id in questions:
                raise row.fault("id", question.id, "is the id of another question")
            questions[question.id] = question
    return tuple(questions.values())
