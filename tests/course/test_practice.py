"""Misses come back on their day, scores name chapters, own marks want the scope first."""

from datetime import date, timedelta
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from kvlab.course.bank import load_questions
from kvlab.course.practice import (
    NOT_MARKED,
    STEPS,
    due_today,
    next_due,
    own_mark,
    reviews,
    score_by_topic,
    spoken_answer,
)
from kvlab.course.questions import OpenQuestion

START = date(2026, 3, 1)


def kept(*answers, verdict=""):
    return [
        {"when": f"{START + timedelta(day)}T10:00:00+00:00", "right": right, "verdict": verdict}
        for day, right in answers
    ]


def back(*answers):
    due = next_due(kept(*answers))
    return None if due is None else (due[0] - START).days


def test_what_was_never_missed_is_not_reviewed():
    assert back() is None
    assert back((0, True), (5, True)) is None


def test_a_miss_comes_back_after_one_three_and_seven_days_then_twice_as_late():
    day, history = 0, [(0, False)]
    for gap in STEPS:
        assert back(*history) == day + gap
        day += gap
        history.append((day, True))
    assert back(*history) is None
    assert STEPS[:3] == (1, 3, 7)
    assert all(after == 2 * before for before, after in pairwise(STEPS[2:]))


def test_an_early_right_answer_changes_nothing_and_a_late_one_counts_from_its_own_day():
    assert back((0, False), (0, True), (0, True)) == 1
    assert back((0, False), (9, True)) == 9 + 3


def test_a_new_miss_begins_again():
    assert back((0, False), (1, True), (4, True), (5, False)) == 6
    assert back((0, True), (3, False)) == 4


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 300), st.booleans()), max_size=12))
def test_a_review_is_never_due_before_the_day_after_its_last_miss(answers):
    answers = sorted(answers, key=lambda one: one[0])
    misses = [day for day, right in answers if not right]
    due = back(*answers)
    assert (due is None) if not misses else (due is None or due > misses[-1])
    assert next_due(kept(*answers)) == next_due(kept(*answers))


def test_due_today_is_what_is_due_or_overdue_the_longest_first():
    answers = {
        "new": kept((4, False)),
        "old": kept((1, False)),
        "later": kept((5, False)),
        "fine": kept((0, True)),
    }
    found = due_today(answers, START + timedelta(5))
    assert [one.question_id for one in found] == ["old", "new"]
    assert [one.overdue(START + timedelta(5)) for one in found] == [3, 0]
    assert [one.question_id for one in reviews(answers)] == ["old", "new", "later"]
    assert due_today(answers, START + timedelta(5), {"new"})[0].question_id == "new"


def test_a_spoken_answer_without_marks_comes_back_and_its_marks_replace_it():
    unmarked = kept((0, False), verdict=NOT_MARKED)
    assert next_due(unmarked) == (START + timedelta(1), 0)
    assert next_due(unmarked + kept((0, True))) is None


def test_a_file_with_strange_entries_is_still_read():
    strange = [{"when": "yesterday", "right": False}, {"right": True}, {}]
    assert next_due(strange) is None
    assert next_due(strange + kept((0, False))) == (START + timedelta(1), 0)


def test_a_score_counts_last_answers_and_names_the_chapter_missed_most_first():
    bank = [q for q in load_questions() if q.topic == "memory"]
    chapters = sorted({q.chapter for q in bank})
    answers = {q.id: kept((0, True), (1, q.chapter != "03")) for q in bank}
    answers[next(q.id for q in bank if q.chapter == chapters[0])] = kept((0, False))
    answers["gone-from-the-bank"] = kept((0, False))
    (score,) = score_by_topic(answers, bank)
    assert score.in_bank == score.answered == len(bank)
    missed = sum(not answers[q.id][-1]["right"] for q in bank)
    assert score.right == len(bank) - missed
    assert score.reread[0] == "03"
    assert set(score.reread) == {q.chapter for q in bank if not answers[q.id][-1]["right"]}


def test_nothing_answered_is_no_score_and_nothing_to_reread():
    for score in score_by_topic({}, load_questions()):
        assert (score.right, score.answered, score.reread) == (0, 0, ())
        assert score.in_bank > 0


def test_a_spoken_answer_counts_with_all_points_but_one_and_never_without_the_scope():
    for total in (3, 5, 7):
        every = set(range(1, total + 1))
        assert own_mark(every, total)[1]
        for missing in every:
            assert own_mark(every - {missing}, total)[1] == (missing != 1)
        assert not own_mark(every - {2, 3}, total)[1]
    assert own_mark({1, 2, 99, -1}, 5) == ("2 of 5", False)


def test_every_open_question_shows_both_answers_and_each_point():
    for question in load_questions():
        if isinstance(question, OpenQuestion):
            said = spoken_answer(question)
            assert question.in_30_seconds in said and question.in_two_minutes in said
            assert all(point in said for point in question.rubric)


def test_a_date_that_no_calendar_can_go_on_from_is_passed_over() -> None:
    assert next_due([{"when": "9999-12-31T00:00:00+00:00", "right": False}]) is None
