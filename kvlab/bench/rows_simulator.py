"""Row simulator: requests a second and memory, in a process of its own; beside the plain way."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

from kvlab.bench.lines import Line
from kvlab.bench.setting import Setting

REQUESTS, FEW, TOKENS = 100_000, 5_000, 20_000_000

SCRIPT = """
import json, resource, sys, time
from kvlab.arithmetic.plan_deployment import Deployment
from kvlab.arithmetic.roofline import Device
from kvlab.serving.simulator import simulate
from kvlab.serving.step_clock import StepClock
from kvlab.serving.workloads import make_requests, poisson_arrivals

count, skips = int(sys.argv[1]), sys.argv[2] == "skips"
clock = StepClock(Deployment.of("llama-3.1-8b"), Device.of("H100"))
asked = make_requests(
    count, prompt_tokens="lognormal:500:0.8", output_tokens="lognormal:200:0.6",
    arrivals=poisson_arrivals(20, seed=1), seed=1,
)
started = time.perf_counter()
loop = simulate(asked, clock, num_blocks=20_000, skips=skips)
seconds = time.perf_counter() - started
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
peak *= 1 if sys.platform == "darwin" else 1024
done = loop.metrics.requests_finished
counts = loop.scheduler.counts
print(json.dumps([seconds, peak, done, counts.steps, counts.generation_tokens]))
"""


def rows(setting: Setting) -> Iterator[Line]:
    """Yield 100,000 requests, beside the same simulator taking every step alone; then per token."""
    setting.say(f"simulator: {REQUESTS:,} requests, then {FEW:,} step by step")
    seconds, peak, done, steps, tokens = simulated(REQUESTS, skips=True)
    plain, _, few, *_ = simulated(FEW, skips=False)
    note = f"{steps:,} steps, {done:,} finished, {peak / 2**20:.0f} MiB at most"
    note += f"; the peer is ours too, each step by itself, over {FEW:,} requests; one round"
    yield Line(
        f"simulator: {REQUESTS:,} requests of Llama 3.1 8B on one H100, 20 a second",
        "requests/s",
        ours=done / seconds,
        peer=few / plain,
        peer_name="the same simulator without skipping",
        note=note,
    )
    yield Line(
        f"simulator: {TOKENS:,} generated tokens, on one core",
        "s",
        ours=seconds * TOKENS / tokens,
        note=f"the same run: {tokens:,} tokens in {seconds:.1f} s, {peak / 2**20:.0f} MiB at most",
    )


def simulated(count: int, *, skips: bool) -> tuple[float, int, int, int, int]:
    """Return (seconds, most resident bytes, requests finished, steps, tokens) of its own run."""
    how = "skips" if skips else "plain"
    command = [sys.executable, "-c", SCRIPT, str(count), how]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, peak, finished, steps, tokens = json.loads(done.stdout)
    return seconds, peak, finished, steps, tokens
