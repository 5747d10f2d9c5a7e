"""Every number and name in the prose of chapter 03, checked against the functions."""

import re
from pathlib import Path

from kvlab.arithmetic.accounting import accountings
from kvlab.arithmetic.catalogue import find_model, model_shape
from kvlab.arithmetic.gpus import find_gpu
from kvlab.arithmetic.memory import kv_bytes, kv_bytes_per_token
from kvlab.arithmetic.memory_split import MemorySplit, split_memory
from kvlab.arithmetic.reader import read_model
from kvlab.arithmetic.request import size_request
from kvlab.arithmetic.units import GB, GIB
from kvlab.model.tiny_families import FAMILIES, WINDOW

SOURCE = Path(__file__).resolve().parents[2] / "chapters" / "src" / "03_memory_formula.py"
TEXT = SOURCE.read_text(encoding="utf-8")
PROSE = "\n".join(line[2:] for line in TEXT.splitlines() if line.startswith("# "))
SMALL, LLAMA_8B = model_shape("smollm2"), model_shape("llama-3.1-8b")


def token(name: str) -> int:
    shape = model_shape(name)
    return kv_bytes_per_token(
        num_layers=shape.num_layers,
        num_kv_heads=shape.num_kv_heads,
        head_dim=shape.head_dim,
        bytes_per_element=2,
    )


def on_an_h100(users: int, context: int) -> MemorySplit:
    return split_memory(
        read_model("llama-3.1-8b"),
        context=context,
        users=users,
        weights_bytes=2 * (find_model("llama-3.1-8b").parameters or 0),
        capacity_bytes=find_gpu("H100").driver_bytes,
        overhead_bytes=2 * GB,
    )


def test_one_token_of_smollm2_leaves_180_vectors() -> None:
    assert 2 * SMALL.num_layers * SMALL.num_kv_heads == 180
    said = f"{SMALL.num_layers} layers and {SMALL.num_kv_heads} KV heads"
    assert f"{said}, so one token leaves 180 vectors" in PROSE


def test_the_factors_of_llama_8b_are_those_in_the_text() -> None:
    said = f"{LLAMA_8B.num_layers} layers, {LLAMA_8B.num_heads} query heads, "
    said += f"{LLAMA_8B.num_kv_heads} KV heads, {LLAMA_8B.head_dim} numbers"
    assert said in PROSE
    assert token("llama-3.1-8b") == 131_072 == 2**20 // 8
    assert "2 x 32 x 8 x 128 x 2 = 131,072 bytes; eight tokens are a MiB." in TEXT


def test_the_units_differ_by_seven_percent() -> None:
    assert round(100 * (GIB / GB - 1)) == 7


def test_the_answer_for_the_interviewer_has_the_right_sizes() -> None:
    shape = model_shape("llama-3.1-70b")
    assert token("llama-3.1-70b") == 320 * 1024
    sizes = [
        kv_bytes(num_layers=80, num_kv_heads=8, head_dim=128, bytes_per_element=2, seq_len=n) / GIB
        for n in (8192, 131_072)
    ]
    assert sizes == [2.5, 40]
    assert "320 KiB a token, 2.5 GiB at 8,192 tokens, 40 GiB at 131,072" in PROSE
    assert f"{shape.num_layers} layers, {shape.num_kv_heads} KV heads" in PROSE


def test_three_of_nine_fields_change_the_cache() -> None:
    config = dict(find_model("qwen3-235b-a22b").config)
    fields = re.findall(r'"(\w+)"', TEXT[TEXT.index("fields = [") : TEXT.index("def doubled")])
    assert len(fields) == 9
    before = read_model(config).elements_per_token
    changed = {
        name
        for name in fields
        if name != "torch_dtype"
        and read_model(config | {name: 2 * config[name]}).elements_per_token != before
    }
    assert changed == {"num_hidden_layers", "num_key_value_heads", "head_dim"}
    assert read_model(config | {"torch_dtype": "float32"}).elements_per_token == before
    assert "Three of nine." in PROSE


def test_24_users_of_8192_tokens_hold_24_gib() -> None:
    split = on_an_h100(24, 8192)
    assert (split.cache_bytes, split.request_bytes) == (24 * GIB, GIB)


def test_a_hundred_short_chats_fit_and_ten_long_documents_do_not() -> None:
    fits = {
        (users, n): on_an_h100(users, n).free_bytes >= 0
        for users in (1, 10, 100)
        for n in (2048, 8192, 32_768, 131_072)
    }
    assert fits[100, 2048] and not fits[10, 131_072]


