"""Runs of eviction policies: their numbers are the bench's, their maps what the cache holds."""

from dataclasses import replace

import pytest

from kvlab.errors import InvalidArgument
from kvlab.model.eviction_runs import EvictionRun, eviction_runs
from kvlab.model.quality import Bench

TOKENS, FACTS, CONTEXT = 160, 8, 136


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench("tiny", tokens=TOKENS, facts=FACTS, num_sequences=3)


@pytest.fixture(scope="module")
def runs(bench: Bench) -> dict[tuple[str, int], EvictionRun]:
    policies = ("window", "sinks", "random", "h2o")
    return {(r.policy, r.percent): r for r in eviction_runs(bench, policies, (100, 25))}


def test_the_numbers_are_those_of_the_bench(bench, runs) -> None:  # type: ignore[no-untyped-def]
    for (policy, percent), run in runs.items():
        measured = bench.measure(policy, budget=f"{percent}%")
        assert (run.recall, run.cache_bytes) == (measured.recall, measured.cache_bytes)
        assert run.loss == pytest.approx(measured.loss, rel=1e-9, abs=1e-12)


def test_the_map_shows_what_is_held_when_the_context_was_read(runs) -> None:  # type: ignore[no-untyped-def]
    budget = TOKENS // 4
    for (policy, percent), run in runs.items():
        assert run.context_len == CONTEXT
        for head in (head for layer in run.kept for head in layer):
            assert list(head) == sorted(set(head)) and head[-1] < CONTEXT
            assert len(head) == (CONTEXT if percent == 100 else budget), policy
    assert runs["window", 25].kept[1][1] == tuple(range(CONTEXT - budget, CONTEXT))
    sinks = runs["sinks", 25].kept[0][0]
    assert sinks == (*range(4), *range(CONTEXT - budget + 4, CONTEXT))
    assert len({head for layer in runs["random", 25].kept for head in layer}) == 4


def test_each_fact_stands_where_the_run_says(bench, runs) -> None:  # type: ignore[no-untyped-def]
    run = runs["window", 25]
    assert len(run.fact_positions) == len(run.facts) == len(run.answered) == FACTS
    assert list(run.fact_positions) == sorted(run.fact_positions)
    ids = bench.task.input_ids[0]
    for at, fact in zip(run.fact_positions, run.facts, strict=True):
        assert bench.loaded.decode(ids[at : at + 2].tolist()) == fact.lower().replace(
            ":", ""
        ).strip(".")


def test_with_everything_kept_all_is_answered_and_a_lost_fact_is_not(runs) -> None:  # type: ignore[no-untyped-def]
    assert all(runs["h2o", 100].answered)
    run = runs["window", 25]
    oldest = [a for a, at in zip(run.answered, run.fact_positions, strict=True) if at < 60]
    assert oldest and sum(oldest) <= len(oldest) / 4
    assert run.recall < runs["h2o", 25].recall


def test_answers_are_counted_as_recall() -> None:
    one = Bench("tiny", tokens=TOKENS, facts=FACTS, num_sequences=1)
    (run,) = eviction_runs(one, ["sinks"], [50])
    assert run.recall == pytest.approx(sum(run.answered) / FACTS)


def test_a_task_without_facts_is_refused_by_name(bench: Bench) -> None:
    prose = Bench(bench.loaded, tokens=TOKENS, facts=FACTS, num_sequences=1)
    prose.task = replace(prose.task, answer_positions=None)
    with pytest.raises(InvalidArgument, match=r"bench=.*facts"):
        next(eviction_runs(prose))
