"""Our recorded runs load, agree with the formulas, and say that they are recorded."""

import json
import re
from pathlib import Path

import pytest

from kvlab.errors import InvalidArgument
from kvlab.serving.engines.recording import from_dict, recordings_dir, to_dict
from kvlab.serving.engines.replay import recorded, replay, run
from kvlab.serving.engines.same_load import our_schedule
from kvlab.serving.engines.scenarios import SCENARIOS
from kvlab.serving.engines.tasks import code_score, recall_score

NAMES = recorded()


def test_every_scenario_is_recorded_and_nothing_else() -> None:
    assert set(NAMES) == set(SCENARIOS)


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_agrees_with_the_formulas(name: str) -> None:
    found = replay(name)
    pairs = found.agreements()
    assert found.replayed and found.plan == SCENARIOS[name].plan
    assert (pairs or found.failure) and [pair for pair in pairs if not pair.agrees] == []
    verdicts = {finding.verdict for finding in found.report().findings}
    assert "differs" not in verdicts and verdicts


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_says_where_and_when_and_names_no_folder_of_ours(name: str) -> None:
    found = replay(name)
    assert found.says.startswith("replayed: ") and found.date in found.says
    assert str(found.machine.cores) in found.says and found.machine.cpu in found.says
    text = (recordings_dir() / f"{name}.json").read_text(encoding="utf-8")
    for folder in (str(Path.home()), str(recordings_dir().parents[1])):
        assert f"{folder}/" not in text


@pytest.mark.parametrize("name", NAMES)
def test_every_answer_of_a_recording_is_whole(name: str) -> None:
    for load in replay(name).loads.values():
        assert set(load.answers) == {request.request_id for request in load.requests}
        for request in load.requests:
            answer = load.answers[request.request_id]
            assert answer.error is None and answer.end_reason in ("length", "stop")
            assert answer.prompt_tokens == request.prompt_tokens
            assert len(answer.token_ids) == len(answer.token_at) <= request.max_new_tokens


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_goes_through_its_file_form_unchanged(name: str) -> None:
    found = replay(name)
    assert from_dict(json.loads(json.dumps(to_dict(found))), name) == found


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_names_no_folder_of_the_machine_that_made_it(name: str) -> None:
    kept = json.dumps(to_dict(replay(name)))
    assert not re.search(r"(?<![\w.~/)-])/(?:tmp|root|home|work|usr|var)/", kept)


def test_a_small_pool_preempts_and_writes_the_same_tokens() -> None:
    small, large = (replay(name).loads["twelve"] for name in ("pool-2048", "pool-23296"))
    assert small.preemptions > 0 == large.preemptions
    assert small.token_ids == large.token_ids
    assert small.metrics().peak_running < large.metrics().peak_running == 12


