"""What engines charge: vLLM's pages and groups, llama.cpp's padded cells.

The expected numbers were printed by real engines, or follow from their rules by hand.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlab.arithmetic.llama_cpp import llama_cpp_bytes
from kvlab.arithmetic.reader import read_model
from kvlab.arithmetic.request import size_request
from kvlab.arithmetic.storage import LayerStorage, ModelStorage, uniform_model
from kvlab.arithmetic.units import GIB
from kvlab.arithmetic.vllm_pages import vllm_layout
from kvlab.errors import Unsupported

MIB = 2**20
SCOUT = "llama-4-scout"
HYBRID = {
    "model_type": "qwen3_5_text", "num_hidden_layers": 24, "num_attention_heads": 16,
    "num_key_value_heads": 2, "head_dim": 256, "hidden_size": 2048, "full_attention_interval": 4,
    "linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_key_head_dim": 128,
    "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4,
}  # fmt: skip


# -- vLLM ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "block", "budget", "blocks", "tokens"),
    [
        ("bf16", 128, GIB, 364, 46_592),
        ("fp32", 128, GIB, 182, 23_296),
        ("fp32", 32, 188_743_680, 128, 4_096),
        ("fp8", 128, GIB, 728, 93_184),
    ],
)
def test_smollm2_gets_the_blocks_that_vllm_printed(
    dtype: str, block: int, budget: int, blocks: int, tokens: int
) -> None:
    layout = vllm_layout(read_model("smollm2"), block_size=block, cache_dtype=dtype)
    found = layout.capacity(budget, 2048, 2048)
    assert (found.num_blocks, found.tokens) == (blocks, tokens)
    assert found.concurrency == tokens / 2048


def test_a_request_of_one_token_more_takes_one_block_more() -> None:
    layout = vllm_layout(read_model("llama-3.1-70b"))
    assert layout.capacity(20 * GIB, 8192, 8192).concurrency == 8
    assert layout.blocks_per_request(8193, 8192) == 513
    assert int(layout.capacity(20 * GIB, 8193, 8192).concurrency) == 7


@pytest.mark.parametrize(
    ("dtype", "length", "concurrency"), [("fp8", 10_000_000, 3.12), ("bf16", 8_388_608, 1.86)]
)
def test_chunked_layers_take_chunk_and_batch_as_a_log_of_llama_4_shows(
    dtype: str, length: int, concurrency: float
) -> None:
    layout = vllm_layout(read_model(SCOUT), cache_dtype=dtype, tp=8)
    found = layout.capacity(int(89.71 * GIB), length, 8192)
    assert round(found.concurrency, 2) == concurrency
    assert abs(found.tokens / (7_838_976 if dtype == "fp8" else 3_919_664) - 1) < 6e-5


def test_windowed_layers_take_window_less_one_plus_batch_and_a_block() -> None:
    layout = vllm_layout(read_model("gpt-oss-20b"))
    assert [group.kind for group in layout.groups] == ["windowed", "full"]
    window_blocks = -(-(128 - 1 + 8192) // 16) + 1
    assert layout.blocks_per_request(131_072, 8192) == 131_072 // 16 + window_blocks


def test_a_block_beside_states_grows_until_its_page_holds_one() -> None:
    layout = vllm_layout(read_model(HYBRID))
    state = 3 * 8192 * 2 + 32 * 128 * 128 * 4
    assert layout.block_size == 16 * -(-state // (16 * 2048))
    assert layout.page_bytes == layout.block_size * 2048 >= state
    assert [group.kind for group in layout.groups] == ["state", "state", "state", "full"]
    assert layout.blocks_per_request(8192, 2048) == 3 + -(-8192 // layout.block_size)


def test_smaller_pages_get_blocks_of_more_tokens() -> None:
    layout = vllm_layout(read_model("gemma-4-26b-a4b"))
    sizes = {group.kind: group.block_size for group in layout.groups}
    assert sizes == {"windowed": 16, "full": 32}
    assert layout.group_size == 5 and len(layout.groups) == 6


def test_gemma_4_31b_gets_the_tokens_that_vllm_printed() -> None:
    """Full layers (8,192 bytes a token) are charged the page of windowed ones (16,384)."""
    full = [LayerStorage(i, "full", 4, 512, 512) for i in range(5, 60, 6)]
    rest = [i for i in range(60) if i % 6 != 5]
    windowed = [LayerStorage(i, "windowed", 16, 256, 256, window=1024) for i in rest]
    layout = vllm_layout(ModelStorage("gemma-4-31b", "gemma4_text", (*windowed, *full)))
    assert layout.capacity(int(24.54 * GIB), 262_144, 8192).tokens == 26_800


def test_pages_that_cannot_be_made_equal_are_refused_in_words() -> None:
    layers = (
        LayerStorage(0, "full", 3, 64, 64),
        LayerStorage(1, "windowed", 2, 64, 64, window=128),
    )
    with pytest.raises(Unsupported, match=r"cannot make pages of .* equal"):
        vllm_layout(ModelStorage("odd", "", layers))


def test_a_latent_and_its_indexer_share_a_block() -> None:
    layout = vllm_layout(read_model("glm-5"), block_size=64)
    assert layout.block_bytes == 64 * 78 * (576 * 2 + 132)


@given(st.integers(1, 40), st.sampled_from([1, 2, 8]), st.integers(1, 5000))
def test_a_charge_is_never_below_the_payload(layers: int, heads: int, tokens: int) -> None:
    model = uniform_model(num_layers=layers, num_kv_heads=heads, head_dim=64)
    charge = vllm_layout(model).request_bytes(tokens, 2048)
    payload = size_request(model, context=tokens).request_bytes
    assert payload <= charge < payload + 16 * layers * heads * 256


# -- llama.cpp -------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "mib"), [("f16", 90.0), ("q8_0", 47.81), ("q4_0", 25.31)])
def test_smollm2_gets_the_cache_that_llama_cpp_printed(dtype: str, mib: float) -> None:
    cache = llama_cpp_bytes(read_model("smollm2"), context=4096, cache_dtype=dtype)
    assert round(cache.kv_bytes / MIB, 2) == mib
    assert (cache.cells, cache.swa_cells) == (4096, 0)
    assert bool(cache.notes) == (dtype != "f16")


def test_slots_share_the_context_and_are_padded() -> None:
    model = read_model("smollm2")
    eight = llama_cpp_bytes(model, context=8192, sequences=8)
    assert eight.kv_bytes / MIB == 180 and eight.cells == 8 * 1024
    assert llama_cpp_bytes(model, context=1000).cells == 1024


def test_windowed_layers_get_window_and_ubatch_cells() -> None:
    model = read_model("gemma-3-1b-it")
    cache = llama_cpp_bytes(model, context=32_768)
    assert cache.swa_cells == 1024
    assert cache.swa_bytes == 22 * 1024 * 512 * 2
    whole = llama_cpp_bytes(model, context=32_768, swa_full=True)
    assert whole.swa_cells == 32_768


def test_states_are_kept_in_fp32_one_slot_a_sequence() -> None:
    one = llama_cpp_bytes(read_model("nemotron-3-nano"), context=256)
    two = llama_cpp_bytes(read_model("nemotron-3-nano"), context=512, sequences=2)
    assert two.state_bytes == 2 * one.state_bytes == 2 * 23 * 4 * (3 * 6144 + 64 * 64 * 128)
    assert one.total_bytes == one.kv_bytes + one.state_bytes
