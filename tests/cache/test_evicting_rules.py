"""Each rule keeps the tokens that its own sentence says, told again in plain loops."""

import pytest
import torch
from masked_llama import cached_run, masked_run, random_ids, tiny_llama
from torch import Tensor

from kvlab.cache import KVCache
from kvlab.cache.evicting import EvictingLayer
from kvlab.cache.eviction_observed import ExpectedLayer, HeavyHitterLayer
from kvlab.cache.eviction_scores import (
    KeyDiffLayer,
    KeyNormLayer,
    RandomLayer,
    SinksLayer,
    WindowLayer,
    uniform,
)

CHUNKS = [9, 1, 4, 1, 1]


def random_states(length: int, seed: int = 0) -> Tensor:
    """Return (1, 2, length, 8) random keys or values."""
    return torch.randn(1, 2, length, 8, generator=torch.Generator().manual_seed(seed))


def fed(layer: EvictingLayer, states: Tensor, chunks: list[int]) -> list[list[int]]:
    """Return the positions kept in each of the two heads after all chunks."""
    for piece in states.split(chunks, dim=2):
        layer.update(piece, piece)
    return layer.kept_positions()[0].tolist()


@pytest.mark.parametrize("chunks", [[16], [1] * 16, CHUNKS], ids=str)
def test_window_and_sinks_keep_the_same_whatever_the_chunking(chunks: list[int]) -> None:
    states = random_states(16)
    assert fed(WindowLayer(5), states, chunks) == [[11, 12, 13, 14, 15]] * 2
    sinks = SinksLayer(5, num_sink_tokens=2)
    assert fed(sinks, states, chunks) == [[0, 1, 13, 14, 15]] * 2
    assert torch.equal(sinks.keys, states[:, :, [0, 1, 13, 14, 15]])
    assert torch.equal(sinks.values, states[:, :, [0, 1, 13, 14, 15]])


@pytest.mark.parametrize("chunks", [[16], [1] * 16, CHUNKS], ids=str)
def test_keynorm_keeps_the_shortest_keys_of_each_head(chunks: list[int]) -> None:
    states = random_states(16)
    norms = states[0].norm(dim=-1)
    shortest = [sorted(row.argsort()[:5].tolist()) for row in norms]
    assert shortest[0] != shortest[1]
    assert fed(KeyNormLayer(5), states, chunks) == shortest
    kept = fed(KeyNormLayer(6, num_sink_tokens=1, recent=3), states, [16])
    for row, norm in zip(kept, norms, strict=True):
        shortest_between = (1 + norm[1:13].argsort()[:2]).sort().values.tolist()
        assert row == [0, *shortest_between, 13, 14, 15]


def test_keydiff_drops_the_keys_most_like_the_mean() -> None:
    states = random_states(16)
    unit = states[0] / states[0].norm(dim=-1, keepdim=True)
    expected = []
    for head in unit:
        mean = head.mean(dim=0)
        cosine = [float(key @ mean / mean.norm()) for key in head]
        expected.append(sorted(sorted(range(16), key=cosine.__getitem__)[:5]))
    assert fed(KeyDiffLayer(5), states, [16]) == expected


@pytest.mark.parametrize("chunks", [[40], [1] * 40, [25, 1, 14]], ids=str)
def test_random_is_one_choice_for_each_seed_whatever_the_chunking(chunks: list[int]) -> None:
    states = random_states(40)
    kept = fed(RandomLayer(10, seed=1), states, chunks)
    numbers = [
        [float(uniform(torch.tensor(t), torch.tensor(h), 1)) for t in range(40)] for h in (0, 1)
    ]
    assert kept == [sorted(sorted(range(40), key=row.__getitem__)[-10:]) for row in numbers]
    assert kept[0] != kept[1]
    assert kept != fed(RandomLayer(10, seed=2), states, chunks)


def test_random_keeps_every_token_equally_often() -> None:
    seeds, tokens, budget = 2000, 20, 5
    numbers = torch.stack(
        [uniform(torch.arange(tokens), torch.tensor(0), seed) for seed in range(seeds)]
    )
    assert numbers.min() >= 0 and numbers.max() < 1
    kept = torch.zeros(tokens)
    for row in numbers:
        kept[row.topk(budget).indices] += 1
    expected, spread = seeds * budget / tokens, (seeds * 0.25 * 0.75) ** 0.5
    assert (kept - expected).abs().max() < 4 * spread
    assert (numbers[:, :-1] * numbers[:, 1:]).mean() == pytest.approx(0.25, abs=0.01)
    assert (numbers[:-1] * numbers[1:]).mean() == pytest.approx(0.25, abs=0.01)


