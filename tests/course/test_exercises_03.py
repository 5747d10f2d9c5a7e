"""The exercises of chapter 03: right ways pass, each typical slip gets its own sentence."""

import contextlib
import io

import numpy as np
import pytest
from exercise_answers import assert_told_apart

from kvlab.course import checks_fit, growth_03
from kvlab.course import exercises as ex
from kvlab.course.checks_03 import cache_bytes
from kvlab.course.published_table import PRINTED_MIB, STATEMENTS, corrections, page_mib, size

ALL = ex.exercises_of("03")
RIGHT = {
    "03-a": [cache_bytes, lambda a, b, c, d, e, f: 2 * a * b * c * d * e * f],
    "03-b": ["4.5 GiB", 4.5, "4.83 GB", "4608 MiB"],
    "03-c": [2, 2.0, "2", "2 times"],
    "03-d": [
        "A B D E F H J",
        "abdefhj",
        ["A", "B", "D", "E", "F", "H", "J"],
        set("JHFEDBA"),
        "A-B, D-F, H and J",
        "1 2 4 5 6 8 10",
    ],
    "03-e": [
        [248, 62, 15, 3],
        (248, 62, 15, 3),
        "248/62/15/3",
        "[248, 62, 15, 3]",
        "248 62 15 3",
        np.array([248, 62, 15, 3]),
        {2048: 248, 8192: 62, 32768: 15, 131072: 3},
    ],
    "03-f": [lambda n: 46_080 * n, lambda n: 1024 * n],
}
WRONG = {
    "03-a": {
        "factor-2": lambda a, b, c, d, e, f: a * b * c * d * e * f,
        "factor-2-twice": lambda a, b, c, d, e, f: 4 * a * b * c * d * e * f,
        "one-layer": lambda a, b, c, d, e, f: 2 * b * c * d * e * f,
        "one-user": lambda a, b, c, d, e, f: 2 * a * b * c * d * e,
        "one-token": lambda a, b, c, d, e, f: 2 * a * b * c * d * f,
        "bits": lambda a, b, c, d, e, f: 16 * a * b * c * d * e * f,
        "elements": lambda a, b, c, d, e, f: 2 * a * b * c * e * f,
    },
    "03-b": {
        "query-heads": "18 GiB",
        "factor-2": 2.25,
        "factor-2-twice": 9,
        "hidden-over-heads": "2.8125 GiB",
        "weight-dtype": "1.125 GiB",
        "one-layer": "0.125 GiB",
        "full-context": "5.625 GiB",
        "gb-for-gib": "4.83 GiB",
    },
    "03-c": {"upside-down": 0.5, "twice-lost": 4, "none": 1, "unit-only": 1.0486},
    "03-d": {
        "extra-C": "A B C D E F H J",
        "extra-G": "ABDEFGHJ",
        "extra-I": "A, B, D, E, F, H, I, J",
        "missed": "A B",
        "extra-C ": "all",
    },
    "03-e": {
        "gb-for-gib": [230, 57, 14, 3],
        "factor-2": [496, 124, 31, 7],
        "query-heads": [62, 15, 3, 0],
        "rounded-up": [248, 62, 16, 4],
        "fraction": [248, 62, 15.5, 3.875],
        "whole-card": [298, 74, 18, 4],
        "whole-card ": [320, 80, 20, 5],
        "weights-again": [188, 47, 11, 2],
        "four-bytes": "124 31 7 1",
    },
    "03-f": {
        "constant": lambda n: 46_080,
        "no-line": lambda n: 46_080 * sum(m for m in growth_03.MEASURED_AT if m <= n),
        "fixed-part": lambda n: 1024 * n + 500,
        "positions": lambda n: 1024 * (n + 1),
        "half": lambda n: 23_040 * n,
        "numbers": lambda n: 11_520 * n,
        "one-layer": lambda n: 1536 * n,
        "query-heads": lambda n: 138_240 * n,
        "bits": lambda n: 8 * 1024 * n,
        "raises": lambda n: 1 // 0,
        "form": lambda n: "many",
        "": lambda n: 1000 * n,
    },
}
IDS = [exercise.id for exercise in ALL]


@pytest.mark.parametrize("exercise", ALL, ids=IDS)
def test_right_answers_pass_and_each_slip_is_named(exercise: ex.Exercise) -> None:
    assert_told_apart(exercise, RIGHT, WRONG)


def test_the_checks_can_be_imported_by_name() -> None:
    from kvlab.course import check_cache_bytes, check_from_a_config, check_inherited

    with contextlib.redirect_stdout(io.StringIO()):
        assert check_cache_bytes(cache_bytes).passed
        assert check_from_a_config(4.5).passed
        assert check_inherited("A B D E F H J").passed


def test_every_printed_size_is_half_of_what_the_function_and_the_formula_give() -> None:
    for tokens, printed in PRINTED_MIB.items():
        assert 2 * printed == page_mib(32, 8, 128, tokens) == size(tokens) / 2**20


def test_the_later_numbers_are_corrected_as_the_arithmetic_says() -> None:
    assert [right for _, _, right in corrections()] == [
        "2.5 / 10 / 40 / 160 GiB",
        "25 / 100 / 400 / 1,600 GiB",
        "16.06 GB",
        "26.7 %",
        "3.74",
        "4,096 / 1,024 / 128 MiB",
        "25 %",
        "4,096 to 2,048 MiB",
        "50 %",
        "248 / 62 / 15 / 3",
    ]


def test_three_statements_are_sound_and_seven_inherit() -> None:
    assert sum(row.inherits for row in STATEMENTS) == 7
    assert [row.letter for row in STATEMENTS] == list("ABCDEFGHIJ")
    assert not any(row.why in repr(row) for row in STATEMENTS)


def test_what_fits_is_what_the_published_correction_says_and_the_unit_moves_it() -> None:
    published = {letter: right for letter, _, right in corrections()}["J"]
    assert " / ".join(map(str, checks_fit.that_fit())) == published
    for said in ("248", "62", "15", "3", "230, 57, 14, 3"):
        assert said in ex.find_exercise("03-e").why


def test_the_growth_of_a_real_cache_is_told_beside_the_formula() -> None:
    grade = ex.check("03-f", lambda tokens: 46_080 * tokens).grade
    assert "46,080 B a token, and the formula for SmolLM2 says 46,080 B" in grade.feedback
    assert "46,080" not in ex.check("03-f", lambda tokens: 23_040 * tokens).text


@pytest.mark.parametrize("answer", ["248", [248], "248 62 15", [248, 62, 15, 3, 0], [..., 1, 2, 3]])
def test_too_few_or_too_many_counts_are_not_judged(answer: object) -> None:
    assert not ex.check("03-e", answer).grade.answered


def test_counts_that_fit_no_slip_are_told_where_to_look() -> None:
    text = ex.check("03-e", [248, 62, 14, 3]).text
    assert "3 of 4 agree" in text and "32,768 tokens" in text
