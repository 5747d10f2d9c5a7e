"""What a cache costs on the bundled model: the measures agree with others, and order the caches.

The inequalities between caches are facts of these weights; the margins are wide.
"""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from tiny_folder import write_folder

from kvlab.cache import GrowingLayer, KVCache, make_cache, transformers_cache
from kvlab.errors import InvalidArgument, Unsupported
from kvlab.model.load import load_model
from kvlab.model.quality import Bench, Quality
from kvlab.model.quality_task import FIRST_SEED
from kvlab.model.retrieval import CHANCE, recall
from kvlab.model.weights import is_available

TINY = load_model("tiny", device="cpu")
BENCH = Bench(TINY, num_sequences=8)  # 512 tokens, 32 facts each; the full cache is run once
FULL_BYTES = 2 * 2 * 2 * 32 * 512 * 4  # K and V, layers, KV heads, head_dim, tokens, float32


@pytest.fixture(scope="module")
def small() -> Bench:
    """A bench that is quick to run."""
    return Bench(TINY, tokens=96, facts=8, num_sequences=4)


def test_the_full_cache_costs_nothing_and_holds_what_the_formula_says() -> None:
    result = BENCH.measure("preallocated")
    assert (result.kl, result.top1) == (0.0, 1.0)
    assert result.recall >= 0.99
    assert result.cache_bytes == result.full_cache_bytes == FULL_BYTES
    assert result.tokens_per_second > 0
    assert (result.model, result.tokens, result.seed, result.dtype) == ("tiny", 512, 0, "float32")


def test_recall_is_that_of_the_function_of_this_name(small: Bench) -> None:
    def window() -> KVCache:
        return make_cache("window", num_layers=2, budget=48)

    task = {"seq_len": 96, "num_facts": 8, "num_sequences": 4, "seed": FIRST_SEED}
    found = small.measure("window", budget="50%")
    assert found.recall == recall(TINY.model, cache=window, **task)
    assert 0.2 < found.recall < 0.9


def test_loss_is_the_cross_entropy_of_the_answers(small: Bench) -> None:
    logits = TINY.model(small.task.input_ids)[:, small.task.answer_positions - 1]
    _, answers = small.task.graded()
    expected = F.cross_entropy(logits.flatten(0, 1), answers.flatten())
    assert small.measure("growing").loss == pytest.approx(float(expected), abs=1e-5)


@pytest.mark.parametrize(
    "name", ["window", "sinks", "h2o", "keynorm", "keydiff", "expected", "random"]
)
def test_a_budget_for_every_token_is_the_full_cache(small: Bench, name: str) -> None:
    result = small.measure(name, budget="100%")
    assert result.kl < 1e-6
    assert (result.top1, result.cache_bytes) == (1.0, result.full_cache_bytes)


@pytest.mark.parametrize("name", ["window", "h2o", "random"])
def test_an_evicting_cache_holds_its_budget_and_no_more(small: Bench, name: str) -> None:
    result = small.measure(name, budget="25%")
    assert result.cache_bytes * 4 == result.full_cache_bytes
    assert (result.label, result.saving) == (f"{name} 25%", 4.0)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("int4", {"residual_length": 0}),
        ("random", {"budget": "50%"}),
        ("h2o", {"budget": 40}),
        ("offloaded", {}),
    ],
)
def test_a_second_run_gives_the_same_digits(name: str, options: dict[str, object]) -> None:
    first, second = (
        Bench(TINY, tokens=96, facts=8, num_sequences=4).measure(name, **options) for _ in range(2)
    )
    assert replace(first, tokens_per_second=0.0) == replace(second, tokens_per_second=0.0)


def test_another_seed_draws_other_sequences_and_keeps_other_tokens(small: Bench) -> None:
    other = Bench(TINY, tokens=96, facts=8, num_sequences=4, seed=1)
    assert other.measure("growing").loss != small.measure("growing").loss
    same_text = [small.measure("random", budget="50%", seed=seed).kl for seed in (0, 1)]
    assert same_text[0] != same_text[1]


def test_a_cache_of_ones_own_is_measured_alike(small: Bench) -> None:
    def mine() -> KVCache:
        return KVCache([GrowingLayer(), GrowingLayer()])

    result = small.measure(mine)
    assert (result.cache, result.kl) == ("mine", 0.0)
    with pytest.raises(InvalidArgument, match="go with a cache's name"):
        small.measure(mine, budget=4)


