"""Both editions of every chapter: students find no solution, instructors find all, and they run."""

import ast
import os
import re
from pathlib import Path

import edition_instructor
import nbformat
import pytest
from built_chapters import built_sources
from chapter_pairs import notebook_of, tags_of
from edition_instructor import instructor_edition, known_mistakes
from edition_parts import FOLDED, SAVED, UNTIL, answers
from edition_student import code_lines, giving_away, squeezed, student_edition
from editions import main
from nbformat import NotebookNode
from run_notebook import run_notebook

from kvlab.course.exercises import Exercise, find_exercise

SOURCES = built_sources()
NUMBERS = [source.stem[:2] for source in SOURCES]
FULL = bool(os.environ.get("KVLAB_TEST_FULL"))
QUICK = NUMBERS if FULL else ["03", "13"]
every_chapter = pytest.mark.parametrize("number", NUMBERS)


def chapter(number: str) -> NotebookNode:
    source = next(source for source in SOURCES if source.stem.startswith(number))
    return nbformat.read(notebook_of(source), as_version=4)


def all_text(notebook: NotebookNode) -> str:
    return nbformat.writes(notebook, version=4).replace("\\n", "\n").replace('\\"', '"')


def said(notebook: NotebookNode) -> dict[str, str]:
    """Return what each check shows, by the exercise's id."""
    shown = {}
    for _, check, exercise in answers(notebook):
        parts = [output.get("data", {}).get("text/plain", "") for output in check.outputs]
        shown[exercise.id] = "".join(parts)
    return shown


@every_chapter
def test_a_student_copy_holds_the_text_of_no_solution(number: str) -> None:
    text = squeezed(all_text(student_edition(chapter(number), number)))
    found = list(answers(chapter(number)))
    assert found
    for _, _, exercise in found:
        assert squeezed(exercise.solution) not in text
        assert squeezed("\n".join(code_lines(exercise.solution))) not in text
        assert squeezed(exercise.why) not in text
        if exercise.stub.startswith("answer"):
            for line in code_lines(exercise.solution):
                assert squeezed(line) not in text, f"{exercise.id}: {line}"


@every_chapter
def test_a_student_copy_shows_no_way_to_a_solution_and_no_result(number: str) -> None:
    original, copy = chapter(number), student_edition(chapter(number), number)
    assert "solution(" in all_text(original)
    assert not re.search(r"\bsolutions?\(|, solution\b", all_text(copy))
    assert not [c for c in copy.cells if {"solution", "instructor"} & set(tags_of(c))]
    code = [cell for cell in copy.cells if cell.cell_type == "code"]
    assert [cell.outputs for cell in code] == [[] for _ in code]
    assert {cell.execution_count for cell in code} == {None}
    assert copy.cells[0].source.startswith(f"*Student edition of chapter {number}")
    assert len(list(answers(copy))) == len(list(answers(original)))


@every_chapter
def test_a_student_copy_keeps_only_hints_that_leave_work(number: str) -> None:
    copy = all_text(student_edition(chapter(number), number))
    for _, _, exercise in answers(chapter(number)):
        assert (f'hint_steps("{exercise.id}")' in copy) is not bool(giving_away(exercise))


def test_hints_that_give_a_line_away_are_found_and_others_are_not() -> None:
    assert [h[:10] for h in giving_away(find_exercise("05-c"))] == ["`weight.re"]
    assert len(giving_away(find_exercise("08-b"))) == 2
    assert giving_away(find_exercise("03-b")) == giving_away(find_exercise("11-d")) == []


@every_chapter
def test_sentences_that_an_edition_changes_are_in_the_chapter(number: str) -> None:
    text = all_text(chapter(number))
    assert SAVED.search(text) or f"{UNTIL} {FOLDED}" in text
    copy = all_text(student_edition(chapter(number), number))
    assert not SAVED.search(copy) and "solutions are folded" not in copy


