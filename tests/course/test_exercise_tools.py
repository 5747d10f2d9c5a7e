import subprocess
import sys

import numpy as np
import pytest

from kvlab.course import exercises as ex
from kvlab.course.checks_02 import attention_flops
from kvlab.course.grading import Verdict

ALL = [*ex.exercises_of("01"), *ex.exercises_of("02")]
FUNCTIONS = [exercise for exercise in ALL if exercise.stub.startswith("def")]


def names(exercises):
    return [exercise.id for exercise in exercises]


@pytest.mark.parametrize("exercise", FUNCTIONS, ids=names(FUNCTIONS))
def test_a_function_that_fails_costs_one_line(exercise):
    def breaks(*args):
        raise RuntimeError("first line\nsecond line" + "x" * 1000)

    def leaves(*args):
        raise SystemExit(3)

    def spoils(*args):
        for arg in args:
            if isinstance(arg, np.ndarray):
                arg[:] = 0
        return None

    for function in (breaks, leaves, lambda: 1, lambda *a: (lambda: 0)(1)):
        result = ex.check(exercise.id, function)
        assert not result.passed
        assert "\n" not in result.text
        assert len(result.text) < 250
    assert "RuntimeError: first line" in ex.check(exercise.id, breaks).text
    assert ex.check(exercise.id, spoils).grade.verdict is Verdict.NOT_ANSWERED
    assert "it is not a function: hand over its name" in ex.check(exercise.id, 5).text


def test_an_error_says_its_line_and_one_before_the_first_line_says_none():
    def divides(q_len, cached_tokens):
        half = cached_tokens - cached_tokens
        return q_len / half

    assert "(line 3 of your function)" in ex.check("01-b", divides).text
    assert "of your function" not in ex.check("01-b", lambda: 1).text


def test_a_function_that_prints_is_asked_whether_it_means_return(capsys):
    def prints(q_len, cached_tokens):
        print(q_len + cached_tokens)

    result = ex.check("01-b", prints)
    assert result.grade.verdict is Verdict.NOT_ANSWERED
    assert "did you mean `return`?" in result.text
    assert "?." not in result.text
    capsys.readouterr()


@pytest.mark.parametrize("exercise", ALL, ids=names(ALL))
def test_anything_that_is_no_answer_gets_a_message(exercise):
    for answer in (None, "", "nan", [], {}, float("nan"), "x" * 10_000, object(), np.array([])):
        result = ex.check(exercise.id, answer)
        assert not result.passed
        assert result.text


def test_hints_come_one_step_at_a_time_and_stay():
    ex.forget_hints()
    exercise = ex.find_exercise("01-a")
    first, second = ex.hint("01-a"), ex.hint("01-a")
    assert exercise.hints[0] in first.text
    assert exercise.hints[1] not in first.text
    assert exercise.hints[0] in second.text
    assert exercise.hints[1] in second.text
    for _ in range(5):
        last = ex.hint("01-a")
    assert exercise.hints[-1] in last.text
    assert "No more steps" in last.text
    ex.forget_hints()


def test_an_unknown_exercise_is_named():
    for name in ("01-z", "99-a", "../x", "", None):
        with pytest.raises(ValueError, match=r"exercise_id|chapter"):
            ex.find_exercise(name)


def test_the_flops_exercise_agrees_with_the_hand_formula():
    assert attention_flops() == 4 * 80 * 64 * 128 * sum(range(7193, 8192 + 1))


def test_the_course_loads_no_torch():
    code = (
        "import sys; from kvlab.course import check_attend, check_cached_step, claim_card;"
        "check_attend(...); check_cached_step(...); repr(claim_card('matmuls-32000'));"
        "print('torch' in sys.modules, 'transformers' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["False", "False"]
