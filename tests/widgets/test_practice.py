"""Practice, interview, diagnostic and record as a learner works them, without a page."""

from html import escape

import pytest

from kvlab.course.asked import Asked
from kvlab.course.bank import find_question, load_questions
from kvlab.course.calls import evaluate
from kvlab.course.interview import Interview
from kvlab.course.practice import reviews
from kvlab.course.progress import Progress
from kvlab.course.schema import TOPICS
from kvlab.errors import InvalidArgument
from kvlab.widgets import practice as practice_module
from kvlab.widgets.diagnostic import diagnostic
from kvlab.widgets.mock_interview import MockInterview, mock_interview
from kvlab.widgets.practice import DUE, practice
from kvlab.widgets.practice_panel import record_panel
from kvlab.widgets.quiz import quiz

OPEN = "02-is-it-linear"


@pytest.fixture
def progress(tmp_path):
    return Progress(tmp_path / "progress.json")


def wrong_answer(asked):
    """Return a readable answer that is not right."""
    letters = "ABCDEFGH"[: len(asked.options)]
    tries = [*letters, letters, letters[::-1], "7", "7 GB", "(1, 2)", "(1, 2, 3)", "(1, 2, 3, 4)"]
    grades = ((one, asked.grade(one)) for one in tries if one)
    return next(one for one, grade in grades if grade.answered and not grade.right)


def strip(panel):
    return panel.picture.value.replace("<code>", "").replace("</code>", "")


def give(panel, answer):
    picks = panel.controls["answer"].layout.display == "none"
    panel.controls["pick" if picks else "answer"].value = answer


def test_every_topic_can_be_practised_and_levels_narrow_it(progress):
    panel = practice(progress=progress, seed=1)
    assert panel.numbers["question"] == f"1 of {len(load_questions())}"
    for topic in TOPICS:
        panel.controls["what"].value = topic
        assert {asked.question.topic for asked in panel.asked} == {topic}
        panel.controls["level"].value = 2
        found = {asked.question.level for asked in panel.asked}
        assert found == {2} or "choose another level" in panel.event.value
        panel.controls["level"].value = 0


def test_an_unknown_topic_is_refused_with_those_that_exist(progress):
    with pytest.raises(InvalidArgument, match="must be a topic"):
        practice("chess", progress=progress)


def test_each_answer_is_kept_when_it_is_checked(progress):
    panel = practice("memory", progress=progress, seed=2)
    panel.controls["level"].value = 2
    give(panel, wrong_answer(panel.current))
    assert list(progress.answers()) == [panel.current.question.id]


def test_misses_come_back_on_their_day_and_a_right_answer_moves_them_on(progress, monkeypatch):
    progress.record("02-cached-forwards", "wrong", right=False)
    panel = practice(DUE, progress=progress, seed=3)
    assert "Nothing is due today. The next one is due on" in panel.event.value
    tomorrow = reviews(progress.answers())[0].day
    monkeypatch.setattr(practice_module, "today", lambda: tomorrow)
    panel = practice(DUE, progress=progress, seed=3)
    assert panel.current.question.id == "02-cached-forwards"
    assert "1 due" in panel.event.value
    asked = panel.current
    give(panel, str(evaluate(asked.question.fresh.answer, asked.values)))
    assert panel.grade.right


def test_the_level_narrows_the_misses_that_are_due(progress, monkeypatch):
    names = {"02-cached-forwards": 1, "02-doubling": 2}
    assert [find_question(name).level for name in names] == [1, 2]
    for name in names:
        progress.record(name, "wrong", right=False)
    tomorrow = reviews(progress.answers())[0].day
    monkeypatch.setattr(practice_module, "today", lambda: tomorrow)
    panel = practice(DUE, progress=progress, seed=3)
    assert [asked.question.id for asked in panel.asked] == sorted(names)
    for name, level in names.items():
        panel.controls["level"].value = level
        assert [asked.question.id for asked in panel.asked] == [name]
        assert "1 due" in panel.event.value
    panel.controls["level"].value = 3
    assert "Nothing is due today of level 3." in panel.event.value
    assert [asked.question.id for asked in panel.asked] == ["02-doubling"], "the list stays"


def test_an_interview_says_when_an_answer_was_not_saved(tmp_path):
    (tmp_path / "file").write_text("x", encoding="utf-8")
    talk = Interview(
        [Asked(find_question(name), 1) for name in ("02-cached-forwards", OPEN)],
        minutes=10,
        progress=Progress(tmp_path / "file" / "progress.json"),
    )
    panel = MockInterview(talk)
    panel.controls["go"].click()
    assert panel.event.value == ""
    panel.controls["answer"].value = "3"
    assert "Your progress was not saved" in panel.event.value
    panel.controls["next"].click()
    panel.controls["next"].click()
    assert panel.numbers == {"right": "0 of 2", "answered": "2"}
    assert "Your progress was not saved" in panel.event.value


