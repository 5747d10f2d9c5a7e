"""What sharing heads or a latent takes away, against counts of real weights and published sizes."""

import pytest

from kvlab.arithmetic.cache_cuts import (
    cache_cut,
    fewer_parameters_than_mha,
    kv_projection_parameters,
)
from kvlab.arithmetic.catalogue import find_model, model_shape
from kvlab.arithmetic.storage import uniform_model
from kvlab.errors import InvalidArgument


def test_gqa_has_fewer_parameters_than_its_mha_twin() -> None:
    assert fewer_parameters_than_mha(model_shape("llama-3.1-70b")) == 9_395_240_960
    assert fewer_parameters_than_mha(model_shape("llama-3.1-8b")) == 805_306_368
    assert fewer_parameters_than_mha(model_shape("llama-2-13b")) == 0  # MHA already


def test_the_projections_are_those_that_transformers_builds() -> None:
    import torch
    import transformers

    shape = model_shape("llama-3.1-70b")
    config = transformers.LlamaConfig(**find_model("llama-3.1-70b").config)
    with torch.device("meta"):
        model = transformers.LlamaForCausalLM(config)
    built = sum(
        w.numel()
        for name, w in model.named_parameters()
        if name.endswith(("k_proj.weight", "v_proj.weight"))
    )
    assert built == kv_projection_parameters(shape) > 0


def test_the_published_cut_of_deepseek_v2_is_told_apart() -> None:
    cut = cache_cut("deepseek-ai/deepseek-llm-67b-base", "deepseek-ai/DeepSeek-V2", bits=6)
    assert (cut.before_bytes, cut.after_bytes, cut.stored_bytes) == (389_120, 69_120, 25_920)
    assert round(100 * cut.by_architecture, 1) == 82.2
    assert round(100 * cut.with_bits, 2) == 93.34
    left = cut.layers_factor * cut.layer_factor * cut.bits_factor
    assert left * cut.before_bytes == cut.stored_bytes
    parts = [float(f) for f in (cut.layers_factor, cut.layer_factor, cut.bits_factor)]
    assert parts == pytest.approx([60 / 95, 576 / 2048, 6 / 16])


def test_against_mha_of_its_own_size_a_latent_saves_more_than_against_gqa() -> None:
    mha = uniform_model(num_layers=60, num_kv_heads=128, head_dim=128)
    assert cache_cut(mha, "deepseek-v2").by_architecture == pytest.approx(1 - 576 / 32_768)
    assert cache_cut(mha, mha).by_architecture == cache_cut(mha, mha).with_bits == 0


@pytest.mark.parametrize("bits", [0, -6, "six", float("nan")])
def test_bits_must_be_a_number_above_0(bits: object) -> None:
    with pytest.raises(InvalidArgument, match="bits="):
        cache_cut("deepseek-v2", "deepseek-v2", bits=bits)


def test_kv_heads_must_divide_the_query_heads() -> None:
    with pytest.raises(InvalidArgument, match="num_kv_heads=7: must divide the 64 query heads"):
        kv_projection_parameters(model_shape("llama-3.1-70b"), num_kv_heads=7)
