"""Every number and name in the prose of chapter 05, checked against the functions."""

import json
import re
from pathlib import Path

from kvlab._paths import data_dir
from kvlab.arithmetic.catalogue import find_model, model_shape
from kvlab.arithmetic.head_sharing import kv_head_choices
from kvlab.arithmetic.latent_work import LatentShape, latent_work
from kvlab.arithmetic.memory import kv_bytes_per_token
from kvlab.arithmetic.ranks import heads_on_rank
from kvlab.arithmetic.reader import read_model
from kvlab.arithmetic.request import size_request
from kvlab.course.bank import select_questions
from kvlab.course.claims import find_claim
from kvlab.model.train_curves import LEFT_CHANCE, load_curves
from kvlab.model.train_recipes import find_recipe
from kvlab.widgets.heads_explorer import heads_frame, twin

SOURCE = Path(__file__).resolve().parents[2] / "chapters" / "src" / "05_fewer_kv_heads.py"
TEXT = SOURCE.read_text(encoding="utf-8")
PROSE = "\n".join(line[2:] for line in TEXT.splitlines() if line.startswith("# "))
LLAMA = model_shape("llama-3.1-70b")


def test_the_heads_and_bytes_of_the_example_are_those_of_the_model() -> None:
    said = f"has {LLAMA.num_heads} query heads on {LLAMA.num_kv_heads} KV heads"
    assert said in PROSE
    sizes = {"num_layers": 80, "num_kv_heads": 8, "head_dim": 128, "bytes_per_element": 2}
    assert kv_bytes_per_token(**sizes) == 320 * 1024
    assert "its token takes 320 KiB" in PROSE


