"""An operator's looks: true at their time, few, and right about what the queue waits for."""

from kvlab.arithmetic.plan_deployment import Deployment
from kvlab.arithmetic.roofline import Device
from kvlab.serving import watch
from kvlab.serving.limits import Limits
from kvlab.serving.simulator import simulate
from kvlab.serving.step_clock import StepClock
from kvlab.serving.watch import Look, Watch, at_times
from kvlab.serving.workloads import make_requests, poisson_arrivals

CLOCK = StepClock(Deployment.of("llama-3.1-8b"), Device.of("H100"))
SIZES = {"prompt_tokens": "uniform:200:800", "output_tokens": "uniform:20:120"}


def served(num_blocks: int, limits: Limits | None = None, **options: object) -> tuple:
    seen = Watch(**options)  # type: ignore[arg-type]
    traffic = make_requests(120, **SIZES, arrivals=poisson_arrivals(60, seed=3), seed=3)
    return simulate(traffic, CLOCK, num_blocks=num_blocks, limits=limits, on_step=seen), seen.looks


def test_the_last_look_agrees_with_the_metrics() -> None:
    loop, looks = served(800)
    last = looks[-1]
    assert (last.running, last.waiting, last.seconds) == (0, 0, loop.now)
    assert last.preemptions == loop.scheduler.counts.preemptions > 0
    assert last.ttft_p95 == loop.metrics.ttft.percentile(95)
    assert last.tpot_p50 == loop.metrics.tpot.percentile(50)


def test_looks_are_thinned_and_the_end_is_kept() -> None:
    loop, every = served(800, max_looks=10**6)
    _, few = served(800, max_looks=20)
    assert len(few) <= 20 < len(every)
    assert set(few) <= set(every) and few[-1].seconds == loop.now
    assert [seen.step for seen in few] == sorted({seen.step for seen in few})


def test_the_head_of_a_queue_lacks_what_the_server_is_short_of() -> None:
    def lacks(num_blocks: int, limits: Limits | None = None) -> set[str]:
        _, looks = served(num_blocks, limits, max_looks=10**6)
        return {seen.waits_for for seen in looks}

    assert watch.BLOCKS in lacks(800) and watch.SEATS not in lacks(800)
    assert watch.SEATS in lacks(20_000, Limits(max_running=4))
    assert watch.BLOCKS not in lacks(20_000, Limits(max_running=4))
    assert lacks(20_000, Limits(max_batched_tokens=256)) == {watch.NOBODY, watch.BUDGET}


def test_who_has_no_queue_waits_for_nobody() -> None:
    _, looks = served(20_000, max_looks=10**6)
    assert all((seen.waits_for == watch.NOBODY) == (seen.waiting == 0) for seen in looks)


def test_even_times_show_the_newest_look_at_each() -> None:
    _, looks = served(800)
    even = at_times(looks, 50)
    assert len(even) == 50 and even[-1] == looks[-1]
    for seen in even[1:-1]:
        newest = max((x for x in looks if x.seconds <= seen.seconds), default=Look())
        assert seen == newest._replace(seconds=seen.seconds)
    assert at_times([], 3) == [Look()] * 3
