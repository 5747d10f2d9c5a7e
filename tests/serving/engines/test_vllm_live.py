"""vLLM live, when asked for: capacity, preemptions, prefix hits, ranks, refusals, and the end."""

from collections.abc import Iterator

import pytest
from live_engines import need_engine, wait_gone

from kvlab.model.weights import is_available
from kvlab.serving.engines.agreement import agreements
from kvlab.serving.engines.faults import EngineFailed
from kvlab.serving.engines.probe import probe
from kvlab.serving.engines.process import is_port_free
from kvlab.serving.engines.running import RunningEngine, start
from kvlab.serving.engines.same_load import our_schedule
from kvlab.serving.engines.tasks import shared_start
from kvlab.serving.engines.vllm import VllmPlan
from kvlab.serving.workloads import make_requests

pytestmark = [pytest.mark.weights, pytest.mark.slow]
PLAN = VllmPlan(cache_bytes=188_743_680 // 4, max_model_len=640)  # 32 blocks: 1,024 tokens


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    """Skip, with a reason, unless `make test-engines` asked for vLLM."""
    need_engine("vllm", only_when_asked=True)
    if not is_available("smollm2"):
        pytest.skip("SmolLM2 is not here: kvlab fetch smollm2")


@pytest.fixture(scope="module")
def engine(installed: None) -> Iterator[RunningEngine]:
    """One server for all tests of this file; afterwards nothing of it is left."""
    with start(PLAN, progress=False) as running:
        pids = [running.process.guard_pid, *running.process.pids()]
        yield running
    assert wait_gone(pids, 0.5) == [] and is_port_free(running.port)


def test_its_capacity_is_the_predicted_one(engine: RunningEngine) -> None:
    pairs = agreements(PLAN, engine.readings(), engine.log_text)
    assert len(pairs) == 5 and all(pair.agrees for pair in pairs)
    assert {f.verdict for f in engine.report().findings} <= {"equal", "equal within rounding"}


def test_the_probe_reads_it_from_outside_and_agrees(engine: RunningEngine) -> None:
    report = probe(engine.endpoint.base, model="smollm2", cache_dtype="fp32")
    assert report.agrees and len(report.checks) == 3
    assert (report.version, report.model, report.max_model_len) == ("0.32.0", "smollm2", 640)


def test_prefix_hits_are_within_a_block_of_what_our_simulator_finds(
    engine: RunningEngine,
) -> None:
    asked = shared_start(times=3)
    load = engine.send(asked, remap=False, at_once=1)
    served = our_schedule(PLAN, asked, at_once=1)
    hits = served.scheduler.counts.prefix_hit_tokens
    assert hits > 0 and abs(load.hit_tokens - hits) <= PLAN.block_size * len(asked)


def test_too_many_requests_are_preempted_and_still_get_the_same_tokens(
    engine: RunningEngine,
) -> None:
    asked = list(make_requests(4, prompt_tokens=256, output_tokens=120))
    crowded = engine.send(asked)
    alone = engine.send(asked, at_once=1)
    assert crowded.preemptions > 0 == alone.preemptions
    assert crowded.token_ids == alone.token_ids
    assert crowded.metrics().peak_running >= 2


def test_its_own_refusal_is_read_and_explained() -> None:
    plan = VllmPlan("tiny", block_size=16, cache_bytes=2**24)
    with pytest.raises(EngineFailed, match=r"No common block size for 16.*multiple of 32"):
        start(plan, check=False, progress=False)


def test_two_ranks_start_and_hold_twice_the_tokens_of_four_kv_heads() -> None:
    plan = VllmPlan("random-8-kv4", cache_bytes=2**27, tp=2)
    with start(plan, progress=False) as running:
        assert running.readings().tokens == plan.predict().tokens == 65_536
        load = running.send(make_requests(2, prompt_tokens=40, output_tokens=4))
        assert load.metrics().requests_finished == 2
        pids = running.process.pids()
    assert wait_gone(pids, 0.5) == []
