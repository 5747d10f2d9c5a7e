"""The memory bar's sums are the planner's, to the byte, over a grid of inputs."""

from itertools import product
from typing import Any

from site_page import SitePage

from kvlab.arithmetic.catalogue import find_model
from kvlab.arithmetic.plan_pooled import pooled_plan
from kvlab.arithmetic.sizing import plan
from tools.site.live_memory import DTYPES, EXAMPLE, NOMINAL, PRESETS, memory_models

MODELS = {model["name"]: model for model in memory_models()}
SUMS = """rows => rows.map(([name, heads, type, weights, context, users, tp, card, overhead]) => {
  const model = kvlab.memoryData.models.find(one => one.name === name), t = kvlab.memoryData.dtypes;
  const s = kvlab.memorySums(model, heads, t[type], t[weights], context, users, tp, card, overhead);
  return [s.token, s.tokenOnRank, s.request, s.requestOnRank, s.weights, s.left, s.fit, s.pooled,
          s.parameters].map(String);
})"""
Row = tuple[str, int, str, str, int, int, int, int, int]


def planned(row: Row) -> list[str]:
    """Return the same sums by the planner."""
    name, heads, cache, weights, context, users, tp, card, overhead = row
    config = {**find_model(name).config, "num_key_value_heads": heads}
    made = plan(
        config, gpu_bytes=card, gpus=tp, tp=tp, context=context, users=users, utilization=1,
        overhead_bytes=overhead, cache_dtype=cache, weights_dtype=weights,
    )  # fmt: skip
    rank, whole = made.tightest, made.inputs.deployment.request(context).whole
    pooled = int(pooled_plan(made).pooled)
    parameters = made.inputs.deployment.weights.parameters
    numbers: list[Any] = [
        whole.bytes_per_token, rank.bytes_per_token, whole.request_bytes, rank.request_bytes,
        rank.weight_bytes, rank.left_bytes, rank.admission_bound, pooled, parameters,
    ]  # fmt: skip
    return [str(number) for number in numbers]


def grid() -> list[Row]:
    """Return rows over models, KV heads, types, lengths, users, ranks, cards and overheads."""
    rows: list[Row] = []
    for number, model in enumerate(MODELS.values()):
        heads = [h for h in (1, 2, 8, model["kvHeads"], model["heads"]) if model["heads"] % h == 0]
        ranks = [tp for tp in (1, 2, 4, 8, 16) if model["heads"] % tp == 0]
        for place, (count, tp) in enumerate(product(dict.fromkeys(heads), ranks)):
            turn = number + place
            rows.append((
                model["name"], count, DTYPES[turn % len(DTYPES)],
                ("bf16", "fp32", "fp8", "int4")[turn % 4],
                (128, 8192, 131_072, 2**20)[turn % 4], (1, 24, 256)[turn % 3], tp,
                (24 * 10**9, NOMINAL[1], 85_520_809_984)[turn % 3], (0, 2 * 10**9)[turn % 2],
            ))  # fmt: skip
    return rows


def test_the_sums_in_the_page_are_the_planners(tab: SitePage) -> None:
    rows = grid()
    assert len(MODELS) >= 10 and len(rows) > 200
    assert {row[2] for row in rows} == set(DTYPES)
    page = tab.goto("03_memory_formula.html")
    got = page.evaluate(SUMS, [list(row) for row in rows])
    differ = [(r, a, b) for r, a in zip(rows, got, strict=True) if a != (b := planned(r))]
    assert differ == []


def test_one_kv_head_on_eight_ranks_promises_92_and_holds_11(tab: SitePage) -> None:
    page = tab.goto("03_memory_formula.html")
    page.get_by_role("button", name="MQA on eight ranks").click()
    numbers = page.locator(".memory .numbers").inner_text()
    both = planned(("Llama-3.1-70B", 1, "bf16", "bf16", 131_072, 11, 8, NOMINAL[1], 0))
    assert (both[6], both[7]) == ("11", "92")
    assert "users that fit\n11" in numbers and "92 users" in numbers


def test_a_factor_moves_the_bar_and_the_example_comes_back(tab: SitePage) -> None:
    page = tab.goto("03_memory_formula.html")
    bar = page.locator(".memory .stage svg")
    first = bar.get_attribute("aria-label")
    assert f"{EXAMPLE['users']} x 8,192 tokens" in first
    page.locator("[data-name=users]").focus()
    page.keyboard.press("End")
    assert "It does not fit." in bar.get_attribute("aria-label")
    page.locator("[data-name=guess]").fill("20 GiB")
    assert "guess: 20 GiB" in bar.text_content()
    page.locator("[data-name=guess]").fill("many")
    assert "guess" not in bar.text_content()
    page.get_by_role("button", name="back to the example").click()
    assert bar.get_attribute("aria-label") == first
    assert tab.problems == []


def test_every_preset_names_what_is_there() -> None:
    for preset in PRESETS.values():
        model = MODELS[preset["model"]]
        assert model["heads"] % preset["kvHeads"] == 0 and model["heads"] % preset["tp"] == 0
        assert preset["dtype"] in DTYPES
