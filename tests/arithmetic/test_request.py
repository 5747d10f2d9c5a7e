"""Sizes of requests: well-known examples, ranks, and what must hold for any model."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlab.arithmetic.dtypes import CACHE_DTYPES
from kvlab.arithmetic.ranks import split_layers, stage_sizes
from kvlab.arithmetic.reader import read_model
from kvlab.arithmetic.request import RequestSize, size_request
from kvlab.arithmetic.storage import LayerStorage, ModelStorage, uniform_model
from kvlab.arithmetic.units import GIB

KIB = 1024


def sized(name: str, **options: Any) -> RequestSize:
    return size_request(read_model(name), **({"context": 1} | options))


# -- examples that everybody quotes ----------------------------------------------------------


def test_llama_70b_costs_what_is_known() -> None:
    assert sized("llama-3.1-70b").bytes_per_token == 327_680
    assert sized("llama-3.1-70b", context=8192).kv_bytes == int(2.5 * GIB)
    assert sized("llama-3.1-70b", context=131_072).kv_bytes == 40 * GIB
    assert sized("llama-3.1-70b", context=8192, batch=4).kv_bytes == 10 * GIB
    twin = uniform_model(num_layers=80, num_kv_heads=64, head_dim=128)
    assert size_request(twin, context=1).bytes_per_token == 2_621_440


def test_llama_8b_costs_what_is_known() -> None:
    assert sized("llama-3.1-8b").bytes_per_token == 131_072
    found = [sized("llama-3.1-8b", context=n * KIB).kv_bytes / GIB for n in (2, 8, 32, 128)]
    assert found == [0.25, 1, 4, 16]


@pytest.mark.parametrize(
    ("budget", "requests"), [(62 * GIB, [248, 62, 15, 3]), (62 * 10**9, [230, 57, 14, 3])]
)
def test_62_units_of_memory_hold_different_numbers_of_requests(
    budget: int, requests: list[int]
) -> None:
    sizes = [sized("llama-3.1-8b", context=n * KIB).kv_bytes for n in (2, 8, 32, 128)]
    assert [budget // size for size in sizes] == requests


def test_eight_sequences_of_9216_positions_do_not_fit_in_20_gib() -> None:
    need = sized("llama-3.1-70b", context=9216, batch=8).request_bytes
    assert need == 22.5 * GIB
    assert 20 * GIB // sized("llama-3.1-70b", context=9216).request_bytes == 7


def test_more_ranks_than_kv_heads_copy_a_head() -> None:
    found = [sized("llama-3.1-70b", tp=tp).bytes_per_token_per_rank for tp in (1, 2, 8, 16, 32)]
    assert found == [327_680, 163_840, 40_960, 40_960, 40_960]
    assert "heads are copied" in " ".join(sized("llama-3.1-70b", tp=16).notes)


def test_latents_are_whole_on_every_rank() -> None:
    found = {sized("deepseek-v3", tp=tp).bytes_per_token_per_rank for tp in (1, 2, 4, 8)}
    assert found == {70_272}
    assert "latents" in " ".join(sized("deepseek-v3", tp=8).notes)
    latent = sized("deepseek-v3", context=32_768, cache_dtype="q8_0").kv_bytes
    assert latent / 2**20 == 1166.625


def test_a_tp_that_engines_refuse_is_said_aloud() -> None:
    model = uniform_model(num_layers=2, num_kv_heads=4, head_dim=8, num_heads=12)
    size = size_request(model, context=10, tp=6)
    assert "engines refuse" in " ".join(size.notes)
    assert size.bytes_per_token_per_rank == 2 * 2 * 2 * 8


def test_windowed_layers_need_little_and_are_reserved_in_full() -> None:
    size = sized("gpt-oss-20b", context=8192, batch=32)
    assert size.kv_bytes == 6.09375 * GIB
    assert size.reserved_bytes == 12 * GIB
    short = sized("gpt-oss-20b", context=64)
    assert short.kv_bytes == short.reserved_bytes == 24 * 64 * 2048


def test_states_sources_and_indexers_are_counted_apart() -> None:
    hybrid = sized("nemotron-3-nano", context=1000)
    assert hybrid.state_bytes == 23 * (4 * 6144 * 2 + 64 * 64 * 128 * 4)
    vision = sized("llama-3.2-90b-vision", context=10, source_length=6404)
    assert vision.cross_bytes == 20 * 6404 * 4096
    assert "give source_length" in " ".join(sized("llama-3.2-90b-vision").notes)
    sparse = sized("glm-5", context=100)
    assert (sparse.kv_bytes, sparse.index_bytes) == (78 * 576 * 200, 78 * 128 * 200)
    assert sparse.request_bytes == sparse.kv_bytes + sparse.index_bytes


def test_the_dtype_of_weights_never_enters() -> None:
    config = {"num_hidden_layers": 2, "num_attention_heads": 8, "hidden_size": 64}
    packed = config | {"torch_dtype": "int8", "quantization_config": {"bits": 4}}
    sizes = [size_request(read_model(c), context=9) for c in (config, packed)]
    assert sizes[0].kv_bytes == sizes[1].kv_bytes


def test_the_pipeline_is_as_tight_as_its_largest_stage() -> None:
    assert stage_sizes(61, 4) == (15, 15, 16, 15)
    size = sized("deepseek-v3", pp=4)
    assert size.bytes_per_token_per_rank == 16 * 1152
    assert sum(stage.kv_bytes for stage in size.stages) == size.kv_bytes


def test_a_trillion_tokens_are_an_exact_number() -> None:
    assert sized("llama-3.1-70b", context=10**12).kv_bytes == 327_680 * 10**12
    assert sized("llama-3.1-70b", context=10**18).kv_bytes == 327_680 * 10**18


# -- what must hold for any model ------------------------------------------------------------

HEADS = st.sampled_from([1, 2, 4, 8])
WIDTHS = st.sampled_from([32, 64, 96, 128])
DTYPES = st.sampled_from(sorted(CACHE_DTYPES))
BY_BITS = sorted(CACHE_DTYPES.values(), key=lambda dtype: dtype.bits_per_element)


@st.composite
def models(draw: st.DrawFn) -> ModelStorage:
    """A model of layers of any kind, as no real model mixes them."""
    layers = []
    for index in range(draw(st.integers(1, 6))):
        kind = draw(st.sampled_from(["full", "windowed", "chunked", "latent", "none", "shared"]))
        window = draw(st.integers(1, 50)) if kind in ("windowed", "chunked") else None
        stores = kind not in ("none", "shared")
        heads = (1 if kind == "latent" else draw(HEADS)) if stores else 0
        width = draw(WIDTHS) if stores else 0
        layers.append(LayerStorage(index, kind, heads, width, width, window))
    return ModelStorage("any", "", tuple(layers), num_heads=64)


@given(models(), DTYPES, st.integers(1, 200), st.integers(1, 9))
def test_memory_never_falls_with_tokens_or_batch(
    model: ModelStorage, dtype: str, tokens: int, batch: int
) -> None:
    size = size_request(model, context=tokens, batch=batch, cache_dtype=dtype)
    longer = size_request(model, context=tokens + 1, batch=batch, cache_dtype=dtype)
    more = size_request(model, context=tokens, batch=batch + 1, cache_dtype=dtype)
    assert size.request_bytes <= longer.request_bytes
    assert size.request_bytes <= more.request_bytes
    assert size.request_bytes <= size.reserved_bytes


@given(models(), st.integers(1, 200))
def test_memory_never_falls_with_the_bits_of_an_element(model: ModelStorage, tokens: int) -> None:
    sizes = [size_request(model, context=tokens, cache_dtype=d).kv_bytes for d in BY_BITS]
    assert sizes == sorted(sizes)


@given(st.integers(1, 20), HEADS, WIDTHS, st.integers(1, 300), DTYPES)
def test_memory_never_falls_with_layers_heads_or_width(
    layers: int, heads: int, width: int, tokens: int, dtype: str
) -> None:
    def size(num_layers: int, num_kv_heads: int, head_dim: int) -> int:
        model = uniform_model(num_layers=num_layers, num_kv_heads=num_kv_heads, head_dim=head_dim)
        return size_request(model, context=tokens, cache_dtype=dtype).request_bytes

    base = size(layers, heads, width)
    assert base <= size(layers + 1, heads, width)
    assert base <= size(layers, heads + 1, width)
    assert base <= size(layers, heads, width + 1)


@given(models(), DTYPES, st.integers(1, 100), st.sampled_from([1, 2, 3]))
def test_a_rank_never_keeps_more_when_there_are_more_ranks(
    model: ModelStorage, dtype: str, tokens: int, pp: int
) -> None:
    stages = min(pp, model.num_layers)
    sizes = [
        size_request(model, context=tokens, cache_dtype=dtype, tp=tp, pp=stages)
        for tp in (1, 2, 4, 8, 16, 32, 64)
    ]
    per_rank = [size.request_bytes_per_rank for size in sizes]
    assert per_rank == sorted(per_rank, reverse=True)
    for size, tp in zip(sizes, (1, 2, 4, 8, 16, 32, 64), strict=True):
        assert tp * sum(stage.request_bytes for stage in size.stages) >= size.request_bytes


@given(st.sampled_from([8, 16, 32, 64]), st.integers(1, 100), st.integers(0, 64))
def test_query_heads_and_experts_change_nothing(heads: int, tokens: int, experts: int) -> None:
    config = {"num_hidden_layers": 3, "num_key_value_heads": 8, "head_dim": 32}
    config |= {"num_attention_heads": heads, "hidden_size": 7, "num_experts": experts}
    size = size_request(read_model(config), context=tokens)
    assert size.kv_bytes == 3 * tokens * 2 * 8 * 32 * 2


@given(models(), st.integers(1, 6))
def test_stages_hold_every_layer_once(model: ModelStorage, pp: int) -> None:
    stages = split_layers(model, min(pp, model.num_layers))
    assert tuple(layer for stage in stages for layer in stage) == model.layers
