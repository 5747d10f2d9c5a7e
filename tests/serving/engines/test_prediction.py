"""The formulas against what real engines printed, to the token; taken from our own runs."""

from pathlib import Path

import numpy as np
import pytest

from kvlab.errors import InvalidArgument, KvlabError, Unsupported
from kvlab.serving.engines import running
from kvlab.serving.engines.environments import Environment
from kvlab.serving.engines.llamacpp import LlamaCppPlan
from kvlab.serving.engines.machine import Machine, can_cache_fp8
from kvlab.serving.engines.transformers_paged import TransformersPlan
from kvlab.serving.engines.vllm import VllmPlan

GIB = 2**30

PRINTED = [
    ({"dtype": "bfloat16", "block_size": 128, "cache_bytes": GIB}, 2048, 364, 46_592, 22.75),
    ({"block_size": 128, "cache_bytes": GIB}, 2048, 182, 23_296, 11.375),
    ({"cache_bytes": 188_743_680}, 1024, 128, 4_096, 4.0),
    ({"cache_bytes": 94_371_840}, 1024, 64, 2_048, 2.0),
    ({"cache_bytes": GIB}, 1024, 728, 23_296, 22.75),
    ({"block_size": 128, "cache_bytes": GIB, "cache_dtype": "fp8"}, 2048, 728, 93_184, 45.5),
]


@pytest.mark.parametrize(("settings", "length", "blocks", "tokens", "concurrency"), PRINTED)
def test_vllms_pool_of_smollm2_is_predicted_to_the_token(
    settings: dict, length: int, blocks: int, tokens: int, concurrency: float
) -> None:
    pool = VllmPlan("smollm2", max_model_len=length, **settings).predict()
    assert (pool.num_blocks, pool.tokens, pool.concurrency) == (blocks, tokens, concurrency)


def test_a_length_that_is_no_whole_blocks_is_printed_as_fewer_tokens() -> None:
    pool = VllmPlan(cache_bytes=188_743_680, max_model_len=1000).predict()
    assert (pool.concurrency, pool.tokens, pool.longest) == (4.0, 4_000, 4_064)


@pytest.mark.parametrize(
    ("model", "tp", "tokens"),
    [
        ("random-8-kv4", 1, 32_768),
        ("random-8-kv4", 2, 65_536),
        ("random-8-kv1", 1, 131_072),
        ("random-8-kv1", 2, 131_072),
    ],
)
def test_four_kv_heads_are_halved_by_two_ranks_and_one_is_not(
    model: str, tp: int, tokens: int
) -> None:
    assert VllmPlan(model, cache_bytes=2**27, tp=tp).predict().tokens == tokens


@pytest.mark.parametrize(("cache_type", "mib"), [("f16", 90.00), ("q8_0", 47.81), ("q4_0", 25.31)])
def test_llama_cpps_cells_of_smollm2_are_predicted_to_the_printed_digit(
    cache_type: str, mib: float
) -> None:
    assert round(LlamaCppPlan(context=4096, cache_type=cache_type).predict().mib, 2) == mib


def test_eight_slots_share_the_cells() -> None:
    cells = LlamaCppPlan(context=8192, slots=8).predict()
    assert (cells.mib, cells.cells, cells.slots) == (180.0, 8192, 8)


def test_too_small_a_pool_is_refused_with_what_would_fit() -> None:
    from kvlab.serving.engines.prediction import check_fits

    pool = VllmPlan(cache_bytes=94_371_840, max_model_len=8192).predict()
    with pytest.raises(InvalidArgument, match=r"8,192 tokens needs 257 blocks .* 2,016 tokens"):
        check_fits(pool)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"block_size": 0}, "block_size=0"),
        ({"dtype": "int8"}, "dtype='int8'"),
        ({"cache_dtype": "q8_0"}, "cache_dtype='q8_0'"),
        ({"tp": True}, "tp=True"),
        ({"cache_bytes": 1.5}, "cache_bytes=1.5"),
    ],
)
def test_a_wrong_setting_is_named(settings: dict, said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        VllmPlan(**settings)


def test_fp8_needs_avx512_or_amx() -> None:
    assert not can_cache_fp8(Machine("a", 2, 0, "Linux", ("avx2",)))
    assert can_cache_fp8(Machine("b", 2, 0, "Linux", ("avx2", "avx512f")))


def test_transformers_pool_of_a_windowed_model_is_not_guessed() -> None:
    with pytest.raises(Unsupported, match="windows"):
        TransformersPlan("tiny-window").predict()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"context": 1, "slots": 4}, "context=1: must be at least 1 cell for each of the 4"),
        ({"slots": 300}, "slots=300: must be 256 or less"),
        ({"context": 10**12}, "context=1000000000000"),
        ({"threads": -1}, "threads=-1"),
        ({"threads": 0}, "threads=0"),
        ({"threads": "a"}, "threads='a'"),
        ({"threads": 10**9}, "threads=1000000000: must be 512 or less"),
        ({"model": 5}, "model=5: must be text"),
    ],
)
def test_a_wrong_setting_of_llama_cpp_is_named(settings: dict, said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        LlamaCppPlan(**settings)


def tiny_gguf(path: Path) -> Path:
    """Write a Llama of two layers, whose tensors hold nothing of use."""
    gguf = pytest.importorskip("gguf")
    writer = gguf.GGUFWriter(path, arch="llama")
    writer.add_block_count(2)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_embedding_length(64)
    writer.add_feed_forward_length(128)
    writer.add_context_length(512)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tensor("token_embd.weight", np.zeros((256, 64), dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_a_gguf_file_is_predicted_from_its_header(tmp_path: Path) -> None:
    path = tiny_gguf(tmp_path / "x.gguf")
    plan = LlamaCppPlan(str(path), context=512)
    # 512 cells x 2 layers x K and V x 2 heads of 16 x 2 bytes
    assert plan.predict().total_bytes == 512 * 2 * 2 * 2 * 16 * 2
    assert str(path) in plan.command(Path("python"), 1234)[-1]
    assert LlamaCppPlan(path).model == str(path)


@pytest.mark.parametrize("name", ["missing.gguf", "broken.gguf", "folder"])
def test_a_model_that_llama_cpp_cannot_take_is_refused_before_it_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "broken.gguf").write_bytes(b"GGUF and no more")
    monkeypatch.setattr(running, "EngineProcess", lambda *_: pytest.fail("it was started"))
    with pytest.raises(KvlabError, match=r"\.gguf"):
        running.start(
            LlamaCppPlan(str(tmp_path / name)),
            environment=Environment("llamacpp", Path("python"), "xllamacpp", "1"),
        )
