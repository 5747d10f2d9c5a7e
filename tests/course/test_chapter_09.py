"""The exercises, claims and questions of chapter 09, against numbers worked out by hand."""

import pytest
import torch
from exercise_answers import assert_told_apart

from kvlab.course import claim_math_09 as math_09
from kvlab.course import exercises as ex
from kvlab.course.claims import find_claim, load_claims
from kvlab.course.grading import Verdict
from kvlab.model.masks import visible_slots

LAYER_TOKEN = 2 * 16 * 128 * 2  # Gemma 3 27B: bytes of a token in one layer
GEMMA = [(10 * t + 52 * 1024) * LAYER_TOKEN / 2**20 for t in (8192, 131_072)]
EXPECTED = {
    "sliding-window-token-4905": [3906, 3905],
    "anchor-tokens-like-system-prompt": None,
    "mistral-pioneered-sliding-window": None,
    "sliding-window-caps-cache": [512, 512, *GEMMA],
    "indirect-information-flow": [131_072, 131_040],
    "sliding-window-typically-4096": [4096, 0, 4096, 1024, 128],
    "token-eviction-2-4x": [2, 4, 5],
    "all-shrinking-costs-quality": None,
}
CLAIMS = [claim for claim in load_claims() if claim.chapter == "09"]


@pytest.mark.parametrize("claim", CLAIMS, ids=[claim.id for claim in CLAIMS])
def test_a_claim_is_recomputed_to_the_expected_value(claim) -> None:  # type: ignore[no-untyped-def]
    wanted = EXPECTED[claim.id]
    assert claim.computed() == (None if wanted is None else pytest.approx(wanted, rel=1e-9))
    assert claim.topic == "eviction"


def test_every_claim_is_covered_and_the_fixed_ones_are_wrong() -> None:
    assert {claim.id for claim in CLAIMS} == set(EXPECTED)
    fixed = ("sliding-window-token-4905", "anchor-tokens-like-system-prompt")
    for name in (*fixed, "mistral-pioneered-sliding-window"):
        assert find_claim(name).learner_verdict == "wrong"
    assert f"would see {8001 - 4905 + 1:,} tokens" in find_claim(fixed[0]).condition


@pytest.mark.parametrize(("query", "window"), [(0, 4), (3, 4), (9, 4), (40, 7)])
def test_the_first_visible_position_is_that_of_the_mask(query: int, window: int) -> None:
    slots = torch.arange(query + 1)[None, None]
    seen = visible_slots(slots, past=query, q_len=1, window=window).flatten().nonzero()
    assert math_09.first_visible(query, window) == int(seen.min())
    assert math_09.visible_tokens(query, window) == len(seen)


def test_both_ways_back_of_a_question_are_those_of_the_chapter() -> None:
    fetch, prefill = math_09.tier_seconds("llama-3.1-70b", 50_000, 8, 4)
    assert fetch > prefill  # one drive against eight GPUs
    fetch, prefill = math_09.tier_seconds("llama-3.1-70b", 50_000, 4, 4)
    assert fetch < prefill
    assert math_09.fetch_milliseconds(16, 64, 8) == pytest.approx(31.25)


RIGHT = {
    "09-a": [f"{GEMMA[1] / 1024:.2f} GiB", GEMMA[1] / 1024, "11.17 GB"],
    "09-b": [(8000, 127, 8000), "8000, 127, 8000"],
    "09-c": [
        lambda received, age, key_norm: received / age,
        lambda received, age, key_norm: key_norm,
        lambda received, age, key_norm: (received / age) ** 0.5,
    ],
}
WRONG = {
    "09-a": {
        "all-full": "62 GiB",
        "all-windowed": f"{62 / 128} GiB",
        "full-layers-alone": "10 GiB",
        "keys-alone": f"{GEMMA[1] / 2048} GiB",
        "swapped": f"{(52 * 131_072 + 10 * 1024) * LAYER_TOKEN / 2**30} GiB",
    },
    "09-b": {
        "window-kept": (8000, 128, 8000),
        "kept-as-position": (8000, 127, 127),
        "kept-as-seen": (127, 127, 127),
        "one-too-far": (8000, 127, 8001),
        "last-position": (8000, 127, 7999),
    },
    "09-c": {
        "raises": lambda received, age, key_norm: received.nothing,
        "not-a-score": lambda received, age, key_norm: received.sum(),
        "window-again": lambda received, age, key_norm: 5 - age,
        "all-alike": lambda received, age, key_norm: 0 * age,
        "upside-down": lambda received, age, key_norm: -received / age,
    },
}
EXERCISES = ex.exercises_of("09")


@pytest.mark.parametrize("exercise", EXERCISES, ids=[e.id for e in EXERCISES])
def test_right_answers_pass_and_each_slip_is_named(exercise) -> None:  # type: ignore[no-untyped-def]
    assert_told_apart(exercise, RIGHT, WRONG)


def test_the_full_layers_hold_96_percent_as_the_exercise_says() -> None:
    assert round(100 * 10 * 131_072 / (10 * 131_072 + 52 * 1024)) == 96


def test_a_rule_that_says_yes_or_no_is_graded_as_numbers() -> None:
    grade = ex.check("09-c", lambda received, age, key_norm: age < 50).grade
    assert grade.verdict is Verdict.WRONG and "recall" in grade.feedback
