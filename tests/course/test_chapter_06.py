"""The exercises, claims and questions of chapter 06, against numbers worked out by hand."""

import pytest
from exercise_answers import assert_told_apart

from kvlab.course import checks_06
from kvlab.course import exercises as ex
from kvlab.course.claims import find_claim, load_claims
from kvlab.paging import BlockManager

EXPECTED = {
    "prealloc-500-of-32k-waste": 100 * (1 - 500 / 32_768),
    "prealloc-2k-of-32k-waste": [93.75, 100 * (1 - 2000 / 32_768)],
    "prealloc-bars": [500 / 2048, 1, 100 / 2048],
    "paged-no-waste-500": 32 * 16 - 500,
    "paged-no-waste-100": [7 * 16 - 100, 100 * 12 / 112],
    "paper-baseline-hf": None,
    "waste-60-80": [61.8, 79.6],
    "waste-under-4": 7.5 / 0.04 - 7.5,
    "throughput-2-4x-same-latency": None,
    "paging-eliminates-fragmentation": 15,
    "prealloc-is-fragmentation": None,
}
CLAIMS = [claim for claim in load_claims() if claim.chapter == "06"]


@pytest.mark.parametrize("claim", CLAIMS, ids=[claim.id for claim in CLAIMS])
def test_a_claim_is_recomputed_to_the_expected_value(claim) -> None:  # type: ignore[no-untyped-def]
    wanted = EXPECTED[claim.id]
    assert claim.computed() == (None if wanted is None else pytest.approx(wanted, rel=1e-9))
    assert claim.topic == "paging"


def test_every_claim_is_covered_and_the_fixed_ones_are_wrong() -> None:
    assert set(EXPECTED) <= {claim.id for claim in CLAIMS}
    for name in list(EXPECTED)[:6]:
        assert find_claim(name).learner_verdict == "wrong"
    assert find_claim("waste-under-4").learner_verdict == "only if"


def test_the_numbers_in_the_conditions_are_the_computed_ones() -> None:
    assert "98.47 %" in find_claim("prealloc-500-of-32k-waste").condition
    assert "93.90 %" in find_claim("prealloc-2k-of-32k-waste").condition
    drawn = [100 * (1 - filled / 16) for filled in (2, 6, 1)]
    assert drawn == [87.5, 62.5, 93.75]
    assert "87.5, 62.5 and 93.75 %" in find_claim("prealloc-bars").condition
    assert "10.7 %" in find_claim("paged-no-waste-100").condition
    assert f"{100 * 12 / 512:.1f} %" in find_claim("paged-no-waste-500").condition


def test_the_reference_append_does_what_the_block_manager_does() -> None:
    """Fork and append in turn, both ways, and compare tables, counts and copies."""
    manager = BlockManager(8, 4, prefix_caching=False)
    manager.allocate("a", 6)
    manager.fork("a", "b")
    for name in "abababab":
        pool, table = manager.pool, manager.block_table(name)
        before = (table, manager.num_tokens(name), pool.ref_count, pool.free_block_ids, 4)
        after = checks_06.append(*before)
        manager.append(name)
        assert after[0] == manager.block_table(name)
        used = [pool.ref_count[b] for b in range(8)]
        assert [n if b not in after[2] else 0 for b, n in enumerate(after[1])] == used
        assert after[2] == pool.free_block_ids
        assert after[3] == manager.copies()


def append_by_cases(table, num_tokens, ref_count, free, block_size):  # type: ignore[no-untyped-def]
    full = num_tokens % block_size == 0
    shared = ref_count[table[-1]] > 1
    if not full and not shared:
        return table, ref_count, free, []
    new = free.pop()
    ref_count[new] += 1
    if full:
        return [*table, new], ref_count, free, []
    ref_count[table[-1]] -= 1
    return [*table[:-1], new], ref_count, free, [(table[-1], new)]


RIGHT = {
    "06-a": [lambda p, table, size: [b * size + o for b in table for o in range(size)][p]],
    "06-b": ["75", 75, "75 blocks"],
    "06-c": [append_by_cases],
    "06-d": ["6", 6.0, "6x"],
}
WRONG = {
    "06-a": {
        "position-itself": lambda p, table, size: p,
        "offset-forgotten": lambda p, table, size: table[p // size] * size,
        "block-not-scaled": lambda p, table, size: table[p // size] + p % size,
        "whole-position-added": lambda p, table, size: table[p // size] * size + p,
    },
    "06-b": {
        "rounded-together": 74,
        "rounded-down": 73,
        "one-too-many": 76,
        "slots": 1200,
        "unused": 21,
    },
    "06-c": {wrong.id: wrong.function for wrong in checks_06._APPEND_WRONG},
    "06-d": {"share-drawn": 0.375, "upside-down": 1 / 6, "label": 1.92, "cells": 1},
}
EXERCISES = ex.exercises_of("06")


@pytest.mark.parametrize("exercise", EXERCISES, ids=[e.id for e in EXERCISES])
def test_right_answers_pass_and_each_slip_is_named(exercise) -> None:  # type: ignore[no-untyped-def]
    assert_told_apart(exercise, RIGHT, WRONG)
