"""Every preset of every demo, applied without a browser; what they say is computed again here."""

import re
from functools import lru_cache

import pytest

from kvlab.arithmetic.catalogue import find_model
from kvlab.arithmetic.flops import token_forwards_cached, token_forwards_uncached
from kvlab.arithmetic.plan_deployment import Deployment
from kvlab.demo import show_race
from kvlab.demo.registry import DEMOS, find_demo
from kvlab.demo.session import Session
from kvlab.model.weights import is_available
from kvlab.paging.contiguous import ContiguousManager
from kvlab.paging.stream import make_stream, run_stream
from kvlab.widgets.allocation_race import COUNT, LONGEST, NUM_SLOTS, STREAMS
from kvlab.widgets.allocator_show import clock

EVERY = [
    pytest.param(
        demo.name,
        preset.name,
        id=f"{demo.name}-{preset.name}",
        marks=[pytest.mark.weights] if "SmolLM2" in preset.name else [],
    )
    for demo in DEMOS
    for stage in demo.stages
    for preset in stage.presets
]
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


@lru_cache(maxsize=1)
def session_of(name: str) -> Session:
    return Session(find_demo(name))


@pytest.fixture(autouse=True)
def short_races(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(show_race.NEW_TOKENS, "smollm2", 4)
    monkeypatch.setitem(show_race.NEW_TOKENS, "tiny", 12)


def numbers_in(text: str) -> list[str]:
    return [found.rstrip(",.") for found in NUMBER.findall(text)]


@pytest.mark.parametrize(("demo", "name"), EVERY)
def test_a_preset_gives_a_picture_and_a_sentence_of_computed_numbers(demo: str, name: str) -> None:
    if "SmolLM2" in name and not is_available("smollm2"):
        pytest.skip("SmolLM2 is not here")
    session = session_of(demo)
    state = session.preset(name)
    preset, widget = session.chosen, session.widget
    assert (state["error"], state["preset"]) == ("", name)
    if demo == "questions":  # plain text, which needs no other words for it
        assert state["picture"].startswith("<div") and "<svg" not in state["picture"]
    else:
        assert re.match(r'<(svg|div) [^>]*role="(img|group)"', state["picture"])
        assert re.search(r'aria-label="[^"]{12,}"', state["picture"])
    assert state["sentence"] and "{" not in state["sentence"]
    if preset.asks:
        assert state["numbers"] == [], "nothing is told before the class has looked"
        state = session.change("reveal")
        assert state["numbers"] and state["sentence"] != preset.asks
    shown = [*widget.numbers.values(), *preset.facts(widget).values()]
    shown += [str(control.get("words", control.get("value"))) for control in state["controls"]]
    shown += [row for control in state["controls"] for row in control.get("options", [])]
    assert set(numbers_in(state["sentence"])) <= set(numbers_in(" ; ".join(shown)))


def test_one_kv_head_on_eight_gpus_holds_11_users_where_a_pool_promises_92() -> None:
    session = Session(find_demo("memory-bar"))
    asked = session.preset("MQA: 92 or 11?")
    each = 2 * 80 * 1 * 128 * 2 * 131_072  # keys and values, layers, heads, head_dim, bytes, tokens
    twin = {**find_model("llama-3.1-70b").config, "num_key_value_heads": 1}
    left = 80 * 10**9 - Deployment.of(twin, tp=8).weight_bytes[0]
    assert (left // each, 8 * left // each) == (11, 92)
    assert "guess: 92 users" in asked["picture"] and "11 users" not in asked["picture"]
    assert "92 users fit: the ghost" in asked["sentence"]
    told = session.change("reveal")
    assert told["sentence"].startswith("11 fit, not 92: each of 8 GPUs")
    assert dict(told["numbers"])["users that fit"] == "11"
    assert "the GPU ends here: 80.0 GB" in told["picture"]


def test_the_published_table_is_half_of_the_truth_in_every_row() -> None:
    session = Session(find_demo("memory-bar"))
    session.preset("Published 8B table against truth")
    true_mib = {n: 2 * 32 * 8 * 128 * 2 * n // 2**20 for n in (2048, 8192, 32_768, 131_072)}
    assert [62 * 1024 // size for size in true_mib.values()] == [248, 62, 15, 3]
    told = session.change("reveal")
    assert told["sentence"].startswith("It is 16,384 MiB: the table is 2 times too small")
    assert told["sentence"].endswith("lets 496 / 124 / 31 / 7 users in, and 248 / 62 / 15 / 3 fit.")
    assert true_mib[131_072] == 16_384 and "published: 8.6 GB" in told["picture"]


def test_fp8_halves_the_caches_and_leaves_the_weights() -> None:
    said = Session(find_demo("memory-bar")).preset("FP8: half of what?")["sentence"]
    assert said.startswith("The caches go from 32.00 GiB (34.36 GB) to 16.00 GiB (17.18 GB).")
    assert f"{2 * 8_030_261_248 / 2**30:.2f} GiB" in said


def test_the_race_of_the_toy_counts_the_token_forwards_of_the_formula() -> None:
    session = Session(find_demo("race"))
    said = session.preset("To the end")["sentence"]
    assert (token_forwards_uncached(2, 6), token_forwards_cached(2, 6)) == (27, 7)
    assert said == "The same letters for 27 token-forwards, or for 7 and 7 rows of memory."
    state = session.preset("Remember is done")
    assert "After 7 beats remember has written CDEFGH, recompute CD: 4" in state["sentence"]


def test_the_live_race_measures_what_was_said_before_it() -> None:
    session = Session(find_demo("race"))
    said = session.preset("Live: tiny")["sentence"]
    race = session.widget
    without, cached = (steps[-1] for steps in race.steps.values())
    assert race.numbers["verdict"].startswith("The same text, token for token.")
    assert f"runs {without.total_token_forwards:,} tokens" in said
    assert f"the right one {cached.total_token_forwards}" in said
    assert race.expected()["held"] in said and without.cache_bytes == 0
    assert race.expected()["held"] in race.picture.value


def test_the_allocators_waste_and_speed_are_those_of_a_recount() -> None:
    session = Session(find_demo("allocators"))
    session.preset("The first refusal")
    stream = make_stream(COUNT, longest=LONGEST, seed=6, **STREAMS["a few long, many short"])
    lengths = {request.number: request.final_length for request in stream}
    memory = ContiguousManager(NUM_SLOTS, LONGEST, policy="max", final_length=lengths.__getitem__)
    stop = next(step for step in run_stream(memory, stream) if step.waiting)
    held, taken = sum(p.filled for p in stop.pieces), sum(p.length for p in stop.pieces)
    assert (len(stop.running), stop.step) == (4, 16) and taken == NUM_SLOTS
    numbers = session.widget.numbers
    assert numbers["one piece each: of slots wasted"] == f"{1 - held / taken:.1%}"
    device, cost = clock().device, clock().stages[0]
    weights, cache = cost.weight_bytes(4), held * 40 * 40 * 128 * 2 * 2
    seconds = (weights + cache) / device.bytes_per_second  # decode waits for memory
    assert numbers["one piece each: tokens/s"] == f"{4 / seconds:,.0f}"


def test_a_question_stands_until_the_class_looks_and_comes_back() -> None:
    session = Session(find_demo("memory-bar"))
    asked = session.preset("MQA: 92 or 11?")["sentence"]
    assert session.change("guess", "60")["sentence"] == asked
    assert session.change("reveal")["sentence"] != asked
    assert session.change("reveal")["sentence"] == asked
    assert session.change("users", 1)["sentence"] == ""
