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
from kvlab.course.bank import select_questions
from kvlab.course.claims import find_claim
from kvlab.course.exercises import exercises_of
from kvlab.model.eviction_runs import PERCENTS, POLICIES, EvictionRun, eviction_runs
from kvlab.model.load import load_model
from kvlab.model.quality import Bench
from kvlab.model.retrieval_language import CHANCE, QUESTION_TOKENS

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
    assert facts.task.context_len == 416 and "about 400 tokens long" in PROSE
    assert 512 // 4 == 128 and "A quarter of the tokens is 128" in PROSE
    assert (len(POLICIES), len(PERCENTS)) == (6, 6) and "six policies, six budgets" in PROSE


def test_a_question_takes_three_tokens_and_a_guess_is_right_once_in_64_times() -> None:
    assert QUESTION_TOKENS == 3 and "each question is three tokens more" in PROSE
    assert CHANCE == 1 / 64 and "right once in 64 times" in PROSE


def test_window_and_sinks_lose_what_random_keeps_and_scores_find(at) -> None:  # type: ignore[no-untyped-def]
    for percent in (50, 12):
        recall = {policy: at[policy, percent].recall for policy in POLICIES}
        assert recall["window"] < recall["random"] < recall["h2o"] <= recall["expected"]
        assert recall["keynorm"] < 0.1
    assert at["h2o", 50].recall > 0.995 and "Heavy hitters at 50 % had full recall" in TEXT
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
    assert "in `tiny`, facts have long keys" in PROSE


def test_the_window_of_tiny_window_is_64_in_its_first_layer() -> None:
    made, plain = (load_model(name).model.config for name in ("tiny-window", "tiny-gqa"))
    assert made.layer_windows == (64, None) and "W = 64 in its first layer" in PROSE
    assert plain.layer_windows == (None, None)
    assert (made.num_heads, made.num_kv_heads) == (plain.num_heads, plain.num_kv_heads)
    assert 63 + 512 == 575 and 287 * 2 == 574  # "both cut to 287": about the same bytes


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
    drive = eight.rows[-1]
    assert drive.speedup < 1 < four.rows[-1].speedup
    assert all(row.seconds >= 1 for row in eight.rows if not row.link.per_rank)
    assert "From one drive a token takes a second or more" in PROSE
    hbm = eight.num_bytes / (8 * find_gpu("H100").bandwidth_gb_s * 1e9)
    assert round(eight.rows[0].seconds / hbm) == 52


def test_every_exercise_stands_with_its_statement_check_hint_and_solution() -> None:
    for exercise in exercises_of("09"):
        assert f"**{exercise.id} {exercise.title}.** {exercise.statement}" in PROSE
        for cell in (f'check("{exercise.id}"', f'hint_steps("{exercise.id}")'):
            assert cell in TEXT
        assert f'solution("{exercise.id}")' in TEXT


def test_every_question_finds_its_anchor() -> None:
    anchors = set(re.findall(r'<a id="([^"]+)"></a>', TEXT))
    assert {question.anchor for question in select_questions(chapter="09")} <= anchors


def test_the_questions_asked_are_in_the_bank() -> None:
    asked = re.search(r'names = "(first-visible [^"]+)"', TEXT)
    ids = {question.id for question in select_questions(chapter="09")}
    assert asked and len(asked[1].split()) == 6
    assert {f"09-{name}" for name in asked[1].split()} < ids


def test_the_claims_that_the_course_fixes_are_there() -> None:
    shown = re.findall(r'claim_quiz\("([^"]+)"\)', TEXT)
    fixed = {"sliding-window-token-4905", "anchor-tokens-like-system-prompt"}
    assert fixed | {"mistral-pioneered-sliding-window"} <= set(shown)
    assert 2 <= len(shown) <= 5
    assert all(find_claim(claim).chapter == "09" for claim in shown)


@pytest.mark.parametrize(("kind", "total"), [("Core", 15), ("Deep dive", 20)])
def test_minutes_of_core_and_deep_sections_add_up(kind: str, total: int) -> None:
    minutes = re.findall(rf"\*\*{kind} · (\d+) minutes?\*\*", TEXT)
    assert sum(map(int, minutes)) == total


def test_the_first_cell_asks_what_the_last_one_answers() -> None:
    assert "**The question.** Which tokens may a cache forget?" in PROSE
    assert "**The answer.**" in PROSE.split("## Takeaways")[1]
