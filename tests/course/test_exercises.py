import numpy as np
import pytest
from exercise_answers import assert_told_apart

from kvlab.course import exercises as ex
from kvlab.course.checks_01 import attend, causal_mask
from kvlab.course.checks_02 import cached_step

ALL = [*ex.exercises_of("01"), *ex.exercises_of("02")]


def naive_attend(query, keys, values):
    scores = [sum(q * k for q, k in zip(query, key, strict=True)) for key in keys]
    powers = [np.exp(score / len(query) ** 0.5) for score in scores]
    return [
        sum(p * v[i] for p, v in zip(powers, values, strict=True)) / sum(powers)
        for i in range(len(query))
    ]


def soft(scores):
    powers = np.exp(scores)
    return powers / powers.sum()


def loop_mask(q_len, cached_tokens):
    rows = range(cached_tokens, cached_tokens + q_len)
    return [[column <= row for column in range(cached_tokens + q_len)] for row in rows]


def step_by_concatenation(x, keys, values, weights):
    keys = np.concatenate([keys, (x @ weights["key"])[None]])
    values = np.concatenate([values, (x @ weights["value"])[None]])
    return naive_attend(x @ weights["query"], keys, values), keys, values


def step_late(x, keys, values, weights):
    _, new_keys, new_values = cached_step(x, keys, values, weights)
    return attend(x @ weights["query"], keys, values), new_keys, new_values


def step_lost(x, keys, values, weights):
    return cached_step(x, keys, values, weights)[0], keys, values


def step_swapped(x, keys, values, weights):
    return cached_step(
        x, keys, values, weights | {"key": weights["value"], "value": weights["key"]}
    )


def uncached_sum(P, N):
    return P + N - 1, sum(range(P, P + N))


RIGHT = {
    "01-a": [attend, naive_attend],
    "01-b": [
        lambda q_len, cached_tokens: [cached_tokens + i for i in range(q_len)],
        lambda q, c: np.arange(c, c + q),
    ],
    "01-c": [(1, 3, 16, 64), "(1, 3, 16, 64)", [1, 3, 16, 64]],
    "01-d": [causal_mask, loop_mask],
    "02-a": [uncached_sum, lambda P, N: [P + N - 1, N * P + N * (N - 1) / 2]],
    "02-b": [cached_step, step_by_concatenation],
    "02-c": [4 * 80 * 64 * 128 * sum(range(7193, 8193)), "20.2 TFLOP", 20165427200000.0],
    "02-d": [(10, 9, 15), "10, 9, 15"],
}
WRONG = {
    "01-a": {
        "scale-forgotten": lambda q, k, v: soft(k @ q) @ v,
        "scale-without-root": lambda q, k, v: soft(k @ q / len(q)) @ v,
        "keys-mixed": lambda q, k, v: soft(k @ q / np.sqrt(len(q))) @ k,
        "not-normalised": lambda q, k, v: np.exp(k @ q / np.sqrt(len(q))) @ v,
    },
    "01-b": {
        "offset-forgotten": lambda q, c: list(range(q)),
        "one-too-far": lambda q, c: [c + 1 + i for i in range(q)],
        "one-too-early": lambda q, c: [c - 1 + i for i in range(q)],
        "whole-text": lambda q, c: list(range(q + c)),
    },
    "01-c": {
        "query-heads": (1, 9, 16, 64),
        "last-token": (1, 3, 17, 64),
        "hidden-over-kv": "1 x 3 x 16 x 192",
        "positions-first": (1, 16, 3, 64),
        "layers": (30, 3, 16, 64),
        "dimensions": (3, 16, 64),
    },
    "01-d": {
        "square": lambda q, c: np.tril(np.ones((q, q), dtype=bool)),
        "offset-forgotten": lambda q, c: np.tril(np.ones((q, c + q), dtype=bool)),
        "sees-future": lambda q, c: np.ones((q, c + q), dtype=bool),
        "inverted": lambda q, c: ~causal_mask(q, c),
    },
    "02-a": {
        "last-token": lambda P, N: (P + N, sum(range(P, P + N))),
        "final-length": lambda P, N: (P + N - 1, N * (P + N)),
        "growth-forgotten": lambda P, N: (P + N - 1, N * P),
        "swapped": lambda P, N: uncached_sum(P, N)[::-1],
    },
    "02-b": {
        "stored-after": step_late,
        "not-stored": step_lost,
        "key-value-swapped": step_swapped,
    },
    "02-c": {
        "kv-heads": "2.52 TFLOP",
        "half": 4 * 80 * 64 * 128 * sum(range(7193, 8193)) // 2,
        "one-layer": 4 * 64 * 128 * sum(range(7193, 8193)),
        "one-head": 4 * 80 * 128 * sum(range(7193, 8193)),
        "final-length": 4 * 80 * 64 * 128 * 8192 * 1000,
        "first-length": 4 * 80 * 64 * 128 * 7193 * 1000,
        "last-token-alone": "21.5 GFLOP",
        "all-queries": 4 * 80 * 64 * 128 * sum(range(1, 8193)),
    },
    "02-d": {
        "last-token": (10, 9, 16),
        "ten-decode-steps": (11, 10, 16),
        "prefill-not-counted": "9 9 15",
        "axes-swapped": (9, 10, 15),
    },
}


def names(exercises):
    return [exercise.id for exercise in exercises]


@pytest.mark.parametrize("exercise", ALL, ids=names(ALL))
def test_two_right_answers_pass_and_three_slips_are_named(exercise):
    assert len(RIGHT[exercise.id]) >= 2
    assert_told_apart(exercise, RIGHT, WRONG)