def test_the_caches_pass_the_weights_at_3_74_users_of_32k() -> None:
    assert round(on_an_h100(1, 32_768).users_at_weights, 2) == 3.74
    assert f"{4 * GIB / 1e9:.2f}" == f"{on_an_h100(1, 32_768).request_bytes / 1e9:.2f}"


def test_small_models_with_many_kv_heads_cross_first() -> None:
    names = ("llama-7b", "llama-3.1-8b", "llama-3.1-70b", "llama-3.1-405b")
    crossings = [
        (find_model(name).parameters or 0) / read_model(name).elements_per_token for name in names
    ]
    assert crossings == sorted(crossings)
    assert model_shape("llama-7b").num_kv_heads == 32


def test_nine_families_and_a_window_of_eight_are_as_the_text_says() -> None:
    assert (len(FAMILIES), WINDOW) == (9, 8)
    assert "nine tiny models" in PROSE and "A window of 8 " in PROSE
    assert "decode 24 positions" in PROSE


def test_gemma_has_52_windowed_layers_of_62_and_reserves_four_times_its_payload() -> None:
    storage = read_model("gemma-3-27b-it")
    counts = {group.kind: group.count for group in storage.groups}
    assert (counts["windowed"], storage.num_layers) == (52, 62)
    found = accountings(storage, context=10_001, max_batched_tokens=2048)
    assert f"{found.reserved_bytes / found.payload_bytes:.2f}" == "4.05"
    assert found.payload_bytes < found.llama_cpp_bytes < found.vllm_bytes < found.reserved_bytes


def test_long_steps_make_vllm_charge_more_than_the_reservation() -> None:
    found = accountings(read_model("gemma-3-27b-it"), context=10_001, max_batched_tokens=8192)
    assert found.vllm_bytes > found.reserved_bytes
    assert f"{found.vllm_bytes / GIB:.2f} {found.reserved_bytes / GIB:.2f}" == "4.99 4.73"
    assert "with long steps vLLM charges more than the reservation" in PROSE


def test_a_windowed_layer_is_charged_one_block_more_than_window_and_step() -> None:
    mistral = read_model("mistral-7b-v0.1")
    found = accountings(mistral, context=10_001, max_batched_tokens=2048)
    blocks = -(-(4096 - 1 + 2048) // 16) + 1
    assert found.vllm_bytes == blocks * 16 * 2 * mistral.elements_per_token
    assert "and one block more (a window may begin inside a block)" in PROSE


def test_recurrent_states_are_counted_in_fp32_as_the_caption_says() -> None:
    config = find_model("qwen3-next-80b-a3b-instruct").config
    heads, keys = config["linear_num_value_heads"], config["linear_key_head_dim"]
    recurrent = heads * keys * config["linear_value_head_dim"] * 4
    channels = 2 * config["linear_num_key_heads"] * keys + heads * config["linear_value_head_dim"]
    state = size_request(read_model("qwen3-next-80b-a3b-instruct"), context=1).state_bytes
    assert state == 36 * (recurrent + channels * 4 * 2)
    assert "payload: bf16, recurrent states in fp32" in TEXT


def test_what_was_measured_is_called_measured() -> None:
    assert TEXT.count("measured=True") == 2


def test_a_model_of_equal_full_layers_gets_nearly_the_same_from_all() -> None:
    found = accountings(read_model("llama-3.1-8b"), context=10_001, max_batched_tokens=2048)
    sizes = (found.payload_bytes, found.llama_cpp_bytes, found.vllm_bytes, found.reserved_bytes)
    assert max(sizes) < 1.03 * min(sizes)


def test_the_sizes_in_exercise_b_are_those_of_the_config() -> None:
    config = find_model("qwen3-4b").config
    for field in ("hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim"):
        assert f"{field} {config[field]}" in PROSE
    assert f"num_hidden_layers {config['num_hidden_layers']}" in PROSE


def test_only_one_formula_is_written_out_in_the_chapter() -> None:
    """The formula stands once in the prose's own code; everything else calls the package."""
    code = "\n".join(line for line in TEXT.splitlines() if not line.startswith("#"))
    assert len(re.findall(r"2 \* layers \* kv_heads", code)) == 1
    assert not re.search(r"num_kv_heads \* \w*\.?head_dim", code)
