"""The planner's advice: the next change, the search for GPUs, the engine's command and pages."""

import shlex

import pytest

from kvlab.arithmetic.catalogue import find_model
from kvlab.arithmetic.plan_changes import cheapest_change, next_changes
from kvlab.arithmetic.plan_command import no_command, vllm_command
from kvlab.arithmetic.plan_engine import EngineCapacity, engine_capacity
from kvlab.arithmetic.plan_report import plan_report
from kvlab.arithmetic.plan_search import gpus_needed
from kvlab.arithmetic.sizing import plan
from kvlab.errors import KvlabError

FULL = 131_072
SIX_HEADS = {
    "model_type": "llama",
    "num_hidden_layers": 12,
    "hidden_size": 1536,
    "num_attention_heads": 12,
    "num_key_value_heads": 6,
    "intermediate_size": 4096,
    "vocab_size": 32_000,
}


def test_changes_come_in_the_order_of_their_cost_and_all_help() -> None:
    changes = next_changes(plan("llama-3.1-70b", gpu="H100", gpus=8, context=FULL, output=1024))
    assert [c.cost for c in changes] == sorted(c.cost for c in changes)
    assert all(c.helps and c.gained_requests >= 0 for c in changes)
    names = [c.name for c in changes]
    assert "cache in fp8" in names and "2 replicas" in names and "weights in fp8" in names
    doubled = next(c for c in changes if c.name == "2 replicas")
    assert doubled.extra_gpus == 8 and doubled.gained_requests == 10


def test_tp_16_on_8_heads_buys_little_and_the_changes_say_so() -> None:
    changes = {
        c.name: c for c in next_changes(plan("llama-3.1-70b", gpu="H100", gpus=8, context=FULL))
    }
    assert changes["2 replicas"].gained_requests > 5 * changes["tp 16"].gained_requests


def test_for_users_the_cheapest_change_that_is_enough_is_taken() -> None:
    found = plan("llama-3.1-70b", gpu="H100", gpus=8, context=FULL, users=20)
    change = cheapest_change(found)
    assert not found.fits and change is not None
    assert change.name == "cache in fp8" and change.after.fits


def test_copied_heads_are_freed_by_another_layout() -> None:
    twin = {**find_model("llama-3.1-70b").config, "num_key_value_heads": 1}
    found = plan(twin, gpu="H100", gpus=8, context=FULL)
    names = [c.name for c in next_changes(found)]
    assert "tp 4, pp 2" in names


def test_no_change_is_offered_that_an_engine_refuses() -> None:
    found = plan(SIX_HEADS, gpu="T4", gpus=2, tp=2, context=2**20)
    assert "tp 4" not in [c.name for c in next_changes(found)]


def test_users_and_context_give_the_gpus() -> None:
    found = gpus_needed("llama-3.1-70b", gpu="H100", context=FULL, users=100)
    assert found.fits and found.inputs.users == 100
    assert found.total_admission_bound >= 100
    fewer = plan(
        "llama-3.1-70b", gpu="H100", tp=found.inputs.deployment.tp, dp=found.inputs.dp - 1,
        context=FULL, users=100,
    )  # fmt: skip
    assert not fewer.fits


def test_a_latency_target_raises_the_number_of_gpus() -> None:
    easy = gpus_needed("llama-3.1-70b", gpu="H100", context=8192, users=64)
    strict = gpus_needed("llama-3.1-70b", gpu="H100", context=8192, users=64, tpot_target=0.01)
    assert strict.inputs.gpus > easy.inputs.gpus


def test_a_model_larger_than_a_machine_is_laid_over_stages() -> None:
    found = gpus_needed("llama-3.1-405b", gpu="H100", context=8192, users=1)
    assert (found.inputs.deployment.tp, found.inputs.deployment.pp) == (8, 2)


def test_a_target_that_no_layout_meets_is_said() -> None:
    with pytest.raises(KvlabError, match="no layout serves one such request in time"):
        gpus_needed("llama-3.1-70b", gpu="T4", context=FULL, users=1, ttft_target=0.001)


def test_the_command_states_every_number_of_the_plan() -> None:
    found = plan(
        "llama-3.1-70b", gpu="H100", gpus=16, tp=8, context=8192, output=1024, cache_dtype="fp8",
        utilization=0.92,
    )  # fmt: skip
    words = shlex.split(vllm_command(found))
    flags = dict(zip(words[3::2], words[4::2], strict=True))
    assert words[:3] == ["vllm", "serve", "meta-llama/Llama-3.1-70B"]
    assert flags == {
        "--dtype": "bfloat16",
        "--tensor-parallel-size": "8",
        "--data-parallel-size": "2",
        "--kv-cache-dtype": "fp8",
        "--max-model-len": "9216",
        "--gpu-memory-utilization": "0.92",
        "--block-size": "16",
        "--max-num-seqs": str(found.admission_bound),
    }


def test_no_command_is_printed_for_what_an_engine_refuses() -> None:
    refused = plan(SIX_HEADS, gpu="H100", tp=4, context=1024)
    assert vllm_command(refused) == ""
    assert "6 KV heads and tp 4: neither divides the other, engines refuse" in refused.notes[0]
    assert no_command(plan("llama-3.1-70b", gpu="T4", context=8192)).startswith("does not fit by")
    odd = plan("llama-3.1-8b", gpu="H100", context=8192, cache_dtype="q8_0")
    assert no_command(odd) == "vLLM keeps no cache in q8_0"


def test_for_full_attention_the_engine_agrees_with_the_plan() -> None:
    found = plan("llama-3.1-8b", gpu="H100", context=8192, output=100)
    engine = engine_capacity(found)
    assert isinstance(engine, EngineCapacity)
    assert engine.concurrency == pytest.approx(found.concurrency, rel=1e-3)
    assert abs(engine.tokens - found.capacity_tokens) <= found.inputs.block_positions


def test_for_windowed_layers_the_engine_charges_more_than_the_payload() -> None:
    found = plan("gpt-oss-20b", gpu="H100", context=8192)
    engine = engine_capacity(found)
    assert isinstance(engine, EngineCapacity)
    assert engine.concurrency < found.concurrency


@pytest.mark.parametrize(
    "name", ["llama-3.1-8b", "deepseek-v2-lite", "gemma-3-4b", "qwen3-next-80b"]
)
def test_a_report_holds_plain_values_for_every_family(name: str) -> None:
    import json

    report = plan_report(plan(name, gpu="H200", gpus=2, context=4096, output=256))
    assert json.loads(json.dumps(report, allow_nan=False)) == report
    assert report["admission_bound"] >= 1 and report["short_bytes"] == 0
