"""A log follows from the config; where it does not, the cause is named."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlab.arithmetic.logs.case import Case, Settings
from kvlab.arithmetic.logs.finding import DIFFERS
from kvlab.arithmetic.logs.naive import bytes_per_token, naive_case
from kvlab.arithmetic.logs.report import disagreements, explain_log
from kvlab.arithmetic.reader import read_model
from kvlab.arithmetic.storage import uniform_model

GIB = 2**30
HEAD = "Initializing a V1 LLM engine (v0.11.0) with config: model='meta-llama/Llama-3.1-8B', "


def vllm_log(available: str, tokens: int, head: str = HEAD, more: str = "") -> str:
    """Return a small vLLM log in bf16."""
    said = f"Available KV cache memory: {available} GiB\nGPU KV cache size: {tokens:,} tokens"
    return f"{head}dtype=torch.bfloat16, {more}\n{said}"


def reasons(text: str, **given: object) -> str:
    """Return every reason in one text."""
    report = explain_log(text, **given)  # type: ignore[arg-type]
    return " | ".join(reason for f in report.findings for reason in f.reasons)


@pytest.mark.parametrize(
    ("dtype", "block", "budget", "tokens", "length", "concurrency"),
    [
        ("bfloat16", 128, GIB, 46_592, 2048, "22.75"),
        ("float32", 128, GIB, 23_296, 2048, "11.38"),
        ("float32", 32, 188_743_680, 4_096, 1024, "4.00"),
        ("float32", 32, 94_371_840, 2_048, 1024, "2.00"),
        ("float32", 32, GIB, 23_296, 1024, "22.75"),
    ],
)
def test_vllm_on_a_cpu_is_predicted(
    dtype: str, block: int, budget: int, tokens: int, length: int, concurrency: str
) -> None:
    report = explain_log(
        f"engine config: dtype=torch.{dtype}, block_size={block}, kv_cache_memory_bytes={budget}\n"
        f"CPU KV cache size: {tokens:,} tokens, Maximum concurrency for {length:,} tokens per"
        f" request: {concurrency}x",
        model="smollm2",
    )
    assert len(report.findings) == 2 and not disagreements(report)
    assert report.findings[0].estimate.value == tokens


def test_a_refusal_of_vllm_is_predicted() -> None:
    report = explain_log(
        "engine config: dtype=torch.float32, block_size=32\nValueError: To serve at least one"
        " request with the model's max seq len (8192), (0.35 GiB KV cache is needed, which is"
        " larger than the available KV cache memory (0.09 GiB). Based on the available memory, the"
        " estimated maximum model length is 2016.",
        model="smollm2",
    )
    assert [f.quantity for f in report.findings] == ["needed", "estimated_max_len"]
    assert not disagreements(report)


@pytest.mark.parametrize(("heads", "tp", "tokens"), [(4, 1, 32768), (4, 2, 65536), (1, 2, 131072)])
def test_ranks_split_heads_or_copy_them(heads: int, tp: int, tokens: int) -> None:
    config = {
        "model_type": "llama", "num_hidden_layers": 4, "hidden_size": 256,
        "num_attention_heads": 8, "num_key_value_heads": heads, "head_dim": 32,
    }  # fmt: skip
    head = f"engine config: tensor_parallel_size={tp}, dtype=torch.float32, block_size=16"
    memory = "kv_cache_memory_bytes=134217728"
    report = explain_log(f"{head}, {memory}\nCPU KV cache size: {tokens:,} tokens", config=config)
    assert report.findings[0].estimate.value == tokens
    assert ("heads are copied" in str(report.to_dict())) == (heads < tp)


@pytest.mark.parametrize(
    ("kind", "size", "half"),
    [("f16", "90.00", "45.00"), ("q8_0", "47.81", "23.91"), ("q4_0", "25.31", "12.66")],
)
def test_llama_cpp_is_predicted_in_every_type(kind: str, size: str, half: str) -> None:
    report = explain_log(
        f"llama_context: n_ctx         = 4096\nllama_kv_cache: size =   {size} MiB (  4096 cells,"
        f"  30 layers,  1/1 seqs), K ({kind}):   {half} MiB, V ({kind}):   {half} MiB",
        model="smollm2",
    )
    assert [f.quantity for f in report.findings] == ["cache_bytes", "k_bytes", "v_bytes", "cells"]
    assert not disagreements(report)


def test_llama_cpp_prints_enough_to_go_without_a_config() -> None:
    shape = "\n".join(
        f"print_info: {key:<16} = {value}"
        for key, value in (("n_layer", 30), ("n_head", 9), ("n_head_kv", 3), ("n_embd_head_k", 64))
    )
    line = "llama_kv_cache: size = 90.00 MiB ( 4096 cells, 30 layers, 1/1 seqs)"
    report = explain_log(f"{shape}\n{line}")
    assert report.findings[0].estimate.value == 90 * 2**20
    assert report.runs[0].found and "figures that the log prints" in report.runs[0].found.how


def test_rounding_is_said_where_the_count_is_not_exact() -> None:
    assert "digits printed" in reasons(vllm_log("3.81", 31_232))


@pytest.mark.parametrize(
    ("tokens", "says"),
    [
        (62_400, "a cache in fp8"),
        (62_400, "forgets values"),
        (15_600, "counts every KV head twice"),
        (7_800, "counts query heads instead of KV heads"),
        (124_800, "tensor parallelism over 4 ranks"),
        (31_488, "not explained"),
        (44_444, "not explained"),
    ],
)
def test_a_disagreement_has_a_cause_or_is_said_to_have_none(tokens: int, says: str) -> None:
    assert says in reasons(vllm_log("3.81", tokens))


def test_a_setting_that_the_log_says_is_not_guessed_again() -> None:
    said = reasons(vllm_log("3.81", 124_800, more="tensor_parallel_size=1, kv_cache_dtype=auto"))
    assert "tensor parallelism" not in said and "a cache in" not in said


def test_ranks_with_different_memory_follow_the_smallest() -> None:
    text = vllm_log("4.00", 62_400, more="tensor_parallel_size=2")
    report = explain_log(f"{text}\nAvailable KV cache memory: 3.81 GiB")
    assert report.findings[0].estimate.value == 62_416 and not disagreements(report)


def test_a_tp_that_vllm_refuses_is_said_and_no_traceback() -> None:
    report = explain_log(vllm_log("3.81", 31_232), tp=3)
    assert not report.findings
    assert any("must divide the 32 query heads" in note for note in report.runs[0].notes)


def test_without_a_model_the_bytes_of_a_token_name_candidates() -> None:
    report = explain_log("Allocate 69524783104 bytes for k/v cache.\nUsing 132608 total tokens in"
                         " paged KV cache")  # fmt: skip
    said = " ".join(report.runs[0].notes)
    assert "524,288 bytes a token" in said and "--model" in said


def test_a_log_without_sizes_says_so() -> None:
    report = explain_log("Initializing a V1 LLM engine (v0.11.0) with config: x")
    assert report.findings == () and "paste more" in report.runs[0].notes[-1]


@given(
    layers=st.integers(1, 96),
    heads=st.sampled_from([1, 2, 4, 8, 16]),
    groups=st.sampled_from([1, 2, 4, 8]),
    head_dim=st.sampled_from([64, 80, 128, 256]),
    tp=st.sampled_from([1, 2, 4]),
    hundredths=st.integers(500, 9000),
)
@settings(max_examples=40, deadline=None)
def test_what_the_formula_prints_is_predicted_back(
    layers: int, heads: int, groups: int, head_dim: int, tp: int, hundredths: int
) -> None:
    queries = 4 * heads * groups
    config = {
        "model_type": "llama", "num_hidden_layers": layers, "num_attention_heads": queries,
        "hidden_size": queries * head_dim, "num_key_value_heads": heads, "head_dim": head_dim,
    }  # fmt: skip
    block_bytes = 16 * 2 * layers * -(-heads // tp) * head_dim * 2
    tokens = hundredths * GIB // 100 // block_bytes * 16
    head = "engine config: "
    more = f"tensor_parallel_size={tp}, block_size=16"
    text = vllm_log(f"{hundredths / 100:.2f}", tokens, head=head, more=more)
    report = explain_log(text, config=config)
    assert report.findings[0].verdict != DIFFERS
    assert abs(report.findings[0].estimate.value - tokens) <= 16


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("query_heads_instead_of_kv_heads", 327_680 * 8),
        ("forgot_factor_two", 163_840),
        ("doubled_kv_heads", 655_360),
        ("head_dim_from_hidden_size", 327_680),
        ("every_layer_full", 327_680),
        ("divided_latent_by_tp", 327_680),
    ],
)
def test_a_naive_formula_changes_one_thing(name: str, expected: int) -> None:
    case = Case(read_model("llama-3.1-70b"), Settings())
    assert bytes_per_token(naive_case(name, case)) == expected


def test_ignoring_tp_keeps_everything_on_each_rank() -> None:
    model = uniform_model(num_layers=80, num_kv_heads=8, head_dim=128, num_heads=64)
    case = Case(model, Settings(tp=8))
    assert bytes_per_token(case) == 40_960
    assert bytes_per_token(naive_case("ignored_tp", case)) == 327_680


def test_a_block_size_that_vllm_sets_itself_is_used() -> None:
    report = explain_log(
        "engine config: model='Qwen/Qwen3.5-27B', dtype=torch.bfloat16, kv_cache_dtype=fp8\n"
        "Setting attention block size to 1568 tokens to ensure that attention page size is >= mamba"
        " page size.\nTo serve at least one request with the model's max seq len (262144),\n"
        "8.18 GiB KV cache is needed, which is larger than the available KV cache memory (5.00 GiB)"
    )
    assert [f.quantity for f in report.findings] == ["needed"] and not disagreements(report)


def test_the_engine_of_ollama_is_predicted_over_its_devices() -> None:
    report = explain_log(
        'msg="loading" request="{Parallel:1 BatchSize:512 KvSize:4096 KvCacheType: NumThreads:2}"\n'
        'msg="kv cache" device=CUDA0 size="400.0 MiB"\nmsg="kv cache" device=CPU size="112.0 MiB"',
        model="llama-3-8b",
    )
    assert [f.quantity for f in report.findings] == ["devices_bytes"]
    assert report.findings[0].estimate.value == 512 * 2**20 and not disagreements(report)


def test_snapshots_for_rollback_multiply_the_states_of_llama_cpp() -> None:
    line = (
        "llama_memory_recurrent: size = 1795.50 MiB (     4 cells,  64 layers,  4 seqs  2 rs_seq)"
    )
    report = explain_log(line, model="Qwen/Qwen3.5-27B")
    assert report.findings[0].verdict == "equal"


@pytest.mark.parametrize("pp", [1, 2, 4])
def test_pipeline_stages_keep_their_own_layers(pp: int) -> None:
    tokens = 3.81 * GIB // (2**21 // pp) * 16
    report = explain_log(vllm_log("3.81", int(tokens), more=f"pipeline_parallel_size={pp}"))
    assert report.findings[0].estimate.value == tokens
