"""Memory and tokens that belong together in a paste of several starts."""

from kvlab.arithmetic.logs.finding import DIFFERS
from kvlab.arithmetic.logs.report import explain_log

FIRST = """Initializing a V1 LLM engine (v0.11.0) with config: model='meta-llama/Llama-3.1-8B',
dtype=torch.bfloat16
Available KV cache memory: 30.20 GiB
GPU KV cache size: 247,392 tokens
"""


def test_a_later_start_does_not_speak_for_the_first() -> None:
    report = explain_log(f"{FIRST}Available KV cache memory: 12.30 GiB")
    tokens = next(f for f in report.findings if f.quantity == "kv_tokens")
    assert tokens.verdict != DIFFERS and 247_000 < tokens.estimate.value < 248_000


def test_a_start_without_a_count_above_does_not_either() -> None:
    third = "Available KV cache memory: 12.30 GiB\nGPU KV cache size: 100,752 tokens"
    failed = "Available KV cache memory: 1.00 GiB"
    report = explain_log(f"{FIRST}{third}\n{failed}")
    found = [f for f in report.findings if f.quantity == "kv_tokens"]
    assert len(found) == 2 and all(f.verdict != DIFFERS for f in found)