@torch.no_grad()
def test_our_fp8_costs_what_that_of_transformers_costs(small: Bench) -> None:
    def theirs() -> object:
        return transformers_cache("fp8", num_layers=2)

    try:
        theirs()
    except Unsupported as reason:
        pytest.skip(str(reason))
    ours, other = small.measure("fp8"), small.measure(theirs)
    assert ours.kl > 1e-5
    assert other.kl == pytest.approx(ours.kl, rel=1e-3)
    assert (other.top1, other.recall) == (ours.top1, ours.recall)


def test_a_cache_of_ones_own_reads_prose_too(tmp_path: Path) -> None:
    bench = Bench(load_model(write_folder(tmp_path / "reader"), device="cpu"), tokens=16)

    def mine() -> KVCache:
        return make_cache("growing", num_layers=bench.loaded.model.config.num_layers)

    result = bench.measure(mine)
    assert (result.cache, result.recall, result.seed, result.kl) == ("mine", None, None, 0.0)


def test_layers_may_have_shares_of_their_own(small: Bench) -> None:
    result = small.measure("window", budgets=["50%", 12])
    per_layer_token = result.full_cache_bytes // (2 * 96)
    assert result.cache_bytes == (48 + 12) * per_layer_token


def test_rerotated_positions_need_no_more_than_the_word(small: Bench) -> None:
    kept, turned = (
        small.measure("sinks", budget="25%", positions=positions)
        for positions in ("kept", "rerotated")
    )
    assert turned.kl != kept.kl
    assert turned.cache_bytes == kept.cache_bytes


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("none", {}, "cache='none': keeps nothing"),
        ("int5", {}, "cache='int5': must be one of"),
        ("window", {}, "budget=None: the window cache needs a budget"),
        ("window", {"budget": "0%"}, "budget='0%'"),
        ("sinks", {"budget": "1%"}, "budget=0|budget='1%'"),
        ("int4", {"q_group_size": 7}, "q_group_size=7|must divide"),
    ],
)
def test_what_cannot_be_measured_is_refused_by_name(
    small: Bench, name: str, options: dict[str, object], sentence: str
) -> None:
    with pytest.raises(InvalidArgument, match=sentence):
        small.measure(name, **options)


# -- facts of the bundled model ----------------------------------------------------------------


def test_fp8_recalls_within_half_a_point_of_the_full_cache() -> None:
    assert BENCH.measure("fp8").recall >= BENCH.measure("preallocated").recall - 0.005


def test_scales_for_key_channels_beat_one_scale_for_the_tensor_in_int4() -> None:
    channel, tensor = (BENCH.measure("int4", granularity=kind) for kind in ("channel", "tensor"))
    assert 2 * channel.kl < tensor.kl
    assert channel.recall >= tensor.recall


def test_fewer_bits_cost_more_and_two_bits_break_the_logits() -> None:
    bits = [BENCH.measure(name, residual_length=0) for name in ("int8", "int4", "int2")]
    eight, four, two = (result.kl for result in bits)
    assert 10 * eight < four and 10 * four < two
    assert bits[2].recall < bits[1].recall - 0.05


def test_what_must_be_recalled_decides_what_may_be_evicted() -> None:
    kept = {name: BENCH.measure(name, budget="25%") for name in ("window", "h2o", "keynorm")}
    assert abs(kept["window"].recall - 0.2) < 0.1  # the share of facts that lie in the window
    assert kept["h2o"].recall > kept["window"].recall + 0.3
    assert kept["keynorm"].recall < 3 * CHANCE  # here the facts are the keys of large norm


@pytest.mark.weights
@pytest.mark.skipif(not is_available("smollm2"), reason="SmolLM2 is not here")
def test_on_real_language_int4_wants_its_key_scales_by_channel() -> None:
    bench = Bench("smollm2", tokens=64, num_sequences=1)
    results: list[Quality] = [
        bench.measure("int4", residual_length=0, key_granularity=kind)
        for kind in ("channel", "tensor")
    ]
    assert 3 * results[0].kl < results[1].kl
    assert (results[0].recall, results[0].seed) == (None, None)
    assert results[0].perplexity == pytest.approx(torch.tensor(results[0].loss).exp().item())
