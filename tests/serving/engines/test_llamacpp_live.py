"""llama.cpp live: the printed sizes are the predicted ones, prefixes are found, nothing is left."""

from collections.abc import Iterator

import pytest
from live_engines import need_engine, wait_gone

from kvlab.model.weights import is_available
from kvlab.serving.engines.agreement import agreements
from kvlab.serving.engines.llamacpp import LlamaCppPlan
from kvlab.serving.engines.probe import probe
from kvlab.serving.engines.process import is_port_free
from kvlab.serving.engines.running import RunningEngine, start
from kvlab.serving.engines.runs import Agreement
from kvlab.serving.engines.tasks import shared_start
from kvlab.serving.workloads import make_requests

pytestmark = pytest.mark.weights


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    """Skip, with a reason, where the engine or its model is not here."""
    need_engine("llamacpp")
    if not is_available("smollm2"):
        pytest.skip("SmolLM2 is not here: kvlab fetch smollm2")


@pytest.fixture(scope="module")
def engine(installed: None) -> Iterator[RunningEngine]:
    """One server with two slots of 1,024 cells."""
    with start(LlamaCppPlan(context=2048, slots=2), progress=False) as running:
        yield running


def sizes(engine: RunningEngine) -> list[Agreement]:
    """Return the reported sizes beside the predicted ones."""
    return agreements(engine.plan, engine.readings(), engine.log_text)


def test_the_size_that_it_prints_is_the_predicted_one(engine: RunningEngine) -> None:
    (size,) = sizes(engine)
    assert size.agrees and size.predicted == 45 * 2**20
    assert {finding.verdict for finding in engine.report().findings} == {"equal"}


@pytest.mark.parametrize(("cache_type", "mib"), [("q8_0", 47.8125), ("q4_0", 25.3125)])
def test_fewer_bits_take_the_bytes_of_the_formula(cache_type: str, mib: float) -> None:
    with start(LlamaCppPlan(context=4096, cache_type=cache_type), progress=False) as running:
        (size,) = sizes(running)
    assert size.agrees and size.predicted == mib * 2**20


def test_a_shared_start_is_found_to_the_token(engine: RunningEngine) -> None:
    load = engine.send(shared_start(times=2), remap=False, at_once=1, name="shared")
    assert [answer.end_reason for answer in load.answers.values()] == ["length", "length"]
    assert load.answers[1].cached_tokens == 512 == load.hit_tokens


def test_requests_beyond_the_slots_wait(engine: RunningEngine) -> None:
    asked = make_requests(4, prompt_tokens=64, output_tokens=24)
    load = engine.send(asked, watch_every=0.02)
    metrics = load.metrics()
    assert metrics.requests_finished == 4 and metrics.peak_running <= 2
    assert metrics.peak_waiting >= 1
    assert all(len(answer.token_ids) == 24 for answer in load.answers.values())


def test_after_stop_no_process_is_left_and_the_port_is_free() -> None:
    running = start(LlamaCppPlan(context=256), progress=False)
    pids = [running.process.guard_pid, *running.process.pids()]
    assert len(pids) == 2 and not is_port_free(running.port)
    running.stop()
    assert wait_gone(pids, 0.5) == [] and is_port_free(running.port)


def test_an_error_inside_the_block_stops_it_too() -> None:
    with pytest.raises(ZeroDivisionError), start(LlamaCppPlan(context=256), progress=False) as e:
        raise ZeroDivisionError
    assert not e.process.is_running and is_port_free(e.port)


def test_the_probe_reads_it_from_outside(engine: RunningEngine) -> None:
    report = probe(engine.endpoint.base, model="smollm2")
    assert (report.engine, report.slots, report.max_model_len) == ("llama.cpp", 2, 1024)
    assert report.readings["vllm:prompt_tokens_total"] >= 0 and report.agrees is None
    assert any("45.00 MiB" in note for note in report.notes)
