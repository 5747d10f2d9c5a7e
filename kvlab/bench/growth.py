"""How costs grow: each as a curve over its size, with the exponent that fits it best.

An exponent of 1 is linear; 0 does not grow. Curves come instead of the rows, with --growth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

from kvlab.bench.limits import slope
from kvlab.bench.lines import Line, short
from kvlab.bench.setting import Setting
from kvlab.errors import InvalidArgument

if TYPE_CHECKING:
    from kvlab.model.load import LoadedModel

CONTEXTS = (128, 256, 512, 1024, 2048, 4096, 8176)
BATCHES = (1, 2, 4, 8, 16, 32)
PROMPTS = (1_000, 4_000, 16_000, 64_000, 256_000)
REQUESTS = (1_000, 10_000, 100_000, 1_000_000)


@dataclass(frozen=True)
class Curve:
    """One cost: the row it belongs to, the size and its values, the seconds at each.

    `ends` says over which part the exponent is fitted: all, or the last points only, where a
    constant part would hide the growth.
    """

    row: str
    cost: str
    size: str
    xs: Sequence[float]
    seconds: Sequence[float]
    ends: int = 0

    @property
    def exponent(self) -> float:
        """Return the slope in a log-log plot."""
        first = -self.ends if self.ends else 0
        return slope(list(self.xs)[first:], list(self.seconds)[first:])

    def line(self) -> Line:
        """Return the curve as a line: its exponent, and every point in the note."""
        points = ", ".join(
            f"{int(x):,}: {short(1000 * y)}" for x, y in zip(self.xs, self.seconds, strict=True)
        )
        fitted = f", fitted over the last {self.ends}" if self.ends else ""
        work = f"{self.row}: growth of {self.cost} with {self.size}"
        return Line(work, unit="exponent", ours=self.exponent, note=f"ms at {points}{fitted}")


def decode_curves(setting: Setting) -> Iterator[Curve]:
    """Yield a decode step and a prefill over the context; both from the same runs."""
    from kvlab.bench.ours import OurDecoder
    from kvlab.model.sample_text import sample_ids

    loaded = setting.loaded()
    ours = OurDecoder(loaded, max_seq_len=max(CONTEXTS) + 8)
    steps, reads = [], []
    for context in CONTEXTS:
        setting.say(f"growth: context of {context:,}")
        runs = [ours.write(sample_ids(loaded, context), 8) for _ in range(2)]
        steps.append(min(run.step_seconds for run in runs))
        reads.append(min(run.prefill_seconds for run in runs))
    yield Curve("decode", "a decode step", "context", CONTEXTS, steps, ends=3)
    yield Curve("prefill", "a prefill", "prompt tokens", CONTEXTS, reads, ends=3)


def batch_curves(setting: Setting) -> Iterator[Curve]:
    """Yield the seconds of a batch over its size: prompts of 64 tokens, 8 new."""
    loaded = setting.loaded()
    seconds = []
    for batch in BATCHES:
        setting.say(f"growth: batch of {batch}")
        seconds.append(_served(loaded, batch))
    yield Curve("batch", "a whole batch", "requests in it", BATCHES, seconds, ends=3)


def _served(loaded: LoadedModel, batch: int) -> float:
    from kvlab.bench.ours import serve_seconds

    prompts = [[(7 * row + place) % 1000 + 5 for place in range(64)] for row in range(batch)]
    return min(serve_seconds(loaded, prompts, 8) for _ in range(2))


def allocator_curves(setting: Setting) -> Iterator[Curve]:
    """Yield a prompt let in and found again over its length, and a trace over its requests."""
    from kvlab.bench.allocator_ours import play_manager
    from kvlab.bench.allocator_trace import make_trace

    setting.say("growth: allocator")
    let_in = [_let_in(tokens) for tokens in PROMPTS]
    yield Curve("allocator", "letting a prompt in, twice", "prompt tokens", PROMPTS, let_in)
    counts = (50, 100, 200, 400, 800)
    seconds = []
    for count in counts:
        trace = make_trace(count, block_size=16)
        seconds.append(min(play_manager(trace, "asks").seconds for _ in range(3)))
    yield Curve("allocator", "a trace", "requests", counts, seconds)


def _let_in(tokens: int) -> float:
    """Return the seconds to let a prompt in, commit it, let it go and find it again."""
    from kvlab.paging import BlockManager

    ids, best = list(range(tokens)), float("inf")
    for _ in range(5):
        manager = BlockManager(tokens // 16 + 2, 16)
        started = perf_counter()
        manager.allocate(0, ids)
        manager.commit(0, ids)
        manager.free(0)
        manager.allocate(1, ids)
        best = min(best, perf_counter() - started)
    return best


def simulator_curves(setting: Setting) -> Iterator[Curve]:
    """Yield a simulation over its requests: short ones, so that a million take minutes."""
    from kvlab.arithmetic.plan_deployment import Deployment
    from kvlab.arithmetic.roofline import Device
    from kvlab.serving.simulator import simulate
    from kvlab.serving.step_clock import StepClock
    from kvlab.serving.workloads import make_requests, poisson_arrivals

    seconds = []
    for count in REQUESTS:
        setting.say(f"growth: {count:,} requests")
        clock = StepClock(Deployment.of("llama-3.1-8b"), Device.of("H100"))
        asked = make_requests(
            count, prompt_tokens="uniform:50:150", output_tokens="uniform:5:35",
            arrivals=poisson_arrivals(50, seed=1), seed=1,
        )  # fmt: skip
        started = perf_counter()
        simulate(asked, clock, num_blocks=20_000)
        seconds.append(perf_counter() - started)
    yield Curve("simulator", "a simulation", "requests", REQUESTS, seconds)


def start_curves(setting: Setting) -> Iterator[Curve]:
    """Yield the reading of the catalogue's configs, and one plan each, over the models."""
    from kvlab.arithmetic.catalogue import load_models
    from kvlab.arithmetic.reader import read_model

    setting.say("growth: models of the catalogue")
    every = [dict(row.config) for row in load_models()]
    counts = [count for count in (4, 8, 16, 32, 64, 128) if count <= len(every)]
    seconds = []
    for count in counts:
        best = float("inf")
        for _ in range(3):
            started = perf_counter()
            for config in every[:count]:
                read_model(config)
            best = min(best, perf_counter() - started)
        seconds.append(best)
    yield Curve("start", "reading configs", "models", counts, seconds)


def grown(rows: Sequence[str], setting: Setting) -> Iterator[Curve]:
    """Yield the curves of these rows; raises `InvalidArgument` where none of them has one."""
    wanted = {"decode" if row == "prefill" else row for row in rows} & set(GROWTH)
    if not wanted:
        raise InvalidArgument("only", list(rows), f"curves are kept of {', '.join(GROWTH)}")
    for name, curves in GROWTH.items():
        if name in wanted:
            yield from curves(setting)


GROWTH: dict[str, Callable[[Setting], Iterator[Curve]]] = {
    "decode": decode_curves,
    "batch": batch_curves,
    "start": start_curves,
    "allocator": allocator_curves,
    "simulator": simulator_curves,
}
"""Row -> what grows in it; the row decode gives the prefill's curve too."""
