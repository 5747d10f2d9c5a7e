"""The roofline: times from work and rates, ridges, crossovers, and caches on a link."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlab.arithmetic.catalogue import model_shape
from kvlab.arithmetic.flops import flops_cached
from kvlab.arithmetic.gpus import load_gpus
from kvlab.arithmetic.plan_deployment import Deployment
from kvlab.arithmetic.roofline import (
    Device,
    crossover_batch,
    crossover_tokens,
    seconds_to_ship,
    time_decode,
    time_prefill,
)
from kvlab.arithmetic.roofline_work import attention_flops, decode_work, prefill_work
from kvlab.arithmetic.storage import LayerStorage
from kvlab.errors import InvalidArgument

H100 = Device.of("H100")
LLAMAS = ["smollm2", "llama-3.1-8b", "llama-3.1-70b"]


@pytest.mark.parametrize("name", LLAMAS)
def test_the_flops_of_a_generation_are_those_of_the_exact_count(name: str) -> None:
    model = Deployment.of(name)
    prompt, new = 57, 9
    total = prefill_work(model, prompt)[0].flops
    total += sum(decode_work(model, prompt + i)[0].flops for i in range(1, new))
    assert total == flops_cached(model_shape(name), prompt, new).total


def test_windows_and_chunks_cut_the_pairs_as_counting_does() -> None:
    model = Deployment.of("llama-3.1-8b")
    per_pair = 2 * 32 * (64 + 64)
    windowed = (LayerStorage(0, "windowed", 8, 64, 64, window=7),)
    chunked = (LayerStorage(0, "chunked", 8, 64, 64, window=7),)
    for start, end in [(0, 5), (0, 30), (6, 8), (20, 21)]:
        seen = range(start + 1, end + 1)
        slid = sum(min(t, 7) for t in seen)
        cut = sum((t - 1) % 7 + 1 for t in seen)
        assert attention_flops(model, windowed, start, end) == per_pair * slid
        assert attention_flops(model, chunked, start, end) == per_pair * cut


def test_the_ridge_of_an_h100_is_295_flops_per_byte() -> None:
    assert round(H100.ridge, 1) == 295.2
    assert round(H100.ridge_tokens(16)) == 295
    assert round(H100.ridge_tokens(8)) == 148


@pytest.mark.parametrize("gpu", load_gpus(), ids=lambda gpu: gpu.name)
def test_every_gpu_of_the_catalogue_has_a_roof(gpu: object) -> None:
    device = Device.of(gpu)  # type: ignore[arg-type]
    assert device.attainable(device.ridge) == pytest.approx(device.flops_per_second)
    assert device.attainable(device.ridge / 2) == pytest.approx(device.flops_per_second / 2)


def test_prefill_is_bound_by_compute_above_the_ridge_and_decode_by_memory() -> None:
    model = Deployment.of("llama-3.1-8b")
    assert time_prefill(model, H100, prompt_tokens=4096).bound == "compute"
    assert time_prefill(model, H100, prompt_tokens=100).bound == "memory"
    assert time_decode(model, H100, context=8192).bound == "memory"


def test_80_gib_of_cache_cost_25_6_ms_of_a_step_on_one_gpu_and_an_eighth_on_eight() -> None:
    one = decode_work(Deployment.of("llama-3.1-70b"), 8192, batch=32)[0]
    eight = decode_work(Deployment.of("llama-3.1-70b", tp=8), 8192, batch=32)[0]
    assert one.cache_bytes == 80 * 2**30
    assert 1000 * one.cache_bytes / H100.bytes_per_second == pytest.approx(25.64, abs=0.01)
    assert 8 * eight.cache_bytes == one.cache_bytes


def test_the_weights_are_read_once_for_the_batch_and_each_cache_for_itself() -> None:
    model = Deployment.of("llama-3.1-8b")
    one, many = decode_work(model, 8192)[0], decode_work(model, 8192, batch=16)[0]
    assert many.weight_bytes == one.weight_bytes == 2 * 8_030_261_248
    assert many.cache_bytes == 16 * one.cache_bytes


def test_cache_traffic_passes_weight_traffic_at_the_crossover() -> None:
    pair = {"weight_bytes": 2 * 8_030_261_248, "bytes_per_token": 131_072}
    model = Deployment.of("llama-3.1-8b")
    assert crossover_tokens(**pair) == 122_532.0625
    batch = crossover_batch(**pair, context=8192)
    below, above = (decode_work(model, 8192, batch=n)[0] for n in (batch - 1, batch))
    assert below.cache_bytes <= below.weight_bytes
    assert above.cache_bytes > above.weight_bytes


def test_a_mixture_reads_only_the_experts_that_its_tokens_choose() -> None:
    model = Deployment.of("mixtral-8x7b")
    one, many = decode_work(model, 1024)[0], decode_work(model, 1024, batch=64)[0]
    assert one.weight_bytes < 0.3 * model.weight_bytes[0]
    assert many.weight_bytes > 0.99 * model.weight_bytes[0]
    assert 8192 * one.flops < prefill_work(model, 8192)[0].flops * 1.2


def test_a_million_tokens_take_minutes_of_prefill() -> None:
    model = Deployment.of("llama-3.1-70b", tp=8)
    assert 2 < time_prefill(model, H100, prompt_tokens=10**6).seconds / 60 < 4


def test_stages_make_a_token_wait_and_a_batch_pass() -> None:
    one, four = (Deployment.of("llama-3.1-8b", pp=pp) for pp in (1, 4))
    alone = time_decode(one, H100, context=4096).seconds
    assert time_decode(four, H100, context=4096).seconds == pytest.approx(alone, rel=0.05)
    busy = [time_decode(model, H100, context=4096, batch=64) for model in (one, four)]
    assert busy[1].tokens_per_second > 1.5 * busy[0].tokens_per_second


@settings(deadline=None)
@given(st.integers(1, 10**6), st.integers(1, 512), st.sampled_from([1, 2, 4, 8]))
def test_no_step_gets_quicker_with_more_context_or_more_requests(
    context: int, batch: int, tp: int
) -> None:
    model = Deployment.of("llama-3.1-8b", tp=tp)
    step = time_decode(model, H100, context=context, batch=batch)
    assert time_decode(model, H100, context=context + 999, batch=batch).seconds >= step.seconds
    assert time_decode(model, H100, context=context, batch=batch + 1).seconds >= step.seconds


@pytest.mark.parametrize(
    ("rate", "links", "seconds"), [(64e9, 1, 0.671), (64e9, 8, 0.0839), (50e9, 1, 0.859)]
)
def test_a_full_context_of_70b_is_shipped_in_this_time(
    rate: float, links: int, seconds: float
) -> None:
    size = Deployment.of("llama-3.1-70b").request(131_072).kv_bytes
    found = seconds_to_ship(size, link_bytes_per_second=rate, links=links)
    assert found == pytest.approx(seconds, rel=1e-3)


def test_bad_rates_are_named() -> None:
    for name, rates in {"flops_per_second": (0, 1), "bytes_per_second": (1, float("nan"))}.items():
        with pytest.raises(InvalidArgument, match=name):
            Device("here", *rates)
    with pytest.raises(InvalidArgument, match="link_bytes_per_second"):
        seconds_to_ship(1, link_bytes_per_second=-1)
    with pytest.raises(InvalidArgument, match="prompt_tokens"):
        time_prefill(Deployment.of("smollm2"), H100, prompt_tokens=0)
