"""The planner says what the arithmetic says, for its presets and for every model and GPU."""

import pytest

from kvlab.arithmetic.plan_rows import rank_rows
from kvlab.arithmetic.sizing import plan
from kvlab.errors import InvalidArgument
from kvlab.widgets.planner import planner
from kvlab.widgets.planner_inputs import EXAMPLE, PRESETS, TWIN, model_choices

GB = 10**9


def test_it_starts_with_a_plan_of_70b_on_eight_cards() -> None:
    show = planner()
    inputs = {"gpu": "H100", "gpus": 8, "context": 131_072, "overhead_bytes": 3 * GB}
    made = plan("llama-3.1-70b", **inputs)
    assert show.numbers["requests at their peak"] == str(made.admission_bound) == "10"
    assert show.numbers["with the fraction"] == f"{made.concurrency:.2f}"
    assert show.numbers["start"].startswith("vllm serve meta-llama/Llama-3.1-70B ")
    assert "utilization 0.95" in show.numbers["next change"]


def test_each_preset_makes_its_point_and_back_to_the_example_undoes_it() -> None:
    show = planner()
    before = show.numbers
    show.set(**PRESETS["MQA: 92 or 11?"])
    assert show.numbers["requests at their peak"] == "11"
    assert show.numbers["counted as one pool"].startswith("92.")
    assert "copied" in show.numbers["why one pool promises more"]
    show.set(**PRESETS["two cards for DeepSeek-V3"])
    assert show.numbers["requests at their peak"] == "0"
    assert show.numbers["start"] == "nothing: it does not fit"
    show.reset()
    assert show.numbers == before


def test_the_buttons_are_the_presets_and_the_way_back() -> None:
    show = planner()
    bar = show.box.children[0].children
    names = [w.description for w in bar if type(w).__name__ == "Button"]
    assert names == [*PRESETS, "back to the example"]
    next(w for w in bar if w.description == "MQA: 92 or 11?").click()
    assert show.values["model"] == TWIN


def test_a_target_makes_time_bind_though_all_fit() -> None:
    show = planner(context=32_768, overhead=0, tpot=15)
    assert show.numbers["what binds"].startswith("bandwidth binds: 44 request(s) fit")


def test_every_control_changes_the_plan() -> None:
    show = planner()
    other = {"gpu": "H200 SXM", "gpus": 16, "tp": 4, "weights_dtype": "fp8", "cache_dtype": "fp8"}
    other |= {"context": 65_536, "output": 4096, "users": 64, "utilization": 80, "overhead": 8}
    other |= {"ttft": 1, "tpot": 15, "model": "meta-llama/Llama-3.1-8B", "pp": 2}
    for name, value in other.items():
        before = str(show.picture.value)
        fields = {"gpus": 16, "pp": 2} if name == "pp" else {name: value}
        show.set(**fields)
        assert show.picture.value != before, name
        show.reset()


def test_a_layout_that_cannot_be_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    show = planner()
    with pytest.raises(InvalidArgument, match="gpus"):
        show.set(tp=8, gpus=4)
    monkeypatch.setattr("kvlab.widgets.base.strict", lambda: False)
    show.set(tp=8, gpus=4)
    assert "gpus=4: must be a multiple" in show.error.value
    show.set(tp=4)
    assert show.error.value == ""


@pytest.mark.parametrize("model", [model for _, model in model_choices()])
def test_every_model_can_be_planned_on_one_gpu_and_drawn(model: str) -> None:
    show = planner(model=model, gpus=1, tp=1, context=8192)
    assert show.picture.value.count("<svg") == 1
    assert show.error.value == ""


def test_ranks_of_a_stage_say_what_they_keep_and_who_is_a_copy() -> None:
    latents = rank_rows(plan("deepseek-v3", gpu="H200", tp=4, context=1024))
    assert [(row.keeps, row.is_copy) for row in latents][:2] == [
        ("all latents", False),
        ("all latents", True),
    ]
    heads = rank_rows(plan("llama-3.1-8b", gpu="H100", tp=2, pp=2, context=1024))
    assert [row.keeps for row in heads] == 2 * ["KV heads 0 to 3", "KV heads 4 to 7"]
    assert [row.sizes.stage for row in heads] == [0, 0, 1, 1]


def test_the_example_names_every_control() -> None:
    assert set(planner().controls) == set(EXAMPLE)
