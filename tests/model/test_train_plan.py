"""What a training run is: settings refused by name, the curriculum, the batches, the rate."""

import json
from dataclasses import replace
from itertools import pairwise

import pytest

from kvlab.errors import InvalidArgument
from kvlab.model.retrieval_language import min_seq_len
from kvlab.model.train_plan import TrainSettings, batch_for, learning_rate_at
from kvlab.model.train_recipes import CURRICULUM, FIRST_LONG_STAGE, HARD, RECIPES


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"num_kv_heads": 3}, "num_kv_heads"),
        ({"num_kv_heads": 0}, "num_kv_heads"),
        ({"num_heads": 3}, "num_heads"),
        ({"steps": 0}, "steps"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**63}, "seed"),
        ({"num_heads": 128}, "head_dim"),
        ({"threads": 0}, "threads"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"learning_rate": float("nan")}, "learning_rate"),
        ({"pass_recall": 1.5}, "pass_recall"),
        ({"recipe": "soup"}, "recipe"),
        ({"layer_types": ("sliding_attention", "full_attention")}, "sliding_window"),
        ({"sliding_window": 8, "layer_types": ("full_attention",)}, "layer_types"),
    ],
)
def test_settings_that_do_not_fit_are_refused_by_name(change: dict, named: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        TrainSettings(**{"num_kv_heads": 2, **change})
    assert caught.value.argument == named


def test_settings_with_an_unknown_name_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="settings"):
        TrainSettings.from_dict({"num_kv_heads": 2, "colour": "red"})


@pytest.mark.parametrize("name", RECIPES)
def test_a_curriculum_grows_and_each_stage_can_be_made(name: str) -> None:
    stages = RECIPES[name].stages
    for before, after in pairwise(stages):
        assert after.num_facts >= before.num_facts and after.seq_len > before.seq_len
        assert after.num_names >= before.num_names
    for stage in (*stages, HARD):
        assert min_seq_len(stage.num_facts, stage.num_questions) <= stage.seq_len
    assert stages[-1].num_facts == 32


def test_the_recipe_of_the_bundled_model_is_what_it_was() -> None:
    stages = [(s.num_facts, s.seq_len, s.num_questions, s.num_names) for s in CURRICULUM]
    assert RECIPES["tiny"].stages == CURRICULUM and TrainSettings(2).plan == RECIPES["tiny"]
    assert stages[0] == (2, 16, 1, 4) and stages[-1] == (32, 2048, 32, 128)
    assert RECIPES["tiny"].probe_every == 0 and RECIPES["tiny"].log_every == 10


def test_the_slow_twins_differ_in_the_filler_of_the_first_stage_alone() -> None:
    fast, slow = RECIPES["twins"], RECIPES["twins-slow"]
    assert fast.stages[1:] == slow.stages[1:]
    assert replace(fast.stages[0], seq_len=16) == slow.stages[0]
    assert fast.stages[0].seq_len == min_seq_len(2, 1)
    assert replace(fast, stages=()) == replace(slow, stages=())


def test_settings_go_through_json_and_come_back() -> None:
    kinds = ("sliding_attention", "full_attention")
    settings = TrainSettings(2, recipe="twins", sliding_window=8, layer_types=kinds)
    assert TrainSettings.from_dict(json.loads(json.dumps(settings.to_dict()))) == settings
    assert settings.model_config().layer_windows == (8, None)


def test_a_batch_depends_on_seed_and_step_alone_and_holds_the_tokens_asked() -> None:
    settings = TrainSettings(2)
    stage, batch = batch_for(700, len(CURRICULUM) - 1, settings)
    again = batch_for(700, len(CURRICULUM) - 1, settings)
    assert stage == again[0] and (batch.input_ids == again[1].input_ids).all()
    assert batch.input_ids.size == settings.batch_tokens
    assert (batch_for(701, 9, settings)[1].input_ids[:, :256] != batch.input_ids[0, :256]).any()


def test_long_stages_come_back_now_and_then_and_short_ones_never() -> None:
    settings = TrainSettings(2, batch_tokens=16)
    last = len(CURRICULUM) - 1
    drawn = {CURRICULUM.index(batch_for(step, last, settings)[0]) for step in range(60)}
    assert drawn == set(range(FIRST_LONG_STAGE, last + 1))
    assert all(batch_for(step, 3, settings)[0] == CURRICULUM[3] for step in range(20))


def test_the_learning_rate_rises_stays_and_falls() -> None:
    settings = TrainSettings(2, steps=400)
    rates = [learning_rate_at(step, settings) for step in range(400)]
    assert max(rates) == settings.learning_rate and rates[30:300] == [3e-3] * 270
    assert rates[:30] == sorted(rates[:30]) and rates[300:] == sorted(rates[300:], reverse=True)
