import json

import pytest

from kvlab.arithmetic.flops import token_forwards_cached, token_forwards_uncached
from kvlab.course.asked import Asked, ask
from kvlab.course.bank import find_question, load_questions, select_questions
from kvlab.course.calls import evaluate
from kvlab.course.grading import Verdict
from kvlab.course.question_html import render, render_all
from kvlab.course.questions import (
    ChoiceQuestion,
    NumericQuestion,
    OpenQuestion,
    OrderQuestion,
    ShapeQuestion,
)
from kvlab.errors import InvalidArgument, KvlabError

QUESTIONS = load_questions()
FRESH = [q for q in QUESTIONS if isinstance(q, NumericQuestion | ShapeQuestion)]
IDS = [q.id for q in QUESTIONS]
SEEDS = range(50)
NOTHING = [None, ..., "", "  ", "...", float("nan"), [], {}, "x" * 10_000, object()]


def by_id(questions):
    return pytest.mark.parametrize("question", questions, ids=[q.id for q in questions])


def test_each_chapter_so_far_has_its_questions():
    assert len(select_questions(chapter="00", in_set="placement")) == 6
    assert len(select_questions(chapter="01")) >= 5
    assert len(select_questions(chapter="02")) >= 5
    assert len(set(IDS)) == len(IDS)
    assert all(question.id.startswith(question.chapter) for question in QUESTIONS)


@by_id(FRESH)
def test_the_own_answer_is_right_and_each_misconception_wrong_for_fifty_seeds(question):
    for seed in SEEDS:
        asked = Asked(question, seed)
        expected = evaluate(question.fresh.answer, asked.values)
        assert asked.grade(expected).right, (seed, asked.values)
        for way in question.fresh.wrong_ways:
            grade = asked.grade(evaluate(way.value, asked.values))
            assert (grade.right, grade.misconception) == (False, way.id), (seed, asked.values)
            assert grade.feedback == way.feedback


@by_id([q for q in QUESTIONS if isinstance(q, ChoiceQuestion)])
def test_one_option_is_right_and_each_other_is_wrong_with_its_reason(question):
    for seed in SEEDS:
        asked = Asked(question, seed)
        for place, text in enumerate(asked.options):
            option = next(option for option in question.options if option.text == text)
            for answer in (text, "ABCDEFGHIJ"[place], f" {'abcdefghij'[place]}) ", place + 1):
                grade = asked.grade(answer)
                assert grade.right is option.right
                assert option.why in grade.feedback


@by_id([q for q in QUESTIONS if isinstance(q, OrderQuestion)])
def test_the_right_order_is_right_and_every_swap_wrong(question):
    for seed in SEEDS:
        asked = Asked(question, seed)
        letters = ["ABCDEFGHIJ"[asked.options.index(step)] for step in question.steps]
        assert asked.grade(" ".join(letters)).right
        assert asked.grade("".join(letters).lower()).right
        for place in range(len(letters) - 1):
            swapped = letters.copy()
            swapped[place], swapped[place + 1] = swapped[place + 1], swapped[place]
            assert asked.grade(swapped).verdict is Verdict.WRONG
        assert asked.grade(letters[:-1]).verdict is Verdict.UNREADABLE


@by_id([q for q in QUESTIONS if isinstance(q, OpenQuestion)])
def test_an_open_question_scores_the_scope_first(question):
    assert "scope" in question.rubric[0].lower()
    assert len(question.in_30_seconds.split()) < len(question.in_two_minutes.split())
    assert 40 <= len(question.in_30_seconds.split()) <= 90
    assert 120 <= len(question.in_two_minutes.split()) <= 330


@by_id(QUESTIONS)
def test_anything_that_is_no_answer_gets_a_message(question):
    for answer in NOTHING:
        grade = Asked(question).grade(answer)
        assert not grade.right
        assert grade.feedback


@by_id(QUESTIONS)
def test_the_same_seed_asks_the_same_and_grades_the_same_twice(question):
    one, two = Asked(question, 7), Asked(question, 7)
    assert (one.text, one.options, one.solution()) == (two.text, two.options, two.solution())
    assert one.grade("1") == one.grade("1") == two.grade("1")


