"""Chapter 12: what it says of real engines, held against recordings and the formulas anew."""

import pytest

from kvlab.arithmetic.sizing import plan
from kvlab.course.claim_math_07 import hit_tokens
from kvlab.serving.engines.prediction import CellsPrediction
from kvlab.serving.engines.replay import recorded, replay
from kvlab.serving.engines.same_load import our_schedule
from kvlab.serving.engines.scenarios import SCENARIOS

SIZES = {
    "capacity-bf16-128": (364, 46_592, 22.75),
    "capacity-fp32-128": (182, 23_296, 11.375),
    "capacity-fp32-32": (128, 4_096, 4.0),
    "capacity-fp32-32-tight": (64, 2_048, 2.0),
    "pool-2048": (64, 2_048, 2.0),
    "tp1-kv4": (1_024, 32_768, 32.0),
    "tp2-kv4": (2_048, 65_536, 64.0),
    "tp1-kv1": (4_096, 131_072, 128.0),
    "tp2-kv1": (4_096, 131_072, 128.0),
}


def test_every_recording_is_of_a_scenario_and_says_where_and_when() -> None:
    assert set(recorded()) <= set(SCENARIOS)
    for name in recorded():
        run = replay(name)
        assert run.says.startswith("replayed: ") and run.date in run.says
        assert str(run.machine.cores) in run.says


@pytest.mark.parametrize("name", recorded())
def test_every_size_that_an_engine_reported_was_predicted(name: str) -> None:
    run = replay(name)
    agreements = run.agreements()
    assert agreements or run.failure
    for pair in agreements:
        close = isinstance(run.prediction, CellsPrediction) and pair.half_step == 0
        assert pair.agrees or close, pair


@pytest.mark.parametrize("name", SIZES)
def test_the_sizes_of_the_text_are_both_predicted_and_reported(name: str) -> None:
    run = replay(name)
    pool, told = run.prediction, run.readings
    assert (pool.num_blocks, pool.tokens, pool.concurrency) == SIZES[name]
    assert (told.num_blocks, told.tokens, told.concurrency) == SIZES[name]


def test_the_small_pool_preempts_as_often_as_our_scheduler_says_and_no_answer_changes() -> None:
    small, large = replay("pool-2048"), replay("pool-23296")
    counts = []
    for run in (small, large):
        load = run.loads["twelve"]
        ours = our_schedule(run.plan, load.requests).scheduler.counts
        counts.append((load.preemptions, ours.preemptions))
    assert counts == [(4, 4), (0, 0)]
    assert small.loads["twelve"].token_ids == large.loads["twelve"].token_ids
    assert small.loads["twelve"].seconds > large.loads["twelve"].seconds


@pytest.mark.parametrize("size", [32, 128])
def test_hits_are_the_whole_blocks_of_what_is_shared(size: int) -> None:
    for load in replay(f"prefix-{size}").loads.values():
        each = hit_tokens(load.requests[0].prompt_tokens, 512, size)
        assert abs(load.hit_tokens - each * (len(load.requests) - 1)) <= size


def test_memory_stays_within_5_percent_while_the_pool_fills_and_empties() -> None:
    looks = replay("waves").loads["waves"].memory[3:]
    sizes, use = [m.rss_bytes for m in looks], [m.block_use for m in looks]
    assert max(sizes) < 1.05 * min(sizes)
    assert max(use) > 0.5 > min(use)


def test_the_commands_name_the_parallelism_of_the_plan() -> None:
    from kvlab.arithmetic.plan_command import vllm_command

    two_nodes = plan("llama-3.1-405b", gpu="H100", gpus=16, tp=8, pp=2, context=32_768)
    assert "--tensor-parallel-size 8 --pipeline-parallel-size 2" in vllm_command(two_nodes)
    replicas = plan("llama-3.1-8b", gpu="H100", gpus=8, tp=1, dp=8, context=32_768)
    assert "--data-parallel-size 8" in vllm_command(replicas)