def test_an_open_question_is_marked_by_its_points_after_the_answer_is_shown(progress):
    panel = quiz(ids=[OPEN], seed=1, progress=progress)
    rubric = find_question(OPEN).rubric
    assert rubric[1] not in panel.picture.value
    panel.controls["check"].click()
    assert not panel.grade.answered and progress.answers() == {}
    panel.controls["show"].click()
    assert all(point[:30] in panel.picture.value.replace("&#x27;", "'") for point in rubric)
    shown = [box for box in panel.ticks.boxes if box.layout.display != "none"]
    assert len(shown) == len(rubric)
    for box in shown[1:]:
        box.value = True
    panel.controls["check"].click()
    assert not panel.grade.right and "the scope" in panel.grade.feedback
    shown[0].value = True
    panel.controls["check"].click()
    assert panel.grade.right and panel.numbers["right so far"] == "1"
    assert [one["right"] for one in progress.answers()[OPEN]] == [False, True]


def test_the_interview_says_nothing_about_answers_before_its_end(progress):
    clock = [0.0]
    names = ("02-cached-forwards", OPEN, "02-doubling")
    asked = [Asked(find_question(name), 1) for name in names]
    talk = Interview(asked, minutes=10, progress=progress, now=lambda: clock[0])
    panel = MockInterview(talk)
    assert asked[0].text not in panel.picture.value
    panel.controls["go"].click()
    assert "1." in panel.picture.value and panel.numbers == {"question": "1 of 3"}
    panel.controls["answer"].value = "many"
    assert "cannot be read" in panel.event.value
    panel.controls["answer"].value = "3"
    assert panel.numbers == {"question": "2 of 3"}
    assert panel.event.value == "" and "Not right" not in panel.picture.value
    assert find_question(OPEN).rubric[1] not in panel.picture.value
    assert panel.controls["answer"].layout.display == "none"
    panel.controls["next"].click()
    clock[0] = 90.0
    panel.tick()
    assert "8:30 left" in panel.clock.value
    panel.controls["go"].click()
    assert "The clock stands" in panel.picture.value and "8:30 left, stopped" in panel.clock.value
    panel.controls["go"].click()
    clock[0] = 90.0 + 511.0
    panel.tick()
    assert "The time is up" in panel.event.value
    for box in panel.ticks.boxes[:4]:
        box.value = True
    panel.controls["next"].click()
    assert panel.numbers == {"right": "1 of 3", "answered": "2"}
    assert "read again" in panel.picture.value.lower() or "02 " in panel.picture.value
    assert "<details>" in panel.picture.value


def test_ended_at_once_an_interview_shows_its_report(progress):
    panel = mock_interview(minutes=5, spoken=1, graded=2, seed=4, progress=progress)
    panel.controls["go"].click()
    panel.controls["end"].click()
    assert panel.numbers == {"right": "0 of 3", "answered": "0"}
    assert progress.answers() == {}
    for asked in panel.talk.asked:
        shown = [option for option in asked.options if option.isalnum() or option.isascii()]
        assert all(escape(option).replace("`", "")[:20] in strip(panel) for option in shown)


def test_the_diagnostic_advises_after_ten_answers_and_counts_first_tries(progress):
    panel = diagnostic(seed=5, progress=progress)
    for number in range(10):
        assert panel.numbers["to answer"] == str(10 - number)
        asked = panel.current
        give(panel, wrong_answer(asked))
        if asked.question.kind == "numeric":
            give(panel, f"{evaluate(asked.question.fresh.answer, asked.values)}")
        panel.controls["next"].click()
    assert panel.numbers["to answer"] == "0"
    assert "To read:" in panel.picture.value
    assert panel.advice.skim == ()


def test_the_record_is_deleted_after_one_confirmation(progress):
    progress.record(OPEN, "2 of 5", right=False)
    panel = record_panel(progress)
    assert panel.numbers["under review"] == "1"
    assert "02 Recompute" in panel.picture.value
    panel.controls["delete"].click()
    assert progress.path.is_file()
    panel.controls["keep"].click()
    panel.controls["delete"].click()
    assert panel.controls["delete"].description == "yes, delete them"
    panel.controls["delete"].click()
    assert not progress.path.exists() and list(progress.path.parent.iterdir()) == []
    assert panel.numbers["under review"] == "0"
    assert panel.controls["delete"].description == "delete my answers"
