"""Faults that were really reported against graders of exercises, each as a small test."""

import json
import math
import subprocess
import sys
import traceback

import pytest

from kvlab.cache import make_cache
from kvlab.course.asked import Asked
from kvlab.course.bank import find_question, load_questions
from kvlab.course.calls import evaluate
from kvlab.course.claim_math_07 import hit_tokens, hit_tokens_found
from kvlab.course.exercises import check
from kvlab.course.grading import Target, Verdict, grade_number
from kvlab.course.questions import NumericQuestion
from kvlab.model.decode import generate
from kvlab.model.load import load_model

NUMERIC = [q for q in load_questions() if isinstance(q, NumericQuestion)]
LARGE = [
    q for q in NUMERIC if abs(evaluate(q.fresh.answer, Asked(q, 1).values)) >= 1000
]  # a short number may stand in a sentence by chance
EMPTY = [None, ..., "", "nan", float("nan"), "forty", [], math.inf]


@pytest.mark.parametrize("text", [".5", "0.5", "5e-1", " 0.5 ", "0,5", ".50"])
def test_a_number_is_right_however_it_is_written(text):
    assert grade_number(text, Target(0.5)).right


def test_a_point_before_three_digits_is_never_taken_for_thousands_in_silence():
    grade = grade_number("327.680", Target(327_680, exact=True))
    assert grade.verdict is Verdict.AMBIGUOUS
    assert grade_number("327.680", Target(327.68)).right


@pytest.mark.parametrize("text", ["11", "11.0", 11, 11.0])
def test_a_count_takes_the_very_integer(text):
    assert grade_number(text, Target(11, exact=True)).right


@pytest.mark.parametrize("text", ["11.6", "12", "11.04", 11.0001, "10.9999"])
def test_a_count_has_no_tolerance(text):
    assert not grade_number(text, Target(11, exact=True)).right


def test_counts_of_the_bank_are_exact_and_no_tolerance_lets_gb_pass_for_gib():
    for question in NUMERIC:
        assert question.tolerance <= 0.02 < 2**10 / 10**3 - 1, question.id
        if question.exact:
            answers = [evaluate(question.fresh.answer, Asked(question, s).values) for s in range(9)]
            assert all(answer == int(answer) for answer in answers), question.id


@pytest.mark.parametrize(("context", "gib"), [(131_072, 40), (8_192, 2.5)])
def test_bytes_in_either_unit_are_right_and_swapped_units_are_named(context, gib):
    target = Target(context * 327_680 / 2**30, unit="GiB")
    decimal = context * 327_680 / 1e9
    for text in (f"{gib} GiB", f"{decimal:.2f} GB", f"{gib * 1024} MiB", context * 327_680):
        assert grade_number(text, target).right, text
    swapped = grade_number(f"{gib} GB", target)
    assert swapped.misconception == "gb-for-gib" and "GB vs GiB" in swapped.feedback
    assert grade_number(f"{decimal:.2f} Gb", target).verdict is Verdict.WRONG_UNIT


@pytest.mark.parametrize("question", LARGE, ids=[q.id for q in LARGE])
def test_wrong_answers_never_show_the_expected_one_in_any_form(question):
    asked = Asked(question, 1)
    expected = evaluate(question.fresh.answer, asked.values)
    grade = asked.grade("7777777777.25")
    shown = f"{grade} {grade!r} {asked!r} {question!r} {json.dumps(grade.feedback)}"
    for text in (f"{expected}", f"{expected:,}", f"{expected:.0f}", f"{expected:,.1f}"):
        assert text not in shown.replace(asked.text, "").replace(question.text, "")


def test_no_traceback_holds_the_expected_answer():
    class Hostile(str):
        def strip(self, *_):
            raise RuntimeError("on purpose")

    asked = Asked(find_question("03-bytes-per-token"), 2)
    expected = evaluate(asked.question.fresh.answer, asked.values)
    try:
        grade = asked.grade(Hostile("40 GiB"))
    except Exception:
        pytest.fail(traceback.format_exc())
    assert not grade.right and str(expected) not in f"{grade!r}"


def test_an_answer_gets_the_same_grade_in_a_fresh_process_in_any_order():
    cells = ["655360", "320 KiB", "...", "nan", "320 kB", "two", "160 KiB"]
    code = (
        "import json, sys; from kvlab.course.grading import Target, grade_number as g;"
        "t = Target(327680, unit='B');"
        "print(json.dumps([g(a, t).verdict.value for a in json.loads(sys.argv[1])]))"
    )
    target = Target(327_680, unit="B")
    here = [grade_number(cell, target).verdict.value for cell in cells]
    for order in (cells, cells[::-1]):
        ran = subprocess.run(
            [sys.executable, "-c", code, json.dumps(order)],
            capture_output=True,
            text=True,
            check=True,
        )
        fresh = dict(zip(order, json.loads(ran.stdout), strict=True))
        assert [fresh[cell] for cell in cells] == here


@pytest.mark.parametrize("answer", EMPTY, ids=repr)
def test_an_exercise_that_holds_no_number_gets_a_message_twice_the_same(answer):
    first, again = check("00-a", answer), check("00-a", answer)
    assert not first.passed
    assert repr(first) == repr(again)
    assert repr(first)


def test_six_in_and_ten_out_hold_fifteen_positions_in_model_formula_and_question():
    loaded = load_model("tiny", dtype="float32")
    ids = loaded.encode("Ada: Paris. Bruno: Oslo. Carmen: Lima.")[:, :6]
    assert ids.shape == (1, 6)
    cache = make_cache("growing", num_layers=loaded.model.config.num_layers)
    steps = list(generate(loaded.model, ids, max_new_tokens=10, cache=cache))
    assert len(steps) == 10
    assert cache.get_seq_length() == 15
    question = find_question("01-positions-held")
    assert evaluate(question.fresh.answer, {"P": 6, "N": 10}) == 15


@pytest.mark.parametrize(
    ("prompt", "block_size", "found"),
    [(35, 32, 32), (36, 32, 32), (36, 16, 32), (36, 8, 32), (36, 2, 34)],
)
def test_hits_end_at_the_last_full_block_in_grader_and_manager(prompt, block_size, found):
    assert hit_tokens(prompt, 34, block_size) == found
    assert hit_tokens_found(prompt, 34, block_size) == found
