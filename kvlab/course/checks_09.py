"""What the checks of chapter 09 compare with: right answers, known slips, and a live trial."""

from collections.abc import Callable
from typing import Any

import numpy as np

from kvlab.course.claim_math_09 import GIB, hybrid_gib
from kvlab.course.grading import (
    Grade,
    Misconception,
    Target,
    Verdict,
    grade_number,
    unread_grade,
)
from kvlab.course.guarded import call
from kvlab.course.shape_answers import WrongShape, grade_shape
from kvlab.course.typed import Unread

CONTEXT, WINDOW, WINDOWED, FULL, KV_HEADS, HEAD_DIM = 131_072, 1024, 52, 10, 16, 128
LAYER_TOKEN = 2 * KV_HEADS * HEAD_DIM * 2  # bytes


def grade_hybrid(answer: object) -> Grade:
    """Grade exercise 09-a."""
    whole = (WINDOWED + FULL) * CONTEXT * LAYER_TOKEN / GIB
    share = WINDOW / CONTEXT
    right = hybrid_gib(WINDOWED, WINDOW, FULL, KV_HEADS, HEAD_DIM, CONTEXT)
    known = (
        ("all-full", whole, "That is with every layer keeping everything: 52 have a window."),
        ("all-windowed", whole * share, "That caps every layer: ten of them see everything."),
        ("full-layers-alone", FULL * CONTEXT * LAYER_TOKEN / GIB, "The windowed layers keep 1,024 "
         "tokens each; you left them out."),
        ("keys-alone", right / 2, "Keys and values are both kept: check the factor 2."),
        ("swapped", hybrid_gib(FULL, WINDOW, WINDOWED, KV_HEADS, HEAD_DIM, CONTEXT),
         "Ten layers see everything and 52 have the window, not the other way round."),
    )  # fmt: skip
    slips = tuple(Misconception(*row) for row in known)
    return grade_number(answer, Target(right, unit="GiB", misconceptions=slips))


SEEN, LAYER_WINDOW = 8000, 128
_THREE = ("tokens seen", "tokens kept", "next position")
_THREE_WRONG = (
    ("window-kept", (SEEN, LAYER_WINDOW, SEEN), "W counts the token that asks, and that one is not "
     "in the cache yet: one less is kept."),
    ("kept-as-position", (SEEN, LAYER_WINDOW - 1, LAYER_WINDOW - 1), "The next position was taken "
     "from what is kept. Nothing fails then, and every angle is wrong."),
    ("kept-as-seen", (LAYER_WINDOW - 1,) * 3, "The layer has seen all 8,000; it holds fewer."),
    ("one-too-far", (SEEN, LAYER_WINDOW - 1, SEEN + 1), "Positions count from 0: 8,000 tokens "
     "stand at 0 to 7,999."),
    ("last-position", (SEEN, LAYER_WINDOW - 1, SEEN - 1), "That is where the last token stands; "
     "the next one comes after it."),
)  # fmt: skip


def grade_three_numbers(answer: object) -> Grade:
    """Grade exercise 09-b."""
    wrong = [WrongShape(*row) for row in _THREE_WRONG]
    return grade_shape(answer, (SEEN, LAYER_WINDOW - 1, SEEN), _THREE, wrong)


Score = Callable[[Any, Any, Any], Any]


def grade_score(answer: object) -> Grade:
    """Grade exercise 09-c: let the rule decide in `tiny`, against heavy hitters on the same texts.

    torch is imported here and not before: a learner who only reads questions needs none.
    """
    if answer is None or answer is ...:
        return unread_grade(Unread("", empty=True))
    if not callable(answer):
        return unread_grade(Unread("it is not a function: hand over its name, without calling it"))
    from kvlab.model.own_score import known_score, try_score

    sample = [np.linspace(4, 1, 6, dtype=np.float32) for _ in range(3)]
    probe = call(answer, tuple(_tensors(sample)))
    if not probe.error and (probe.value is None or probe.value is ...):
        return unread_grade(Unread("the function returns nothing", empty=True))
    if probe.error:
        return Grade(Verdict.WRONG, f"Your function stopped with {probe.error}", "raises")
    tried = call(lambda: try_score(answer), ())
    if tried.error:
        return Grade(Verdict.WRONG, f"It can't decide: {tried.error}", "not-a-score")
    bar, got = known_score("h2o").recall, tried.value.recall
    if got > bar:
        return Grade(Verdict.RIGHT, f"Right: recall {got:.3f}, heavy hitters {bar:.3f}.")
    return _below(answer, got, bar, lambda: try_score(_upside_down(answer)).recall)


def _tensors(arrays: list[Any]) -> list[Any]:
    import torch

    return [torch.from_numpy(array)[None, None] for array in arrays]


def _upside_down(rule: Score) -> Score:
    return lambda received, age, key_norm: -1.0 * rule(received, age, key_norm)


def _below(rule: Score, got: float, bar: float, turned: Callable[[], float]) -> Grade:
    """Say what a rule does that keeps less than heavy hitters."""
    said = f"Not right yet: recall {got:.3f}, heavy hitters {bar:.3f}. "
    ages = np.arange(12, 0, -1, dtype=np.float32)
    rest = np.random.default_rng(9).random((2, 12), dtype=np.float32)
    scores = np.asarray(rule(*_tensors([rest[0], ages, rest[1]])), dtype=np.float32).ravel()
    if np.ptp(scores) == 0:
        text = "All tokens get the same number, so nothing decides."
        return Grade(Verdict.WRONG, said + text, "all-alike")
    if np.array_equal(np.argsort(scores), np.argsort(-ages)):
        text = "It keeps the newest tokens and nothing else: that is the window."
        return Grade(Verdict.WRONG, said + text, "window-again")
    if turned() > bar:
        text = "Turned round it would pass: the highest score is kept longest."
        return Grade(Verdict.WRONG, said + text, "upside-down")
    return Grade(Verdict.WRONG, said + "What did the tokens of a fact draw, and in how long?")