@pytest.mark.parametrize("block_size", [32, 128])
def test_prefix_hits_are_whole_blocks_and_the_last_one_is_computed(block_size: int) -> None:
    loads = replay(f"prefix-{block_size}").loads
    again, shared = loads["one prompt again"], loads["shared start"]
    assert again.hit_tokens == 2 * (511 // block_size * block_size)
    assert shared.hit_tokens == 3 * (512 // block_size * block_size)


def test_a_longer_prompt_takes_the_blocks_of_its_tokens_and_no_other_memory() -> None:
    found = replay("growth")
    load = found.loads["longer and longer"]
    for request in load.requests:
        expected = -(-request.peak_tokens // found.plan.block_size)
        assert abs(load.peak_blocks_of(request.request_id) - expected) <= 1.01
    sizes = [look.rss_bytes for look in load.memory]
    pool = found.plan.cache_bytes
    assert pool > 0.5 * 2**30 and max(sizes) - min(sizes) < pool / 2


def test_the_memory_stays_while_requests_come_and_go() -> None:
    load = replay("waves").loads["waves"]
    uses = [look.block_use for look in load.memory]
    sizes = [look.rss_bytes for look in load.memory]
    assert max(uses) - min(uses) > 0.2
    assert max(sizes) < 1.05 * min(sizes)


def test_our_scheduler_gives_way_as_often_as_the_engine_did() -> None:
    for name in ("pool-2048", "pool-23296"):
        found = replay(name)
        load = found.loads["twelve"]
        ours = our_schedule(found.plan, load.requests)
        assert ours.scheduler.counts.preemptions == load.preemptions
        assert ours.metrics.peak_running == load.metrics().peak_running


@pytest.mark.parametrize("block_size", [32, 128])
def test_our_scheduler_finds_the_prefixes_that_the_engine_found(block_size: int) -> None:
    found = replay(f"prefix-{block_size}")
    for load in found.loads.values():
        if load.requests[0].prompt_ids is None:
            pytest.skip("the prompts need SmolLM2's tokenizer")
        ours = our_schedule(found.plan, load.requests, at_once=1)
        assert ours.scheduler.counts.prefix_hit_tokens == load.hit_tokens


def test_two_ranks_halve_four_kv_heads_and_not_one() -> None:
    tokens = {n: replay(n).readings.tokens for n in ("tp1-kv4", "tp2-kv4", "tp1-kv1", "tp2-kv1")}
    assert tokens["tp2-kv4"] == 2 * tokens["tp1-kv4"]
    assert tokens["tp2-kv1"] == tokens["tp1-kv1"]


def test_a_cache_in_fp8_holds_four_times_the_tokens_and_still_finds_most_codes() -> None:
    runs = {name: replay(f"quality-{name}") for name in ("fp32", "bf16", "fp8")}
    tokens = {name: found.readings.tokens for name, found in runs.items()}
    assert tokens == {"fp32": 4096, "bf16": 8192, "fp8": 16_384}
    for found in runs.values():
        answers = found.loads["codes"].answers
        assert len(answers) == 50 and code_score([answers[i].text for i in range(50)]) > 25


def test_the_tiny_model_recalls_what_it_was_told_in_every_dtype() -> None:
    for name in ("fp32", "bf16", "fp8"):
        answers = replay(f"recall-{name}").loads["recall"].token_ids
        assert recall_score([answers[i] for i in range(200)]) > 150


def test_the_refusal_of_fp8_is_kept_with_its_words() -> None:
    found = replay("fp8-refused")
    assert "FP8 KV cache on CPU requires" in str(found.failure)
    assert found.readings is None and "told that this processor" in found.note


def test_without_an_engine_a_run_is_replayed_and_says_so() -> None:
    assert run("capacity-tiny", live=False).says.startswith("replayed")


def damaged(change: str, value: object) -> dict:
    """Return a recording with one field changed; None takes it out."""
    row = to_dict(replay("pool-2048"))
    where = row
    *path, last = change.split(".")
    for step in path:
        where = where[int(step) if step.isdigit() else step]
    if value is None:
        del where[last]
    else:
        where[last] = value
    return row


@pytest.mark.parametrize(
    ("change", "value", "said"),
    [
        ("log", None, "log=None: is missing"),
        ("plan", [], "plan=.*another kind"),
        ("format", 9, "format=9: must be 1"),
        ("engine", "other", "engine='other'"),
        ("plan.block_size", 0, "block_size=0"),
        ("plan.colour", "red", "colour"),
        ("loads.0.answers", None, "answers=None: is missing"),
        ("loads.0.answers.0.token_ids", None, "token_ids"),
        ("machine.cpu", None, "cpu"),
        ("startup_seconds", True, "another kind"),
    ],
)
def test_a_damaged_recording_is_named_with_its_field(change: str, value: object, said: str) -> None:
    with pytest.raises(InvalidArgument, match=said) as caught:
        from_dict(damaged(change, value), "pool-2048.json")
    assert "\n" not in str(caught.value)


def test_an_unknown_name_and_a_file_that_is_no_json_are_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"no such recording; there are .*pool-2048"):
        replay("pool-9")
    (tmp_path / "x.json").write_text("{", encoding="utf-8")
    with pytest.raises(InvalidArgument, match=r"x\.json.* is not JSON"):
        replay("x", tmp_path)
