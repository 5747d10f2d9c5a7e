"""Weights: counted from a config, equal to the catalogue and transformers; then by rank."""

from typing import Any

import pytest

from kvlab.arithmetic.catalogue import CatalogueRow, find_model, load_models
from kvlab.arithmetic.plan_dense import COMPUTED, DENSE_FAMILIES, read_weights
from kvlab.arithmetic.plan_deployment import Deployment
from kvlab.errors import InvalidArgument

DENSE = [row for row in load_models() if row.config["model_type"] in DENSE_FAMILIES]
SIZES = {
    "num_hidden_layers": 3,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "vocab_size": 101,
    "pad_token_id": 0,
}


@pytest.mark.parametrize("row", DENSE, ids=lambda row: row.id)
def test_a_dense_model_has_the_parameters_of_the_catalogue(row: CatalogueRow) -> None:
    weights = read_weights(dict(row.config))
    assert weights.source == COMPUTED
    assert weights.parameters == row.parameters
    assert weights.total_bytes("bf16") == 2 * row.parameters


@pytest.mark.slow
@pytest.mark.parametrize("family", sorted(DENSE_FAMILIES))
@pytest.mark.parametrize("options", [{}, {"attention_bias": True}, {"tie_word_embeddings": True}])
def test_a_dense_model_has_the_parameters_of_transformers(
    family: str, options: dict[str, bool]
) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    config = transformers.AutoConfig.for_model(family, **SIZES, **options)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    if "attention_bias" in options and not any("q_proj.bias" in n for n in _names(model)):
        pytest.skip("this family ignores attention_bias")
    expected = sum(parameter.numel() for parameter in model.parameters())
    raw = {**SIZES, **options, "model_type": family}
    raw.setdefault("tie_word_embeddings", config.tie_word_embeddings)
    assert read_weights(raw).parameters == expected


def _names(model: Any) -> list[str]:
    return [name for name, _ in model.named_parameters()]


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("mixtral-8x7b", 12.9),
        ("deepseek-v3", 37.6),
        ("qwen/qwen3-235b-a22b", 22.2),
        ("kimi-k2", 32.9),
        ("llama-4-maverick", 17.2),
        ("llama-4-scout", 17.2),
        ("mixtral-8x22b", 39.2),
        ("nemotron-3-nano", 3.6),
    ],
)
def test_the_parameters_that_a_token_uses_are_those_that_the_models_are_known_for(
    name: str, billions: float
) -> None:
    weights = read_weights(name)
    assert weights.experts is not None
    active = weights.parameters - weights.experts.idle
    assert active / 1e9 == pytest.approx(billions, abs=0.06)


def test_experts_are_read_by_the_batch() -> None:
    experts = read_weights("deepseek-v3").experts
    assert experts is not None
    shares = [experts.share_read(n) for n in (1, 8, 64, 512)]
    assert shares[0] == pytest.approx(8 / 256)
    assert shares == sorted(shares) and shares[-1] > 0.999


@pytest.mark.parametrize("tp", [1, 2, 4, 8])
def test_eight_kv_heads_split_evenly_and_only_norms_are_copied(tp: int) -> None:
    one = Deployment.of("llama-3.1-70b").weight_bytes[0]
    rank = Deployment.of("llama-3.1-70b", tp=tp).weight_bytes[0]
    norms = 2 * (80 * 2 * 8192 + 8192)
    assert tp * rank == one + (tp - 1) * norms


def test_a_rank_holds_the_projections_of_the_head_it_copies() -> None:
    eight = Deployment.of("llama-3.1-70b", tp=8).weight_bytes[0]
    sixteen = Deployment.of("llama-3.1-70b", tp=16).weight_bytes[0]
    projections = 2 * 80 * 2 * 8192 * 128
    norms = 2 * (80 * 2 * 8192 + 8192)
    assert 2 * (sixteen - projections - norms) == eight - projections - norms


def test_a_tied_embedding_is_held_by_the_first_and_the_last_stage() -> None:
    one, stages = (Deployment.of("smollm2", pp=pp).weight_bytes for pp in (1, 2))
    table = 2 * 49_152 * 576
    assert sum(stages) == one[0] + table


def test_quantised_weights_keep_embedding_head_and_norms_in_16_bit() -> None:
    weights = read_weights("llama-3.1-8b")
    tables = 2 * 128_256 * 4096
    norms = (2 * 32 + 1) * 4096
    rest = weights.parameters - tables - norms
    assert weights.total_bytes("int4") == rest // 2 + 2 * (tables + norms)


def test_fewer_parameters_than_the_tables_hold_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="parameters=1000"):
        read_weights("deepseek-v3", parameters=1000)


def test_a_catalogue_count_is_found_by_config_too() -> None:
    row = find_model("deepseek-v3")
    assert read_weights(dict(row.config)).parameters == row.parameters
