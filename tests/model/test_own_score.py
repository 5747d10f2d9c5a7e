"""A rule somebody wrote decides what stays: it sees the right numbers, and faults are named."""

import pytest
import torch

from kvlab.cache.container import KVCache
from kvlab.cache.eviction_observed import HeavyHitterLayer
from kvlab.errors import InvalidArgument
from kvlab.model.load import load_model
from kvlab.model.own_score import OwnScoreLayer, known_score, try_score


def kept_by(layers: list[HeavyHitterLayer]) -> list[list[int]]:
    model, ids = load_model("tiny").model, torch.arange(4, 104)[None] % 250
    cache = KVCache(layers)
    with torch.no_grad():
        for piece in ids.split([60, 1, 39], dim=1):
            model(piece, cache=cache)
    return [head for layer in cache.layers for head in layer.kept_positions()[0].tolist()]


def test_the_sum_as_rule_is_heavy_hitters_without_a_recent_part() -> None:
    ours = kept_by([OwnScoreLayer(20, lambda received, age, key_norm: received) for _ in "ab"])
    assert ours == kept_by([HeavyHitterLayer(20, recent=0) for _ in "ab"])


def test_the_newest_token_is_one_old_and_age_alone_is_the_window() -> None:
    ages = []

    def rule(received, age, key_norm):  # type: ignore[no-untyped-def]
        assert received.shape == age.shape == key_norm.shape
        ages.append(age[0, 0].tolist())
        return -age

    kept = kept_by([OwnScoreLayer(20, rule) for _ in "ab"])
    assert kept == [list(range(80, 100))] * 4
    assert ages[0] == list(range(60, 0, -1))


def test_a_late_fact_has_a_chance_once_age_is_divided_out() -> None:
    assert try_score(lambda received, age, key_norm: received / age).recall > 0.9
    assert known_score("h2o").recall < 0.8
    assert known_score("window").recall == try_score(lambda r, age, n: -age).recall


@pytest.mark.parametrize(
    "rule", [lambda r, a, n: r[..., :-1], lambda r, a, n: r.sum(), lambda r, a, n: r / 0 * 0]
)
def test_what_is_no_number_for_each_token_is_refused(rule) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidArgument, match="score="):
        kept_by([OwnScoreLayer(20, rule) for _ in "ab"])