@every_chapter
def test_no_solution_writes_over_a_name_that_a_later_cell_reads(number: str) -> None:
    notebook = chapter(number)
    for answer, check, exercise in answers(notebook):
        own = {node.id for node in ast.walk(ast.parse(answer.source)) if is_stored(node)}
        tree = ast.parse(exercise.solution)
        written = {node.id for stmt in tree.body for node in assigned(stmt)} - own - {"answer"}
        after = notebook.cells[notebook.cells.index(check) + 1 :]
        read = names_read_first([c.source for c in after if c.cell_type == "code"])
        assert not written & read, exercise.id


def is_stored(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def assigned(statement: ast.stmt) -> list[ast.Name]:
    if isinstance(statement, ast.FunctionDef):
        return []
    return [node for node in ast.walk(statement) if is_stored(node)]  # type: ignore[misc]


def names_read_first(cells: list[str]) -> set[str]:
    """Return the names that some cell reads before any of these cells has written them."""
    read: set[str] = set()
    written: set[str] = set()
    for source in cells:
        for statement in ast.parse(source).body:
            names = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
            read |= {n.id for n in names if isinstance(n.ctx, ast.Load)} - written
            written |= {n.id for n in names if isinstance(n.ctx, ast.Store)}
    return read


@pytest.mark.slow
@pytest.mark.parametrize("number", NUMBERS if FULL else ["08", "13"])
def test_an_instructor_copy_passes_every_check(number: str) -> None:
    copy = instructor_edition(chapter(number), number, whole=FULL)
    results = said(copy)
    assert results and all(text.startswith(f"{i}: Right") for i, text in results.items())
    assert copy.cells[0].source.startswith(f"*Instructor edition of chapter {number}")
    code = [cell for cell in copy.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    notes = [cell.source for cell in copy.cells if cell.source.startswith("**For the instructor")]
    assert len(notes) == len(results) and all("Hints, in steps" in note for note in notes)


def test_a_wrong_solution_stops_the_instructor_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    real = edition_instructor.filled
    broken = {"13-b": "answer = 1"}

    def fill(exercise: Exercise, check: NotebookNode) -> str:
        return broken.get(exercise.id) or real(exercise, check)

    monkeypatch.setattr(edition_instructor, "filled", fill)
    with pytest.raises(ValueError, match="13-b does not pass"):
        instructor_edition(chapter("13"), "13")


def test_the_wrong_ways_that_a_check_knows_are_told_to_the_instructor() -> None:
    names = [name for name, _ in known_mistakes(find_exercise("03-b"))]
    assert {"query-heads", "factor-2", "weight-dtype"} <= set(names)
    assert ("scale-forgotten" in dict(known_mistakes(find_exercise("01-a")))) is True
    assert dict(known_mistakes(find_exercise("01-c")))["query-heads"]


@pytest.mark.slow
@pytest.mark.parametrize("number", QUICK)
def test_a_student_copy_runs_from_the_top_with_nothing_answered(
    number: str, tmp_path: Path
) -> None:
    copy = student_edition(chapter(number), number)
    run_notebook(copy, tmp_path)
    assert set(said(copy)) and all("Not answered yet" in text for text in said(copy).values())


def test_one_command_writes_both_copies_and_says_how_many(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["13", "--out", str(tmp_path), "--colab", "https://example.org/copies/"]) == 0
    assert "1 of 1 chapters" in capsys.readouterr().out
    student, teacher = (tmp_path / e / "13_interview.ipynb" for e in ("student", "instructor"))
    assert "https://example.org/copies/13_interview.ipynb" in student.read_text("utf-8")
    assert nbformat.read(teacher, as_version=4).cells[0].source.startswith("*Instructor edition")
    first = teacher.read_bytes()
    assert main(["13", "--out", str(tmp_path), "--colab", "https://example.org/copies/"]) == 0
    assert teacher.read_bytes() == first
