"""The engine writes what each request writes alone, and the simulator plans what it plans.

The full version, 200 requests and SmolLM2, runs with KVLAB_TEST_FULL=1.
"""

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from mixed_requests import Written, mixed_requests, written_alone

from kvlab.arithmetic.plan_deployment import Deployment
from kvlab.arithmetic.roofline import Device
from kvlab.errors import InvalidArgument
from kvlab.model.config import LlamaConfig
from kvlab.model.llama import Llama
from kvlab.paging.rules import broken_rules
from kvlab.serving.engine import Answer, Engine
from kvlab.serving.events import Event
from kvlab.serving.limits import Limits
from kvlab.serving.request import Request, Sampling, prompt
from kvlab.serving.simulator import simulate
from kvlab.serving.step_clock import StepClock
from kvlab.serving.worker import as_written

FULL = bool(os.environ.get("KVLAB_TEST_FULL"))
COUNT, LONGEST, MAX_NEW = (200, 60, 30) if FULL else (30, 40, 10)
CONFIG = LlamaConfig(
    num_layers=2,
    num_heads=4,
    num_kv_heads=2,
    head_dim=8,
    hidden_size=32,
    intermediate_size=48,
    vocab_size=61,
    max_seq_len=256,
)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Matrices this small are slower on two threads, and far slower on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def model() -> Llama:
    """A tiny Llama in float64, its weights large enough that its tokens differ."""
    return Llama(CONFIG).init_weights(seed=7, std=0.3).eval().double()


@pytest.fixture(scope="module")
def requests() -> list[Request]:
    """Mixed requests for the tiny model."""
    return mixed_requests(
        COUNT, 61, seed=5, longest=LONGEST, max_new=MAX_NEW, stop_ids=frozenset([3])
    )


@pytest.fixture(scope="module")
def alone(model: Llama, requests: list[Request]) -> Written:
    """What each request writes alone."""
    return written_alone(model, requests)


def clock_of(block_size: int) -> StepClock:
    """Return a clock that makes time the same in every run: steps of about 5 ms."""
    deployment, device = Deployment.of("llama-3.1-8b"), Device.of("H100")
    return StepClock(deployment, device, block_size=block_size, host_bytes_per_second=64e9)


def serve(
    model: Llama, requests: list[Request], *, num_blocks: int, block_size: int, limits: Limits
) -> tuple[Engine, dict[tuple[int, int], Answer], list[Event]]:
    """Serve requests; return the engine, the answers and all events."""
    events: list[Event] = []
    engine = Engine(
        model,
        num_blocks=num_blocks,
        block_size=block_size,
        limits=limits,
        clock=clock_of(block_size),
        observer=events.append,
    )
    answers = engine.serve(requests)
    assert broken_rules(engine.manager) == []
    assert engine.manager.num_free == num_blocks
    assert engine.worker.samplers == {}
    return engine, answers, events