def test_neighbours_share_and_dealing_out_is_the_known_mistake() -> None:
    assert [head // 3 for head in range(6)] == [0, 0, 0, 1, 1, 1]
    assert "(0, 0, 0, 1, 1, 1)" in PROSE
    assert 3 // (8 // 2) == 0


def test_nine_query_heads_can_be_shared_in_three_ways() -> None:
    assert model_shape("smollm2").num_heads == 9
    assert kv_head_choices(9) == (9, 3, 1)
    assert "nine query heads can be shared in three ways" in PROSE


def test_on_each_of_eight_gpus_nothing_shrinks_below_eight_heads() -> None:
    name = "a token on each of 8 GPUs"
    on_gpu = [heads_frame("llama-3.1-70b", n, 8192).readout[name] for n in (16, 8, 4, 2, 1)]
    assert on_gpu[0] != on_gpu[1] and len(set(on_gpu[1:])) == 1
    assert list(heads_frame("llama-3.1-70b", 8, 8192).readout)[-1] == name  # "the last number"
    assert heads_on_rank(1, 8) == heads_on_rank(8, 8) == 1


def test_the_twins_of_the_table_are_the_models_of_the_claim() -> None:
    assert twin("llama-3.1-70b", 64)[1] - twin("llama-3.1-70b", 8)[1] == 9_395_240_960
    assert twin("llama-3.1-8b", 32)[1] - twin("llama-3.1-8b", 8)[1] == 805_306_368
    assert "1, 11 and 92" in PROSE
    pooled, by_rank = find_claim("mqa-92-sessions").computed()
    assert (pooled, by_rank) == (92, 11)


def test_the_layers_and_heads_of_the_deepseek_models() -> None:
    v2, before = find_model("deepseek-v2").config, read_model("deepseek-llm-67b-base")
    assert v2["num_attention_heads"] == 128 and "DeepSeek-V2 has 128 heads;" in TEXT
    assert (before.num_layers, before.max_kv_heads()) == (95, 8)
    assert v2["qk_nope_head_dim"] == v2["v_head_dim"] == 128  # its own MHA, in the last lines
    assert (v2["kv_lora_rank"], v2["qk_rope_head_dim"]) == (512, 64)


def finals(heads: int, task: str) -> list[float]:
    return [run.final[task] for run in load_curves("twins", num_kv_heads=heads)]


def test_the_twins_differ_in_nothing_but_their_kv_heads() -> None:
    folders = (data_dir() / f"tiny-{kind}" for kind in ("mha", "gqa", "mqa"))
    configs = [json.loads((folder / "config.json").read_text("utf-8")) for folder in folders]
    assert [config.pop("num_key_value_heads") for config in configs] == [8, 2, 1]
    assert configs[0] == configs[1] == configs[2]
    sizes = [configs[0][key] for key in ("num_hidden_layers", "num_attention_heads", "head_dim")]
    assert sizes == [2, 8, 16] and "two layers, 8 query heads of 16" in PROSE


def test_the_three_readings_of_the_table_are_what_the_logs_say() -> None:
    assert len(finals(8, "512")) == len(finals(1, "512")) >= 3
    assert min(min(finals(heads, "512")) for heads in (8, 2, 1)) > 0.99
    assert max(finals(1, "hard")) >= max(finals(8, "hard")) - 0.005
    assert min(finals(1, "hard")) < min(finals(8, "hard"))
    assert min(finals(8, "2048")) > 2 * max(finals(1, "2048"))


def test_training_showed_what_the_text_says_and_the_slow_start_has_8_words_more() -> None:
    fast, slow = (find_recipe(name) for name in ("twins", "twins-slow"))
    assert max(stage.num_facts for stage in fast.stages) == 32
    assert max(stage.seq_len for stage in fast.stages) == 1024
    assert fast.stages[1:] == slow.stages[1:]
    assert slow.stages[0].seq_len - fast.stages[0].seq_len == 8
    assert fast.hard is not None and (fast.hard.num_facts, fast.hard.seq_len) == (128, 1024)


def test_only_learning_speed_differs_with_the_slow_start() -> None:
    left = {
        (group, heads): [
            run.first_step(LEFT_CHANCE) for run in load_curves(group, num_kv_heads=heads)
        ]
        for group in ("twins", "twins-slow")
        for heads in (8, 2, 1)
    }
    easy = [step for (group, _), steps in left.items() if group == "twins" for step in steps]
    assert None not in easy and max(easy) - min(easy) <= 50  # type: ignore[type-var, operator]
    learnt = [sum(step is not None for step in left["twins-slow", n]) for n in (8, 2, 1)]
    assert learnt[0] == len(left["twins-slow", 8])
    assert learnt[0] > learnt[1] > learnt[2], "the fewer the heads, the fewer seeds do"


def test_no_log_shows_a_stuck_seed_learning_with_more_steps() -> None:
    slow = load_curves("twins-slow")
    stuck = [run for run in slow if run.first_step(LEFT_CHANCE) is None]
    assert len(load_curves("twins")) == 9, "all nine seeds"
    assert stuck and len({run.steps for run in slow}) == 1, "the logs end before they could say"


def test_nothing_that_answers_a_guess_stands_before_it() -> None:
    def before(key: str) -> str:
        return TEXT[: TEXT.index(f'key="05-{key}"')]

    assert "heads_explorer()" not in before("weights")  # it shows the parameters of both twins
    assert re.search(r"\b92\b", before("box")) is None
    assert "all heads" not in before("latent").split("## 8.")[1]
    assert "all of it" not in before("ranks").split("## 10.")[1]


def test_pooling_covers_up_what_a_short_training_brings_back() -> None:
    tuned = load_curves("uptrain", num_kv_heads=2)[0]
    assert tuned.notes["pooled_recall"]["512"] < 0.05 < 0.99 < tuned.final["512"]
    assert tuned.final["hard"] < min(finals(2, "hard")) - 0.03, "a few points below the worst seed"
    assert min(finals(2, "2048")) < tuned.final["2048"] < max(finals(2, "2048"))
    assert tuned.final["2048"] < min(finals(8, "2048"))
    assert tuned.steps < 0.25 * load_curves("twins", num_kv_heads=2)[0].steps
    fresh = load_curves("twins-short", num_kv_heads=2)[0]
    assert fresh.steps == tuned.steps and max(share for _, share in fresh.recall) < LEFT_CHANCE


def test_one_token_at_a_time_absorbing_wins_by_far_and_a_long_prompt_loses() -> None:
    v2 = LatentShape.from_config(find_model("deepseek-v2").config)

    def ratio(count: int) -> float:
        ways = (latent_work(v2, way, q_len=count, kv_len=8192) for way in ("expand", "absorb"))
        expand, absorb = (work.total for work in ways)
        return expand / absorb

    assert ratio(1) > 50 and ratio(8192) < 0.5


def test_on_one_gpu_the_latent_is_smaller_and_on_eight_larger() -> None:
    def size(name: str, tp: int) -> int:
        return size_request(read_model(name), context=1, tp=tp).bytes_per_token_per_rank

    assert size("deepseek-v2", 1) < size("llama-3.1-70b", 1) / 4
    assert size("deepseek-v2", 8) > size("llama-3.1-70b", 8)


def test_the_numbers_of_the_interview_answer_are_the_computed_ones() -> None:
    said = next(q for q in select_questions(chapter="05") if q.id == "05-explain-gqa")
    whole = twin("llama-3.1-70b", 64)[0]
    assert 2 * whole.elements_per_token == 2.5 * 2**20 and "2.5 MiB" in said.in_two_minutes
    assert "9,395,240,960 parameters" in said.in_two_minutes
    pooled, by_rank = find_claim("mqa-92-sessions").computed()
    assert f"go from 1 to {by_rank}." in said.in_two_minutes
    assert f"promise {pooled} in one pool" in said.in_two_minutes


def test_the_claims_that_the_course_fixes_are_there() -> None:
    shown = re.findall(r'claim_quiz\("([^"]+)"\)', TEXT)
    fixed = {"mqa-92-sessions", "every-frontier-model-since-2023"}
    assert fixed | {"gqa-no-change-to-parameter-count"} <= set(shown)
    assert 2 <= len(shown) <= 5
    assert all(find_claim(claim).chapter == "05" for claim in shown)
