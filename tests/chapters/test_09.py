"""Every number and name in the prose of chapter 09, checked against the functions."""

import re
from pathlib import Path

import pytest

from kvlab.arithmetic.gpus import find_gpu
from kvlab.arithmetic.reader import read_model
from kvlab.arithmetic.request import size_request
from kvlab.arithmetic.tier_times import tier_times
from kvlab.cache.container import KVCache
from kvlab.cache.eviction_scores import KeyNormLayer
from kvlab.course.claims import find_claim
from kvlab.model.eviction_runs import PERCENTS, POLICIES, EvictionRun, eviction_runs
from kvlab.model.load import load_model
from kvlab.model.quality import Bench
from kvlab.model.retrieval_language import CHANCE, FACT_TOKENS, QUESTION_TOKENS

SOURCE = Path(__file__).resolve().parents[2] / "chapters" / "src" / "09_windows_sinks_eviction.py"
TEXT = SOURCE.read_text(encoding="utf-8")
PROSE = "\n".join(line[2:] for line in TEXT.splitlines() if line.startswith("# "))


@pytest.fixture(scope="module")
def facts() -> Bench:
    return Bench("tiny", num_sequences=4)


@pytest.fixture(scope="module")
def at(facts: Bench) -> dict[tuple[str, int], EvictionRun]:
    runs = eviction_runs(facts, POLICIES, (50, 12))
    return {(run.policy, run.percent): run for run in runs}


def test_the_task_is_the_one_that_the_prose_describes(facts: Bench) -> None:
    assert (facts.task.tokens, len(facts.task.input_ids)) == (512, 4)
    assert "4 texts of 512 tokens" in TEXT and "32 facts stand in a text" in PROSE
    assert facts.task.context_len == 416 and "the first 416 tokens, then the questions" in PROSE
    assert 512 // 4 == 128 and "a quarter of these: 128 in each KV head" in PROSE
    assert 416 // 4 == 104 == 2 * 52 and "a budget of 104, a quarter; 52 of them" in PROSE
    assert FACT_TOKENS == 2 and "a fact is a name and a place" in TEXT
    assert (len(POLICIES), len(PERCENTS)) == (6, 6) and "six policies, six budgets" in PROSE


def test_a_question_takes_three_tokens_and_a_guess_is_right_once_in_64_times() -> None:
    assert QUESTION_TOKENS == 3 and "each question is three tokens more" in PROSE
    assert CHANCE == 1 / 64 and "right once in 64 times" in PROSE


def test_window_and_sinks_lose_what_random_keeps_and_scores_find(at) -> None:  # type: ignore[no-untyped-def]
    for percent in (50, 12):
        recall = {policy: at[policy, percent].recall for policy in POLICIES}
        assert recall["window"] < recall["random"] < recall["h2o"] <= recall["expected"]
        assert recall["keynorm"] < 0.1
    assert at["h2o", 50].recall > 0.995 and "Heavy hitters at 50 % answered all" in TEXT
    assert at["h2o", 12].recall < at["expected", 12].recall - 0.1, "they fall behind"
    assert 0.4 < at["sinks", 50].recall < 0.6 and "they lose half of the facts" in PROSE


def test_heavy_hitters_lose_the_late_facts(at) -> None:  # type: ignore[no-untyped-def]
    run = at["h2o", 12]
    assert not all(run.answered)
    pairs = list(zip(run.answered, run.fact_positions, strict=True))
    half = run.context_len / 2
    early = [right for right, place in pairs if place < half]
    late = [right for right, place in pairs if place >= half]
    assert sum(early) / len(early) > 2 * sum(late) / len(late)


def test_in_tiny_facts_have_long_keys(facts: Bench) -> None:
    class LongestKeys(KeyNormLayer):
        def score(self):  # type: ignore[no-untyped-def]
            return -super().score()

    layers = lambda: KVCache(LongestKeys(128) for _ in range(2))  # noqa: E731
    assert facts.measure(layers).recall > 0.95
    assert "in the second layer of `tiny`" in PROSE and "facts have long ones" in PROSE


def test_the_window_of_tiny_window_is_64_in_its_first_layer() -> None:
    made, plain = (load_model(name).model.config for name in ("tiny-window", "tiny-gqa"))
    assert made.layer_windows == (64, None) and "W = 64 in its first layer" in PROSE
    assert plain.layer_windows == (None, None)
    assert (made.num_heads, made.num_kv_heads) == (plain.num_heads, plain.num_kv_heads)
    assert 63 + 512 == 575 and 287 * 2 == 574  # "about as many tokens in all"


def test_only_the_model_whose_layers_all_have_a_window_is_capped() -> None:
    named = re.search(r'names = "(mistral[^"]+)"', TEXT)
    assert named
    grows = {}
    for name in named[1].split():
        sizes = [
            size_request(read_model(name), context=t).request_bytes for t in (131_072, 131_073)
        ]
        grows[name] = sizes[1] - sizes[0]
    assert [name for name, more in grows.items() if more == 0] == ["mistral-7b-v0.1"]
    assert all(layer.window is None for layer, _ in read_model("mistral-7b-v0.3").counted)


def test_the_budgets_of_the_pyramid_are_61_on_average(facts: Bench) -> None:
    assert facts.maker("h2o", budget="12%")().layers[0].budget == 61
    late = facts.measure("h2o", budgets=[11, 111]).recall
    assert facts.measure("h2o", budgets=[111, 11]).recall < 0.5 * late
    assert "61 tokens a layer on average" in PROSE


def test_the_last_position_of_tiny() -> None:
    assert load_model("tiny").model.config.max_seq_len == 4096
    assert "`tiny` has 4,096 positions" in PROSE


def test_what_is_said_about_tiers_follows_from_their_times() -> None:
    eight, four = (tier_times("llama-3.1-70b", tokens=50_000, gpu="H100", tp=n) for n in (8, 4))
    hosts = [row for times in (eight, four) for row in times.rows if row.link.per_rank]
    assert all(row.speedup > 10 for row in hosts)  # "From host memory: fetch, always."
    for wide, narrow in zip(eight.rows, four.rows, strict=True):
        if "NVMe" in wide.link.name and "4.0" in wide.link.name:
            assert wide.speedup < 1 < narrow.speedup
    assert "one drive behind PCIe 4.0: slower than eight idle GPUs, quicker than four" in PROSE
    assert all(row.seconds >= 1 for row in eight.rows if not row.link.per_rank)
    assert "From one drive a token takes a second or more" in PROSE
    hbm = eight.num_bytes / (8 * find_gpu("H100").bandwidth_gb_s * 1e9)
    assert round(eight.rows[0].seconds / hbm) == 52


def test_the_claims_that_the_course_fixes_are_there() -> None:
    shown = re.findall(r'claim_quiz\("([^"]+)"\)', TEXT)
    fixed = {"sliding-window-token-4905", "anchor-tokens-like-system-prompt"}
    assert fixed | {"mistral-pioneered-sliding-window"} <= set(shown)
    assert 2 <= len(shown) <= 5
    assert all(find_claim(claim).chapter == "09" for claim in shown)
