"""A mock interview: mixed, on the clock, silent until the end; each answer kept at once."""

import json
import math
import os
import signal
import subprocess
import sys
from itertools import pairwise

import pytest

from kvlab.course.asked import Asked
from kvlab.course.bank import find_question
from kvlab.course.calls import evaluate
from kvlab.course.diagnostic import ASKED_ABOUT, advise, draw_diagnostic
from kvlab.course.interview import Interview, Stage
from kvlab.course.mock import GRADED, SPOKEN, draw_interview
from kvlab.course.practice import NOT_MARKED, next_due
from kvlab.course.progress import Progress
from kvlab.errors import InvalidArgument
from kvlab.widgets.mock_interview import mock_interview

NUMERIC, OPEN = "02-cached-forwards", "02-is-it-linear"


class Clock:
    def __init__(self):
        self.time = 0.0

    def __call__(self):
        return self.time


def started(*ids, progress=None, minutes=10):
    clock = Clock()
    asked = [Asked(find_question(name), 1) for name in ids]
    talk = Interview(asked, minutes=minutes, progress=progress, now=clock)
    talk.go()
    return talk, clock


def right_answer(asked):
    return str(evaluate(asked.question.fresh.answer, asked.values))


@pytest.mark.parametrize("seed", range(20))
def test_an_interview_is_mixed_and_has_no_question_twice(seed):
    questions = [asked.question for asked in draw_interview(seed)]
    typed = [q for q in questions if q.kind != "open"]
    assert len({q.id for q in questions}) == len(questions) == SPOKEN + GRADED
    assert len({q.topic for q in typed}) == len(typed)
    assert all(q.level >= 2 and "placement" not in q.sets for q in typed)
    spoken = [place for place, q in enumerate(questions) if q.kind == "open"]
    assert all(after - before > 1 for before, after in pairwise(spoken))


def test_the_same_seed_gives_the_same_interview_and_another_a_different_one():
    first, again, other = ([a.text for a in draw_interview(seed)] for seed in (3, 3, 4))
    assert first == again != other
    with pytest.raises(InvalidArgument, match="must be 1 or more"):
        draw_interview(1, spoken=0, graded=0)


def test_nothing_is_answered_before_the_start_nor_while_the_clock_stands():
    talk, _ = started(NUMERIC, "02-doubling")
    talk.go()
    assert talk.stage is Stage.STOPPED
    assert not talk.answer(right_answer(talk.current))
    talk.next()
    assert talk.place == 0
    talk.go()
    assert talk.answer(right_answer(talk.current))


def test_a_pause_costs_no_time_and_a_late_answer_is_not_taken():
    talk, clock = started(NUMERIC, minutes=1)
    clock.time = 40
    talk.go()
    clock.time = 10_000
    talk.go()
    assert talk.watch.left == 20
    clock.time += 21
    assert not talk.answer(right_answer(talk.current))
    assert talk.stage is Stage.DONE
    assert talk.score() == (0, 1)


def test_what_cannot_be_read_is_asked_again_and_a_wrong_answer_is_not():
    talk, _ = started(NUMERIC, "02-doubling")
    assert not talk.answer("many")
    assert talk.place == 0 and not talk.grades
    assert talk.answer("3")
    assert talk.place == 1 and not talk.grades[0].right


def test_spoken_answers_are_kept_unmarked_and_marked_after_the_end(tmp_path):
    progress = Progress(tmp_path / "progress.json")
    talk, _ = started(OPEN, NUMERIC, progress=progress)
    talk.mark({1, 2, 3, 4, 5})  # not before the end
    assert talk.place == 0
    talk.next()
    assert progress.answers()[OPEN][-1]["verdict"] == NOT_MARKED
    assert talk.answer(right_answer(talk.current))
    assert talk.stage is Stage.MARKING and talk.current.question.id == OPEN
    talk.mark({1, 2, 3, 4})
    assert talk.stage is Stage.DONE
    assert progress.answers()[OPEN][-1]["verdict"] == "4 of 5"
    assert next_due(progress.answers()[OPEN]) is None
    assert talk.score() == (2, 2)


def test_a_question_that_was_left_counts_as_missed_and_names_its_chapter():
    talk, _ = started(NUMERIC, "06-explain-paging")
    assert talk.answer(right_answer(talk.current))
    talk.end()
    assert talk.stage is Stage.DONE  # the spoken one was never said
    scores = {score.topic: (score.right, score.reread) for score in talk.by_topic()}
    assert scores == {"recompute": (1, ()), "paging": (0, ("06",))}


def test_an_interview_without_questions_or_time_is_refused():
    with pytest.raises(InvalidArgument, match="asked"):
        Interview([], minutes=1)


BAD = {
    "minutes": [0, -5, math.nan, math.inf, -math.inf, "30", None, True, 10**9, 1e300, [30]],
    "spoken": [-1, 2.5, "4", None, True],
    "graded": [-1, 2.5, "8", None, math.nan],
    "seed": [-1, 2.5, "x", [1]],
}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in BAD.items() for v in values])
def test_what_is_no_such_number_is_refused_by_name(name, value):
    with pytest.raises(InvalidArgument, match=f"^{name}="):
        mock_interview(**{name: value})


def test_minutes_may_be_a_fraction_or_a_day():
    assert Interview(draw_interview(1), minutes=0.5).watch.left == 30
    assert Interview(draw_interview(1), minutes=1440).watch.left == 86_400


SITTER = """
import sys
from pathlib import Path
from kvlab.course.interview import Interview
from kvlab.course.mock import draw_interview
from kvlab.course.progress import Progress
talk = Interview(draw_interview(7), minutes=60, progress=Progress(Path(sys.argv[1])))
talk.go()
for _ in range(len(talk.asked)):
    shown = talk.current
    if talk.is_spoken:
        talk.next()
    else:
        given = next(t for t in ("A", "7", "(1, 2)", "A B C D", "A B C D E", "7 GB", "A B C",
                     "A B C D E F", "(1, 2, 3)", "(1, 2, 3, 4)") if shown.grade(t).answered)
        talk.answer(given)
    print(shown.question.id, flush=True)
    sys.stdin.readline()
"""


@pytest.mark.slow
def test_a_kill_after_any_answer_leaves_that_answer_in_the_file(tmp_path):
    path = tmp_path / "progress.json"
    drawn = [asked.question.id for asked in draw_interview(7)]
    for answers in (1, 4, len(drawn)):
        Progress(path).delete()
        command = [sys.executable, "-c", SITTER, str(path)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        sitter = subprocess.Popen(command, **pipes)
        for number in range(answers):
            if number:
                sitter.stdin.write("\n")
                sitter.stdin.flush()
            assert sitter.stdout.readline().strip() == drawn[number]
        os.kill(sitter.pid, signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
        sitter.communicate()
        kept = json.loads(path.read_text(encoding="utf-8"))["answers"]
        assert list(kept) == drawn[:answers]


def test_the_diagnostic_has_ten_questions_one_for_each_chapter_of_the_path():
    for seed in range(10):
        drawn = draw_diagnostic(seed)
        assert [asked.question.chapter for asked in drawn] == list(ASKED_ABOUT)
        assert len(drawn) == 10
        assert all(asked.question.kind != "open" for asked in drawn)


def test_the_advice_skims_what_was_right_and_reads_what_was_not_or_not_answered():
    advice = advise({"01": True, "06": False})
    assert advice.skim == ("01",)
    assert advice.read == ASKED_ABOUT[1:]
    assert advice.not_asked == ("09", "12")
    assert advise(dict.fromkeys(ASKED_ABOUT, True)).minutes == 0
