import json
import math
import subprocess
import sys
import time
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlab.course.grading import Misconception, Target, Verdict, grade_number

TABLE = json.loads(Path(__file__).with_name("answers.json").read_text(encoding="utf-8"))
VERDICTS = {
    "right": Verdict.RIGHT,
    "near": Verdict.NEAR,
    "wrong": Verdict.WRONG,
    "wrong_unit": Verdict.WRONG_UNIT,
    "unit_missing": Verdict.NEED_UNIT,
    "ambiguous": Verdict.AMBIGUOUS,
    "unreadable": Verdict.UNREADABLE,
    "not_answered": Verdict.NOT_ANSWERED,
}
ROWS = [
    (name, verdict, answer)
    for name, part in TABLE.items()
    for verdict, answers in part["rows"].items()
    for answer in answers
]
FORTY_GIB = Target(40, unit="GiB")


def target_of(name):
    fields = dict(TABLE[name]["target"])
    known = tuple(Misconception(*row) for row in fields.pop("misconceptions", []))
    return Target(**fields, misconceptions=known)


def test_the_table_has_four_hundred_rows_or_more():
    assert len(ROWS) >= 400
    assert len({(name, answer) for name, _, answer in ROWS}) == len(ROWS)


@pytest.mark.parametrize(("name", "verdict", "answer"), ROWS)
def test_an_answer_is_graded_as_the_table_says(name, verdict, answer):
    assert grade_number(answer, target_of(name)).verdict is VERDICTS[verdict]


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (42949672960, Verdict.RIGHT),
        (40.0, Verdict.RIGHT),
        (np.int64(42949672960), Verdict.RIGHT),
        (np.float32(40), Verdict.RIGHT),
        (Fraction(80, 2), Verdict.RIGHT),
        (41, Verdict.WRONG),
        (1 << 20_000, Verdict.UNREADABLE),
        (math.inf, Verdict.UNREADABLE),
        (math.nan, Verdict.NOT_ANSWERED),
        (np.float64("nan"), Verdict.NOT_ANSWERED),
        (None, Verdict.NOT_ANSWERED),
        (..., Verdict.NOT_ANSWERED),
        ([40], Verdict.NOT_ANSWERED),
        ({"GiB": 40}, Verdict.NOT_ANSWERED),
        (b"40 GiB", Verdict.NOT_ANSWERED),
        (True, Verdict.NOT_ANSWERED),
        (40 + 0j, Verdict.NOT_ANSWERED),
        (np.array([40, 40]), Verdict.NOT_ANSWERED),
        (object(), Verdict.NOT_ANSWERED),
        (print, Verdict.NOT_ANSWERED),
        (Decimal("40"), Verdict.RIGHT),
    ],
    ids=lambda value: type(value).__name__,
)
def test_answers_of_any_type_get_a_message(answer, verdict):
    grade = grade_number(answer, FORTY_GIB)
    assert grade.verdict is verdict
    assert grade.feedback
    assert grade.answered or grade.feedback.startswith("Not answered yet")


def test_gb_for_gib_gets_the_hint_that_names_both():
    grade = grade_number("40 GB", FORTY_GIB)
    assert grade.misconception == "gb-for-gib"
    assert "GB vs GiB" in grade.feedback
    assert "bits" in grade_number("43 Gb", FORTY_GIB).feedback


@pytest.mark.parametrize(
    ("name", "answer", "misconception"),
    [
        ("bytes_320_kib", "2.5 MiB", "query-heads"),
        ("bytes_320_kib", "160 KiB", "factor-2"),
        ("bytes_320_kib", "320 kB", "gb-for-gib"),
        ("bytes_320_kib", "320 MiB", "wrong-prefix"),
        ("bytes_320_kib", "320", "unit-missing"),
        ("sessions_11", "92", "pooled"),
        ("ratio_8", "1/8", "upside-down"),
        ("forty_gib", "320 GiB", "bits-for-bytes"),
        ("forty_gib", "-40 GiB", "sign"),
    ],
)
def test_a_known_slip_gets_its_own_feedback(name, answer, misconception):
    assert grade_number(answer, target_of(name)).misconception == misconception


JUNK = [
    "9" * 10_000,
    "1," * 5_000,
    "," * 10_000,
    "1 " * 5_000,
    "e" * 10_000,
    "1e" * 5_000,
    "((" * 5_000,
    "\u0661" * 10_000,
    "\ufdfa" * 10_000,
    "1" * 119,
    "1," * 59,
    "1 1" * 39,
    "x 10^" * 20,
    "1" + " " * 118,
    "1" + "/s" * 59,
    "1 per " * 19,
    "\x00\x01\x02",
    "\ud800",
    "1\n2",
]


@pytest.mark.parametrize("junk", JUNK, ids=range(len(JUNK)))
def test_ten_thousand_characters_of_junk_take_no_time(junk):
    start = time.process_time()
    grade = grade_number(junk, FORTY_GIB)
    assert not grade.right
    assert len(grade.feedback) < 300
    assert time.process_time() - start < 0.5


@given(st.text(max_size=200))
def test_no_text_raises(text):
    assert grade_number(text, FORTY_GIB).feedback


@given(st.integers(1, 10**15))
def test_an_integer_is_right_however_it_is_grouped(number):
    target = Target(number, exact=True)
    for text in (f"{number}", f"{number:,}", f"{number:_}", f"{number:,}".replace(",", " ")):
        assert grade_number(text, target).right, text


def expected_texts(target):
    value = target.value
    return {f"{value}", f"{value:,}", f"{value:,.2f}", f"{value:.3g}"}


@pytest.mark.parametrize(("name", "verdict", "answer"), [r for r in ROWS if r[1] != "right"])
def test_feedback_never_tells_the_expected_value(name, verdict, answer):
    target = target_of(name)
    grade = grade_number(answer, target)
    shown = f"{grade.feedback} {grade!r}".replace(answer, "").replace("8 to a byte", "")
    if name in {"count_327680", "bytes_320_kib", "forty_gib", "gb_2_68"}:
        assert not any(text in shown for text in expected_texts(target))
    assert str(target.value) not in repr(target)


def test_an_answer_that_fights_back_still_gets_a_message():
    class Hostile(str):
        def __len__(self):
            raise RuntimeError("no")

    class Loud:
        def __repr__(self):
            raise RuntimeError("no")

    for answer in (Hostile("40 GiB"), Loud()):
        assert grade_number(answer, FORTY_GIB).verdict in (
            Verdict.UNREADABLE,
            Verdict.NOT_ANSWERED,
        )


def test_pint_is_loaded_only_when_a_unit_is_typed():
    code = (
        "import sys; from kvlab.course.grading import Target, grade_number as g;"
        "g('3', Target(3)); g('93 %', Target(93, '%')); print('pint' in sys.modules);"
        "g('3 GiB', Target(3, 'GiB')); print('pint' in sys.modules, 'torch' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["False", "True", "False"]
