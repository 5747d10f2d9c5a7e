import pytest

from kvlab.course.bank import load_questions
from kvlab.course.calls import evaluate
from kvlab.course.practice import score_by_topic
from kvlab.course.progress import Progress
from kvlab.course.questions import ChoiceQuestion
from kvlab.errors import InvalidArgument
from kvlab.widgets.claims import claim_quiz
from kvlab.widgets.quiz import Quiz, quiz


@pytest.fixture(autouse=True)
def own_file(tmp_path, monkeypatch):
    monkeypatch.setenv("KVLAB_PROGRESS", str(tmp_path / "progress.json"))


def right_letter(asked):
    options = {option.text: option.right for option in asked.question.options}
    return "ABCDEFGHIJ"["".join("01"[options[text]] for text in asked.options).index("1")]


def test_a_typed_answer_is_graded_on_enter_and_shown_only_then():
    quizzed = quiz(ids=["02-uncached-forwards"], seed=5)
    asked = quizzed.current
    expected = evaluate(asked.question.fresh.answer, asked.values)
    assert f"{expected:,}" not in quizzed.still()
    quizzed.controls["answer"].value = str(asked.values["N"] * asked.values["P"])
    assert quizzed.grade.misconception == "growth-forgotten"
    assert "Not yet" in quizzed.picture.value
    assert f"{expected:,}" not in quizzed.still()
    quizzed.controls["answer"].value = f"{expected:,}"
    assert quizzed.grade.right
    assert quizzed.numbers["right so far"] == "1"
    quizzed.controls["show"].click()
    assert f"{expected:,}" in quizzed.picture.value


def test_options_are_picked_by_letter():
    quizzed = quiz("01", seed=2)
    place = next(i for i, a in enumerate(quizzed.asked) if isinstance(a.question, ChoiceQuestion))
    for _ in range(place):
        quizzed.controls["next"].click()
    assert quizzed.controls["answer"].layout.display == "none"
    letter = right_letter(quizzed.current)
    other = next(name for name in quizzed.controls["pick"].options if name != letter)
    quizzed.controls["pick"].value = other
    assert not quizzed.grade.right
    quizzed.controls["pick"].value = letter
    assert quizzed.grade.right


def test_every_question_can_be_walked_there_and_back():
    quizzed = quiz(seed=1)
    assert len(quizzed.asked) == len(load_questions())
    for place in range(len(quizzed.asked)):
        assert quizzed.numbers["question"] == f"{place + 1} of {len(quizzed.asked)}"
        assert quizzed.grade is None
        quizzed.controls["answer"].value = "'; drop"
        quizzed.controls["check"].click()
        assert not quizzed.grade.right
        assert quizzed.error.value == ""
        quizzed.controls["show"].click()
        quizzed.controls["next"].click()
    quizzed.controls["back"].click()
    assert quizzed.numbers["question"].startswith(str(len(quizzed.asked) - 1))


def test_a_right_answer_after_the_solution_does_not_count(tmp_path):
    progress = Progress(tmp_path / "progress.json")
    quizzed = quiz(ids=["02-cached-forwards"], seed=5, progress=progress)
    quizzed.controls["show"].click()
    asked = quizzed.current
    quizzed.controls["answer"].value = str(evaluate(asked.question.fresh.answer, asked.values))
    assert quizzed.grade.right
    assert quizzed.numbers["right so far"] == "0"
    assert [one["right"] for one in progress.answers()["02-cached-forwards"]] == [False]


def test_a_self_check_counts_in_the_learners_own_file_once_it_is_answered(tmp_path, monkeypatch):
    monkeypatch.setenv("KVLAB_PROGRESS", str(tmp_path / "mine.json"))
    quizzed = quiz(ids=["02-cached-forwards", "02-doubling"], seed=5)
    quizzed.controls["show"].click()
    quizzed.controls["next"].click()
    quizzed.controls["answer"].value = "many"
    assert not (tmp_path / "mine.json").exists(), "looking and turning pages write nothing"
    quizzed.controls["answer"].value = "123456"
    assert list(Progress().answers()) == ["02-doubling"]
    (recompute,) = [s for s in score_by_topic(Progress().answers(), load_questions()) if s.answered]
    assert (recompute.topic, recompute.answered, recompute.right) == ("recompute", 1, 0)


def test_an_answer_that_was_not_saved_is_said_beside_the_feedback(tmp_path):
    (tmp_path / "file").write_text("x", encoding="utf-8")
    quizzed = quiz(ids=["02-doubling"], seed=5, progress=Progress(tmp_path / "file" / "p.json"))
    quizzed.controls["answer"].value = "3"
    assert "Your progress was not saved" in quizzed.event.value


@pytest.mark.parametrize("given", [{"seed": -1}, {"seed": 2.5}, {"seed": "x"}, {"count": 0}])
def test_a_seed_or_count_that_is_none_is_refused_by_name(given):
    (name,) = given
    with pytest.raises(InvalidArgument, match=f"^{name}="):
        quiz("02", **given)


def test_fresh_numbers_ask_anew_and_a_seed_makes_them_repeatable():
    one, two = (quiz(ids=["02-cached-forwards"], seed=5) for _ in range(2))
    before = one.current.text
    assert before == two.current.text
    one.controls["again"].click()
    two.controls["again"].click()
    assert before != one.current.text == two.current.text
    assert one.controls["answer"].value == ""


def test_markup_in_an_answer_is_never_shown_as_markup():
    quizzed = quiz(ids=["02-cached-forwards"], seed=5)
    quizzed.controls["answer"].value = "5 <img src=x>"
    assert "<img" not in quizzed.still()


def test_no_questions_are_refused_with_a_sentence():
    with pytest.raises(InvalidArgument, match="questions"):
        Quiz([])
    with pytest.raises(InvalidArgument, match="questions"):
        quiz("99")


def test_a_claim_shows_its_number_after_the_verdict():
    card = claim_quiz("redundant-kv-1000-500")
    assert "624,750" not in card.picture.value
    assert "624,750" not in card.still().split("<details>")[0]  # a page without a kernel folds it
    card.controls["verdict"].value = "holds"
    assert "624,750" in card.still()
    assert "You said: holds" in card.picture.value
    assert card.numbers == {"computed": "624,750 token-forwards"}
