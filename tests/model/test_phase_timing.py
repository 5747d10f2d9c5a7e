"""The work beside the seconds is the work that the run really did."""

import pytest
import torch

from kvlab.model import phase_timing
from kvlab.model.count_run import count_run
from kvlab.model.decode import generate
from kvlab.model.load import LoadedModel
from kvlab.model.phase_timing import cores, deployment_of, time_phases
from kvlab.model.weights import is_available

needs_weights = pytest.mark.skipif(not is_available("smollm2"), reason="SmolLM2 is not here")


@pytest.fixture(scope="module")
def loaded() -> LoadedModel:
    from kvlab.model.load import load_model

    return load_model("smollm2", device="cpu", dtype="float32")


@needs_weights
@pytest.mark.weights
def test_flops_and_bytes_are_those_of_a_counted_run(loaded: LoadedModel) -> None:
    reading, writing = time_phases(loaded, prompt_tokens=6, new_tokens=2, batch=2)
    ids = phase_timing.sample_ids(loaded, 6).repeat(2, 1)
    with count_run(loaded.model) as first:
        list(generate(loaded.model, ids, max_new_tokens=1))
    with count_run(loaded.model) as both:
        steps = list(generate(loaded.model, ids, max_new_tokens=2))
    assert reading.work.flops == first.flops.total
    # the middle step of one is that of the prompt's last token, one position before the real one
    real = both.flops.total - first.flops.total
    assert writing.work.flops == pytest.approx(real, rel=1e-3)
    assert reading.work.weight_bytes == writing.work.weight_bytes == loaded.nbytes
    assert reading.work.cache_bytes == steps[0].cache_bytes
    assert (reading.tokens, writing.tokens) == (12, 2)


@needs_weights
@pytest.mark.weights
def test_rates_are_work_over_seconds_and_utilisation_is_a_share(loaded: LoadedModel) -> None:
    for phase in time_phases(loaded, prompt_tokens=4, new_tokens=3):
        assert phase.seconds > 0
        assert phase.flops_per_second == phase.work.flops / phase.seconds
        assert phase.bytes_per_second == phase.work.bytes / phase.seconds
        assert phase.busy is not None and 0 <= phase.busy <= 1


@needs_weights
@pytest.mark.weights
def test_the_deployment_is_in_the_dtype_of_the_model(loaded: LoadedModel) -> None:
    one = deployment_of(loaded)
    assert (one.weights_dtype, one.cache_dtype, one.ranks) == ("fp32", "fp32", 1)
    assert sum(one.weight_bytes) == loaded.nbytes


def test_there_is_at_least_one_core_and_a_missing_driver_tool_is_no_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert cores() >= 1
    monkeypatch.setattr(phase_timing, "_QUERY", ("no-such-tool-anywhere",))
    _, busy = phase_timing._watched(list, torch.device("cuda"))
    assert busy is None
