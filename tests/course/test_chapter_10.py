"""The exercises, claims and questions of chapter 10, against numbers worked out by hand."""

import pytest
from exercise_answers import assert_told_apart

from kvlab.course import checks_10
from kvlab.course import exercises as ex
from kvlab.course.claim_math_10 import first_token_seconds, requests_admitted
from kvlab.course.claims import find_claim, load_claims
from kvlab.paging import BlockManager
from kvlab.serving.limits import Limits
from kvlab.serving.request import Request
from kvlab.serving.scheduler import Scheduler

TOKEN_70B, TOKEN_8B = 2 * 80 * 8 * 128 * 2, 2 * 32 * 8 * 128 * 2
CONTEXT = 131_072
EXPECTED = {
    "pcie-order-of-magnitude": [3350 / 64, 3350 / 128],
    "batch-64-to-3": [
        3 * CONTEXT * TOKEN_70B / 1e9,
        4 * CONTEXT * TOKEN_70B / 1e9,
        499e9 // (CONTEXT * TOKEN_70B),
    ],
    "preemption-means-cache-shortage": None,
    "recompute-pays-prefill-twice": [2.3, 1.308],
    "swap-time-one-session": [
        2 * CONTEXT * TOKEN_70B / 8 / 64e6,
        2 * CONTEXT * TOKEN_70B / 64e6,
    ],
}
CLAIMS = [claim for claim in load_claims() if claim.chapter == "10"]


@pytest.mark.parametrize("claim", CLAIMS, ids=[claim.id for claim in CLAIMS])
def test_a_claim_is_recomputed_to_the_expected_value(claim) -> None:  # type: ignore[no-untyped-def]
    wanted = EXPECTED[claim.id]
    assert claim.computed() == (None if wanted is None else pytest.approx(wanted, rel=1e-9))
    assert claim.topic == "serving"


def test_every_claim_is_covered_and_the_fixed_one_is_wrong_by_52() -> None:
    assert {claim.id for claim in CLAIMS} == set(EXPECTED)
    card = find_claim("pcie-order-of-magnitude")
    assert card.learner_verdict == "wrong" and round(card.computed()[0]) == 52


def fits_by_loop(prompt, answer, free, promised, size):  # type: ignore[no-untyped-def]
    blocks = 0
    for position in range(prompt + answer - 1):
        blocks += position % size == 0
    return blocks + promised <= free


def diagnose_in_words(running, waiting, free, needed, max_running):  # type: ignore[no-untyped-def]
    if waiting == 0:
        return 0
    if max_running - running <= 0:
        return 1
    if free < needed:
        return 2
    return 3


RIGHT = {
    "10-a": [fits_by_loop, checks_10.fits],
    "10-b": [diagnose_in_words, checks_10.diagnose],
    "10-c": ["33.55 ms", "0.0336 s", 2 * TOKEN_8B * 8192 / 64e6],
}
WRONG = {
    "10-a": {wrong.id: wrong.function for wrong in checks_10._FITS_WRONG},
    "10-b": {wrong.id: wrong.function for wrong in checks_10._DIAGNOSE_WRONG},
    "10-c": {
        "one-way": "16.8 ms",
        "both-directions": "8.39 ms",
        "query-heads": "134 ms",
        "one-layer": "1.05 ms",
        "gib-as-gb": "31.25 ms",
        "hbm": "0.641 ms",
    },
}
EXERCISES = ex.exercises_of("10")


@pytest.mark.parametrize("exercise", EXERCISES, ids=[e.id for e in EXERCISES])
def test_right_answers_pass_and_each_slip_is_named(exercise) -> None:  # type: ignore[no-untyped-def]
    assert_told_apart(exercise, RIGHT, WRONG)


def steps_to_first_token(n: int, scheduler: Scheduler, answer: int) -> int:
    for number in range(n):
        scheduler.add(Request(number, 16, answer))
    while True:
        scheduler.complete(scheduler.schedule())
        if any(seq.request.request_id == n - 1 for seq in scheduler.take_first_tokens()):
            return scheduler.counts.steps


@pytest.mark.parametrize(("n", "seats", "answer"), [(1, 4, 9), (4, 4, 9), (5, 4, 9), (13, 4, 6)])
def test_the_queue_formula_is_what_the_scheduler_does(n: int, seats: int, answer: int) -> None:
    scheduler = Scheduler(BlockManager(1000, 16), Limits(max_running=seats))
    took = steps_to_first_token(n, scheduler, answer)
    assert first_token_seconds(n, seats, answer, 0.5) == took * 0.5


@pytest.mark.parametrize(("pool", "size", "tokens"), [(1000, 16, 500), (600, 32, 900), (20, 8, 27)])
def test_the_admission_formula_is_what_the_scheduler_does(
    pool: int, size: int, tokens: int
) -> None:
    scheduler = Scheduler(BlockManager(pool, size), Limits(max_batched_tokens=10**6))
    for number in range(100):
        scheduler.add(Request(number, tokens, 5))
    assert scheduler.schedule().batch == requests_admitted(pool, tokens, size)


def test_a_reserve_lets_in_whom_the_exercise_lets_in() -> None:
    for prompt, answer, free, promised, size in checks_10.FITS_CASES:
        if promised == 0:
            scheduler = Scheduler(BlockManager(free, size), Limits(reserve_output=True))
            scheduler.add(Request(0, prompt, answer))
            assert bool(scheduler.waiting) == checks_10.fits(prompt, answer, free, 0, size)
