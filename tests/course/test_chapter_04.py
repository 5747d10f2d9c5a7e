"""The exercises, claims and questions of chapter 04, against numbers worked out by hand."""

import pytest
from exercise_answers import assert_told_apart

from kvlab.course import checks_04, checks_04_accept
from kvlab.course import exercises as ex
from kvlab.course.bank import select_questions
from kvlab.course.claims import find_claim, load_claims

H100_FLOPS, H100_BYTES = 989e12, 3.35e12
WEIGHTS_8B, WEIGHTS_70B = 2 * 8_030_261_248, 2 * 70_553_706_496
CACHE_8B, CACHE_70B = 2 * 32 * 8 * 128 * 2, 2 * 80 * 8 * 128 * 2


def batch_gain(context: int, batch: int) -> float:
    """Tokens a second of a batch over those of one request, both bound by reading."""
    each = CACHE_8B * context
    return batch * (WEIGHTS_8B + each) / (WEIGHTS_8B + batch * each)


EXPECTED = {
    "prefill-compute-bound": H100_FLOPS / H100_BYTES,
    "batching-only-way": [batch_gain(n, 16) for n in (128, 8192, 32768)],
    "capacity-and-bandwidth-separate": [80 * 2**30 / 3.35e9, 10 * 2**30 / 3.35e9],
    "gpu-looks-busy": 100 * H100_BYTES / H100_FLOPS,
    "logical-payload-32-seqs": 80,
    "kv-bytes-equal-weights-70b": WEIGHTS_70B / CACHE_70B,
}
CLAIMS = [claim for claim in load_claims() if claim.chapter == "04"]


@pytest.mark.parametrize("claim", CLAIMS, ids=[claim.id for claim in CLAIMS])
def test_a_claim_is_recomputed_to_the_expected_value(claim) -> None:  # type: ignore[no-untyped-def]
    assert claim.computed() == pytest.approx(EXPECTED[claim.id], rel=1e-9)


def test_every_claim_is_covered() -> None:
    assert {claim.id for claim in CLAIMS} == set(EXPECTED)
    assert find_claim("prefill-compute-bound").learner_verdict == "only if"
    assert find_claim("batching-only-way").learner_verdict == "wrong"


@pytest.mark.parametrize("claim", CLAIMS, ids=[claim.id for claim in CLAIMS])
def test_a_statement_quotes_the_page_alone(claim) -> None:  # type: ignore[no-untyped-def]
    assert "computed" not in claim.statement


@pytest.mark.parametrize("answer", [29.9, 29.92, 29.915, "29.9 requests"])
def test_the_quotient_is_told_to_become_a_whole_batch(answer: object) -> None:
    assert ex.check("04-b", answer).grade.misconception == "not-whole"


def test_leaving_out_the_embedding_is_met_with_the_convention() -> None:
    embedding = 2 * 128_256 * 4096
    assert (WEIGHTS_8B - embedding) // (CACHE_8B * 4096) + 1 == 28
    assert "convention" in ex.check("04-b", 28).grade.feedback


def test_what_counts_as_moved_is_said_wherever_the_crossing_is_asked() -> None:
    words = "Count all weights, the input embedding too."
    asked = next(q for q in select_questions(chapter="04") if q.id == "04-cache-overtakes")
    assert asked.text.endswith(words)
    assert next(e for e in EXERCISES if e.id == "04-b").statement.endswith(words)


def step_by_hand(batch, flops, weight_bytes, cache_bytes):  # type: ignore[no-untyped-def]
    read = weight_bytes + sum(cache_bytes for _ in range(batch))
    arithmetic, reading = flops * batch / 989e12, read / 3.35e12
    return arithmetic if arithmetic > reading else reading


def accept_by_loop(proposed, chosen):  # type: ignore[no-untyped-def]
    emitted = []
    for guess, choice in zip([*proposed, None], chosen, strict=True):
        emitted.append(choice)
        if guess != choice:
            break
    return emitted, len(proposed) + 1 - len(emitted)


def matches_counted(proposed, chosen):  # type: ignore[no-untyped-def]
    count = sum(p == c for p, c in zip(proposed, chosen[:-1], strict=True))
    return [*proposed[:count], chosen[count]], len(proposed) - count


RIGHT = {
    "04-a": [step_by_hand, checks_04.step_seconds],
    "04-b": [30, "30 requests"],
    "04-c": ["8.47 ms", "0.00847 s"],
    "04-d": [accept_by_loop, checks_04_accept.accept],
}
WRONG = {
    "04-a": {
        "added": lambda b, f, w, c: b * f / 989e12 + (w + b * c) / 3.35e12,
        "weights-for-each": lambda b, f, w, c: max(b * f / 989e12, b * (w + c) / 3.35e12),
        "cache-once": lambda b, f, w, c: max(b * f / 989e12, (w + c) / 3.35e12),
        "reading-alone": lambda b, f, w, c: (w + b * c) / 3.35e12,
        "one-request": lambda b, f, w, c: max(f / 989e12, (w + b * c) / 3.35e12),
        "milliseconds": lambda *given: 1000 * step_by_hand(*given),
        "shorter": lambda b, f, w, c: min(b * f / 989e12, (w + b * c) / 3.35e12),
    },
    "04-b": {
        "still-weights": 29,
        "embedding-left-out": 28,
        "not-whole": 29.9,
        "ten-times": 299,
        "keys-only": 60,
        "query-heads": 8,
        "one-layer": int(WEIGHTS_8B / (CACHE_8B / 32 * 4096)) + 1,
        "weights-in-numbers": 15,
    },
    "04-c": {
        "cache-forgotten": "5.27 ms",
        "cache-once": "5.37 ms",
        "cache-not-split": "30.9 ms",
        "one-card": "67.8 ms",
        "weights-forgotten": "3.21 ms",
        "gib-as-gb": "8.25 ms",
    },
    "04-d": {
        "own-token-forgotten": lambda p, c: (accept_by_loop(p, c)[0][:-1], accept_by_loop(p, c)[1]),
        "anywhere": matches_counted,
        "guess-emitted": lambda p, c: (
            p[: len(accept_by_loop(p, c)[0])],
            accept_by_loop(p, c)[1],
        ),
        "dropped-own": lambda p, c: (accept_by_loop(p, c)[0], accept_by_loop(p, c)[1] + 1),
        "last-choice": lambda p, c: (
            [*accept_by_loop(p, c)[0][:-1], c[-1]],
            accept_by_loop(p, c)[1],
        ),
    },
}
EXERCISES = ex.exercises_of("04")


@pytest.mark.parametrize("exercise", EXERCISES, ids=[e.id for e in EXERCISES])
def test_right_answers_pass_and_each_slip_is_named(exercise) -> None:  # type: ignore[no-untyped-def]
    assert_told_apart(exercise, RIGHT, WRONG)
