"""Windows and states: the plan admits what vLLM's pages hold, not what the bytes alone would."""

import pytest

from kvlab.arithmetic.plan_command import sequences, vllm_command
from kvlab.arithmetic.plan_engine import EngineCapacity, engine_capacity
from kvlab.arithmetic.plan_ranks import fit_in_budget
from kvlab.arithmetic.sizing import plan

MISTRAL = {
    "model_type": "mistral", "num_hidden_layers": 32, "num_attention_heads": 32,
    "num_key_value_heads": 8, "hidden_size": 4096, "intermediate_size": 14_336,
    "vocab_size": 32_000, "sliding_window": 4096, "max_position_embeddings": 32_768,
}  # fmt: skip
BOX = {"gpu": "H100", "context": 32_768, "overhead_bytes": 2 * 2**30}


@pytest.mark.parametrize("model", [MISTRAL, "gemma-3-27b", "gpt-oss-20b", "qwen3-next-80b"])
@pytest.mark.parametrize("pp", [1, 2])
def test_the_plan_admits_what_the_engine_would(model: object, pp: int) -> None:
    found = plan(model, **BOX, tp=4, pp=pp)
    engine = engine_capacity(found)
    assert isinstance(engine, EngineCapacity)
    assert found.admission_bound == int(min(engine.concurrency, found.concurrency))
    assert f"--max-num-seqs {found.admission_bound}" in vllm_command(found)
    assert "--max-num-batched-tokens 8192" in vllm_command(found)


def test_a_windowed_model_is_not_started_with_what_only_its_bytes_allow() -> None:
    found = plan(MISTRAL, **BOX)
    assert (found.admission_bound, int(found.concurrency)) == (37, 112)
    assert found.notes[0].startswith("windows or states: vLLM's pages hold 37 request(s)")
    assert found.verdict == "fits: 37 request(s) of 32,768 positions"
    assert not plan(MISTRAL, **BOX, users=38).fits and plan(MISTRAL, **BOX, users=37).fits


def test_full_attention_is_planned_by_its_bytes_alone() -> None:
    found = plan("llama-3.1-8b", **BOX)
    assert found.tightest.charged_bytes == 0
    assert found.admission_bound == int(found.concurrency)
    assert "batched" not in vllm_command(found) + " ".join(found.notes)


def test_a_budget_that_is_known_is_filled_with_bytes() -> None:
    assert fit_in_budget(MISTRAL, budget_bytes=2**30, context=32_768).charged_bytes == 0


def test_no_more_requests_are_started_than_are_in_time_or_asked_for() -> None:
    box = {"gpu": "H100", "gpus": 8, "context": 32_768}
    late = plan("llama-3.1-70b", **box, users=50, tpot_target=0.015)
    assert vllm_command(late).endswith("--max-num-seqs 24")
    assert vllm_command(plan("llama-3.1-70b", **box, users=10)).endswith("--max-num-seqs 10")
    never = plan("llama-3.1-70b", **box, tpot_target=0.001)
    assert sequences(never) == 0 and vllm_command(never) == ""
