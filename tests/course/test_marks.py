"""Several marks are read as people type them; what cannot be meant is met with a reason."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlab.course.marks import read_marks
from kvlab.course.typed import Unread

READ = {
    "": set(), "none": set(), "0": set(), " . ": set(),
    "all": {1, 2, 3, 4, 5}, "ALL": {1, 2, 3, 4, 5}, "1-5": {1, 2, 3, 4, 5},
    "1\N{EN DASH}5": {1, 2, 3, 4, 5}, "5-1": {1, 2, 3, 4, 5}, "a-e": {1, 2, 3, 4, 5},
    "1": {1}, "1 3": {1, 3}, "1,3": {1, 3}, "1, 3": {1, 3}, "1;3": {1, 3}, "1.3": {1, 3},
    "3 1": {1, 3}, "1 1 3": {1, 3}, "13": {1, 3}, "1 and 3": {1, 3}, "points 1, 3": {1, 3},
    "a c": {1, 3}, "A, C": {1, 3}, "ac": {1, 3}, "AC": {1, 3}, "(a) (c)": {1, 3},
    "1-3, 5": {1, 2, 3, 5}, "1 - 3": {1, 2, 3}, "1 to 3": {1, 2, 3}, "a-c e": {1, 2, 3, 5},
    "\N{FULLWIDTH DIGIT ONE} \N{FULLWIDTH DIGIT THREE}": {1, 3},
}  # fmt: skip
REFUSED = ["6", "1 6", "1-6", "f", "s", "?", "all of them", "1-", "-1", "1e3", "11", "x" * 1000]


@pytest.mark.parametrize("typed", READ, ids=repr)
def test_marks_are_read_as_they_are_meant(typed):
    assert read_marks(typed, 5) == READ[typed]


@pytest.mark.parametrize("typed", REFUSED)
def test_what_is_no_list_of_the_five_is_refused_with_a_reason(typed):
    found = read_marks(typed, 5)
    assert isinstance(found, Unread) and found.reason


def test_two_digits_are_one_number_where_there_are_so_many():
    assert read_marks("10 12", 12) == {10, 12}
    assert isinstance(read_marks("13", 12), Unread)


@given(st.text(max_size=40), st.integers(1, 26))
def test_nothing_raises_and_nothing_lies_outside(typed, total):
    found = read_marks(typed, total)
    assert isinstance(found, Unread) or found <= set(range(1, total + 1))