def test_h2o_keeps_what_drew_most_attention_and_the_newest() -> None:
    model, ids, budget, recent, sinks = tiny_llama(), random_ids(1, 16), 7, 3, 1
    layers = [HeavyHitterLayer(budget, recent=recent, num_sink_tokens=sinks) for _ in range(3)]
    run = cached_run(model, ids, CHUNKS, KVCache(layers))
    weights = masked_run(model, ids, run.allowed).weights
    for layer in range(3):
        for head in range(2):  # each read by two query heads
            got = weights[layer][0, 2 * head : 2 * head + 2].sum(dim=0)  # (queries, keys)
            kept: list[int] = []
            score, start = dict.fromkeys(range(16), 0.0), 0
            for chunk, after in zip(CHUNKS, run.kept[layer], strict=True):
                kept = [*kept, *range(start, start + chunk)]
                for token in kept:
                    score[token] += float(got[start : start + chunk, token].sum())
                start += chunk
                safe = {token for token in kept if token < sinks} | set(kept[-recent:])
                others = sorted(set(kept) - safe, key=lambda t, s=score: -s[t])
                kept = sorted([*safe, *others[: budget - len(safe)]])
                assert after[0, head].tolist() == kept
    assert torch.equal(layers[0].scores.isfinite(), torch.ones(1, 2, budget, dtype=torch.bool))


@pytest.mark.parametrize("average", [False, True])
def test_e05_the_kept_set_of_h2o_does_not_freeze_at_the_prompt(average: bool) -> None:
    model = tiny_llama().init_weights(7, std=0.4)  # attention with peaks, as trained models have
    layers = [HeavyHitterLayer(14, num_sink_tokens=2, recent=4, average=average) for _ in range(3)]
    cache, ids = KVCache(layers), random_ids(1, 63)
    model(ids[:, :20], cache=cache)
    between: list[set[int]] = []  # tokens that are neither sinks nor among the newest 4
    for step in range(20, 63):  # 43 decode steps
        model(ids[:, step : step + 1], cache=cache)
        rows = [row for layer in layers for row in layer.kept_positions()[0].tolist()]
        for row in rows:
            assert len(row) == 14
            assert row[:2] == [0, 1] and row[-4:] == list(range(step - 3, step + 1))
        between.append({token for row in rows for token in row[2:-4]})
    assert len({frozenset(tokens) for tokens in between}) > 5  # it keeps changing
    assert max(between[-1]) > 30  # tokens of the answer have made their way in
    drawn = [layer.scores[..., 2:-4] for layer in layers]
    assert min(scores.min() for scores in drawn) > 0


def test_h2o_by_average_divides_by_the_queries_that_could_see_a_token() -> None:
    layer, sums = HeavyHitterLayer(4, recent=0, average=True), HeavyHitterLayer(4, recent=0)
    states = torch.zeros(1, 1, 5, 8)
    weights = torch.tensor([5.0, 4.4, 0.9, 0.8, 0.7]).expand(1, 1, 1, 5)  # a mean of 1 and 1.1 ...
    for each in (layer, sums):
        each.update(states, states)
        each.observe(weights)
    assert sums.kept_positions()[0, 0].tolist() == [0, 1, 2, 3]  # least in sum: token 4
    assert layer.kept_positions()[0, 0].tolist() == [0, 1, 3, 4]  # least of its queries: 0.9 / 3


def test_expected_scores_equal_the_mean_weight_under_a_normal_distribution() -> None:
    layer, queries = ExpectedLayer(16), torch.randn(1, 4, 9, 8)
    keys, values = random_states(9), random_states(9, seed=1)
    layer.update(keys, values)
    layer.observe_queries(queries)
    for head in range(2):
        total = torch.zeros(9)
        for query_head in (2 * head, 2 * head + 1):
            seen = queries[0, query_head]
            mean, cov = seen.mean(dim=0), torch.cov(seen.T, correction=0)
            logit = torch.tensor(
                [float(k @ mean / 8**0.5 + k @ cov @ k / (2 * 8)) for k in keys[0, head]]
            )
            total += logit.softmax(dim=0) / 2
        expected = total * values[0, head].norm(dim=-1)
        torch.testing.assert_close(layer.score()[0, head], expected, rtol=1e-4, atol=1e-5)


def test_expected_counts_queries_over_all_calls() -> None:
    queries, keys = torch.randn(1, 4, 9, 8), random_states(9)
    once, twice = ExpectedLayer(16), ExpectedLayer(16)
    once.update(keys, keys)
    once.observe_queries(queries)
    for piece, seen in zip(keys.split([4, 5], dim=2), queries.split([4, 5], dim=2), strict=True):
        twice.update(piece, piece)
        twice.observe_queries(seen)
    torch.testing.assert_close(once.score(), twice.score())
