import json

import pytest

from kvlab.course.exercises import exercises_of

pytestmark = pytest.mark.slow

CELLS = [
    "from kvlab.course import check, check_lengths, claim_card, render, Asked, find_question",
    "answer = ...",
    "check_lengths(answer)",
    "answer = (10, 9, 16)",
    "check_lengths(answer)",
    "check('02-c', '2.52 TFLOP')",
    "def attend(query, keys, values):\n    ...",
    "check('01-a', attend)",
    "asked = Asked(find_question('02-uncached-forwards'), seed=3)\nasked",
    "asked.grade('12')",
    "asked.question",
]


def run(cells):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(book, kernel_name="python3", timeout=60).execute()
    return [[dict(out) | {"execution_count": 0} for out in cell.outputs] for cell in book.cells]


def test_a_fresh_kernel_grades_the_same_twice_and_saves_no_answer():
    outputs = run([*CELLS, *CELLS])
    assert outputs[: len(CELLS)] == outputs[len(CELLS) :]
    saved = json.dumps(outputs)
    assert "Not answered yet" in saved
    assert "Traceback" not in saved
    for told in ("20165427200000", "20,165,427,200,000", "(10, 9, 15)", "10, 9, 15"):
        assert told not in saved
    assert all(exercise.why not in saved for exercise in exercises_of("02"))
    from kvlab.course import Asked, find_question

    answer = Asked(find_question("02-uncached-forwards"), seed=3).solution().split(" = ")[-1]
    assert answer.rstrip(".") not in saved