def barely_enough(requests: list[Request], block_size: int) -> int:
    """Return the fewest blocks in which each single sample fits."""
    return max(-(-request.peak_tokens // block_size) for request in requests)


def kinds_of_pool() -> Iterator[Any]:
    """Give block size, how much more than barely enough, and the rules."""
    tight = {"max_batched_tokens": 20, "max_running": 8}
    wanted = [
        (1, 1.0, Limits(**tight)),
        (7, 1.0, Limits(**tight, preemption="swap", policy="priority")),
        (7, 1.6, Limits(max_batched_tokens=64, max_running=12, chunked_prefill=False)),
        (16, 1.0, Limits(**tight, preemption="swap", host_blocks=3)),
        (16, 40.0, Limits()),
        (16, 3.0, Limits(**tight, reserve_output=True)),
        (1, 1.3, Limits(**tight, preemption="swap")),
        (7, 1.0, Limits(**tight)),
    ]
    for size, factor, limits in wanted:
        yield pytest.param(size, factor, limits, id=f"block {size} x{factor} {limits.preemption}")


@pytest.mark.parametrize(("block_size", "factor", "limits"), [*kinds_of_pool()])
def test_answers_depend_on_no_pool_and_no_batch_mate_and_the_simulator_plans_the_same(
    model, requests, alone, block_size: int, factor: float, limits: Limits
) -> None:
    num_blocks = int(factor * barely_enough(requests, block_size))
    limits = replace(limits, max_seq_len=256)
    engine, answers, events = serve(
        model, requests, num_blocks=num_blocks, block_size=block_size, limits=limits
    )
    for request in requests:
        for sample in range(request.num_samples):
            check(answers.get((request.request_id, sample)), alone[request.request_id, sample])
    assert sum(answer.error is None for answer in answers.values()) > len(alone) / 2
    simulated: list[Event] = []
    replay = [as_written(r, {name: a.token_ids for name, a in answers.items()}) for r in requests]
    loop = simulate(
        replay,
        clock_of(block_size),
        num_blocks=num_blocks,
        limits=engine.limits,
        observer=simulated.append,
    )
    assert simulated == events
    counts = loop.scheduler.counts
    assert (counts.preemptions > 0) == (factor < 2)
    assert counts.forks > 0
    assert counts.prefix_hit_tokens > 0 or num_blocks < 5


def check(answer: Answer | None, alone: list[int]) -> None:
    """An answer is the one written alone; one that was cut off is its beginning."""
    if answer is None:  # a sample that never parted, because its request was cut off before
        return
    if answer.error is None:
        assert answer.token_ids == alone
    else:
        assert answer.end_reason in ("aborted", "refused", "outgrown")
        assert answer.token_ids == alone[: len(answer.token_ids)]


def test_three_sequences_write_the_same_in_six_five_and_four_blocks(model) -> None:
    requests = [prompt(i, [9 + i, 8, 7, 6, 5], 8) for i in range(3)]
    alone = written_alone(model, requests)
    preemptions = []
    for num_blocks in (6, 5, 4):
        engine = Engine(model, num_blocks=num_blocks, block_size=4)
        loop = engine.start(requests, answers := {})
        loop.run()
        assert {name: answer.token_ids for name, answer in answers.items()} == alone
        counts = loop.scheduler.counts
        computed = 3 * 12 + counts.recomputed_tokens  # P + N - 1 of each, and what was lost
        assert engine.worker.token_forwards == computed
        preemptions.append(counts.preemptions)
    assert preemptions[0] > 0 and preemptions == sorted(preemptions)


def test_a_row_that_has_stopped_gets_no_more_tokens(model) -> None:
    requests = [prompt(0, range(7), 12), prompt(1, [50, 40, 30], 12)]
    alone = written_alone(model, requests)
    stop = alone[1, 0][1]
    stopping = [requests[0], replace(requests[1], stop_ids=frozenset([stop]))]
    engine = Engine(model, num_blocks=40, block_size=4, limits=Limits(3, 3))
    answers = engine.serve(stopping)
    assert answers[0, 0] == Answer(alone[0, 0], "length", None)
    assert answers[1, 0] == Answer(alone[1, 0][: alone[1, 0].index(stop) + 1], "stop", None)


def test_what_lies_in_unused_slots_does_not_matter(model) -> None:
    requests = [prompt(i, range(i, i + 13), 6) for i in range(4)]
    engine = Engine(model, num_blocks=30, block_size=4)
    for states in (engine.worker.store.keys, engine.worker.store.values):
        states.fill_(float("nan"))
    answers = engine.serve(requests)
    assert {name: a.token_ids for name, a in answers.items()} == written_alone(model, requests)


def test_a_second_round_finds_the_prefixes_of_the_first(model) -> None:
    engine = Engine(model, num_blocks=60, block_size=4)
    first = engine.serve([prompt(0, range(40), 5)])
    before = engine.worker.token_forwards
    again = engine.serve([prompt(1, range(40), 5)])
    assert again[1, 0] == first[0, 0]
    assert engine.worker.token_forwards - before == 4 + 4  # one block of the prompt, four decodes


def test_samples_of_one_prompt_differ_and_each_equals_its_own_run(model) -> None:
    request = prompt(0, range(9), 12, num_samples=4, sampling=Sampling(1.5, seed=11))
    engine = Engine(model, num_blocks=60, block_size=4)
    answers = engine.serve([request])
    assert {n: a.token_ids for n, a in answers.items()} == written_alone(model, [request])
    assert len({tuple(answer.token_ids) for answer in answers.values()}) == 4
    assert engine.worker.token_forwards == 9 + 4 * 11  # the prompt once


def test_refusals_are_answers_and_the_others_finish(model) -> None:
    engine = Engine(model, num_blocks=4, block_size=4)
    asked = [prompt(0, range(30), 5), prompt(1, range(5), 40), prompt(2, range(5), 4)]
    asked.append(prompt(3, range(9), 250))
    answers = engine.serve(asked)
    assert answers[0, 0] == Answer([], "refused", "request 0: needs 8 blocks, has 4")
    assert answers[1, 0].end_reason == "outgrown" and len(answers[1, 0].token_ids) == 12
    assert answers[2, 0].error is None
    assert answers[3, 0].error == "request 3: needs 258 positions, has 256"


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (Request(4, 5, 5), "request 4: prompt_ids=None: a real model needs the tokens"),
        (prompt(4, [1, 61], 5), "token ids run from 0 to 60"),
        (prompt(4, [1], 5, sampling=Sampling(-1.0)), "temperature=-1.0"),
    ],
)
def test_what_the_model_cannot_take_is_named(model, request_: Request, said: str) -> None:
    engine = Engine(model, num_blocks=10, block_size=4)
    with pytest.raises(InvalidArgument, match=said):
        engine.serve([request_])


def test_measured_time_is_the_time_of_the_steps(model) -> None:
    engine = Engine(model, num_blocks=10, block_size=4)
    loop = engine.start([prompt(0, range(5), 5)], {})
    metrics = loop.run()
    assert 0 < metrics.busy_seconds == pytest.approx(loop.now)
    assert torch.is_grad_enabled()


def test_a_run_that_was_broken_off_leaves_nothing_behind(model) -> None:
    engine = Engine(model, num_blocks=20, block_size=4)
    asked = [prompt(i, range(i, i + 9), 9, sampling=Sampling(0.7, seed=i)) for i in range(3)]
    loop = engine.start(asked, {})
    for _ in range(3):
        loop.step()
    assert engine.manager.num_used > 0
    answers = engine.serve(asked)
    assert {n: a.token_ids for n, a in answers.items()} == written_alone(model, asked)
    assert engine.manager.num_free == 20 and broken_rules(engine.manager) == []