@by_id(FRESH)
def test_nothing_shows_the_answer_before_it_is_asked_for(question):
    asked = Asked(question, 3)
    answer = asked.solution()
    wrong = asked.grade("123456789.5")
    shown = repr(asked) + repr(question) + render(asked) + repr(wrong)
    expected = evaluate(question.fresh.answer, asked.values)
    if isinstance(expected, int | float) and expected > 1000:
        assert f"{expected:,.0f}" not in shown.replace(asked.text, "")
        assert str(int(expected)) not in shown
    assert answer not in shown
    assert answer.split("\n")[0][:20] in render(asked, answer=True).replace("&lt;", "<")


def test_positions_held_after_six_and_ten_are_fifteen():
    question = find_question("01-positions-held")
    assert evaluate(question.fresh.answer, {"P": 6, "N": 10}) == 15
    assert token_forwards_cached(6, 10) == 15
    assert token_forwards_uncached(6, 10) == 6 * 10 + 45


def test_a_quiz_takes_as_many_as_asked_in_a_seeded_order():
    assert [a.question.id for a in ask(QUESTIONS, seed=4, count=5)] == [
        a.question.id for a in ask(QUESTIONS, seed=4, count=5)
    ]
    assert len(ask(QUESTIONS, seed=4, count=5)) == 5
    assert len(ask(QUESTIONS[:2], seed=4, count=5)) == 2


def test_static_page_hides_answers_in_folds():
    page = render_all(ask(QUESTIONS, seed=1), answers=True)
    assert page.count("<details>") == len(QUESTIONS)
    assert "<details>" not in render_all(ask(QUESTIONS, seed=1))
    assert "<script" not in page


GOOD = {
    "id": "02-x",
    "kind": "numeric",
    "topic": "recompute",
    "level": 1,
    "chapter": "02",
    "anchor": "growth",
    "text": "{P}?",
    "numbers": {"P": {"low": 1, "high": 9}},
    "answer": {"function": "add", "arguments": {"a": "P", "b": 1}},
    "unit": "",
    "explain": "{answer}",
    "source": "recomputed",
    "as_of": "2026-11-29",
}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"kind": "essay"}, "kind"),
        ({"topic": "cooking"}, "topic"),
        ({"level": 4}, "level"),
        ({"level": True}, "level"),
        ({"chapter": "2"}, "chapter"),
        ({"anchor": "Two Words"}, "anchor"),
        ({"text": "{Q}?"}, "text"),
        ({"text": "{P.__class__}"}, "text"),
        ({"answer": {"function": "eval", "arguments": {}}}, "answer"),
        ({"answer": {"function": "add", "arguments": {"a": "Q", "b": 1}}}, "answer"),
        ({"numbers": {"P": {"low": 9, "high": 1}}}, "high"),
        ({"unit": "parsec"}, "unit"),
        ({"tolerance": 0.1}, "tolerance"),
        ({"exact": "yes"}, "exact"),
        ({"as_of": "soon"}, "as_of"),
        ({"source": ""}, "source"),
        ({"colour": "red"}, "colour"),
        ({"sets": ["finals"]}, "sets"),
        ({"misconceptions": [{"id": "a", "value": "Z", "feedback": "b"}]}, "value"),
    ],
)
def test_a_faulty_row_is_named_with_its_field(tmp_path, change, field):
    (tmp_path / "q.json").write_text(json.dumps({"questions": [GOOD | change]}), encoding="utf-8")
    with pytest.raises(InvalidArgument) as caught:
        load_questions(tmp_path)
    assert "q.json row 1 (02-x)" in str(caught.value)
    assert field in caught.value.argument


def test_two_questions_of_one_id_and_broken_files_are_refused(tmp_path):
    path = tmp_path / "q.json"
    path.write_text(json.dumps({"questions": [GOOD, GOOD]}), encoding="utf-8")
    with pytest.raises(InvalidArgument, match="another question"):
        load_questions(tmp_path)
    broken = tmp_path / "b"
    broken.mkdir()
    (broken / "q.json").write_text("{", encoding="utf-8")
    with pytest.raises(KvlabError, match="cannot read"):
        load_questions(broken)
    with pytest.raises(InvalidArgument):
        find_question("99-nothing")
