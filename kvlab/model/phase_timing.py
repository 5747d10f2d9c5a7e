"""Time the two phases of a real run, beside the work and the bytes they need at least.

The work is that of `kvlab.arithmetic.roofline_work`; the seconds are those of this machine. How
busy the processor looks is what the operating system reports. Left out: engines, many GPUs.
"""

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import torch

from kvlab.arithmetic.checks import whole_number
from kvlab.arithmetic.plan_deployment import Deployment
from kvlab.arithmetic.roofline_work import StageWork, decode_work, prefill_work
from kvlab.model.decode import Step, generate
from kvlab.model.load import LoadedModel
from kvlab.model.sample_text import sample_ids

_FORMATS = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}
_QUERY = ("nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits")


@dataclass(frozen=True)
class PhaseTiming:
    """One pass of a phase: `tokens` fed in it, over the batch, its work, and its seconds.

    `busy` is the utilisation that the system reports meanwhile, 0 to 1, None where it is not known.
    """

    name: str
    tokens: int
    work: StageWork
    seconds: float
    busy: float | None = None

    @property
    def flops_per_second(self) -> float:
        """The arithmetic that was needed, over the time it took."""
        return self.work.flops / self.seconds

    @property
    def bytes_per_second(self) -> float:
        """Weights and cache over the time it took: each counted once, the input embedding too."""
        return self.work.bytes / self.seconds

    @property
    def tokens_per_second(self) -> float:
        """Tokens fed a second."""
        return self.tokens / self.seconds


def deployment_of(loaded: LoadedModel) -> Deployment:
    """Return a loaded model as the arithmetic sees it: one rank, weights and cache in its dtype."""
    dtype = _FORMATS[loaded.dtype]
    config = loaded.source / "config.json"
    return Deployment.of(config, weights_dtype=dtype, cache_dtype=dtype)


def time_phases(
    loaded: LoadedModel, *, prompt_tokens: int, new_tokens: int = 9, batch: int = 1
) -> tuple[PhaseTiming, PhaseTiming]:
    """Run `batch` equal prompts and return (prefill, decode).

    The decode pass is the median one, with the work of the middle step. A first short run is
    left out. The same text in every row is no shortcut: nothing is shared between rows.
    """
    steps = whole_number("new_tokens", new_tokens, minimum=2)
    ids = sample_ids(loaded, prompt_tokens).repeat(whole_number("batch", batch), 1)
    list(generate(loaded.model, ids[:, -2:], max_new_tokens=2))
    run = generate(loaded.model, ids, max_new_tokens=steps)
    first, busy_prefill = _watched(lambda: [next(run)], loaded.device)
    rest, busy_decode = _watched(lambda: list(run), loaded.device)
    model = deployment_of(loaded)
    (reading,) = prefill_work(model, prompt_tokens, batch)
    (writing,) = decode_work(model, prompt_tokens + (steps - 1) // 2, batch)
    seconds = median(step.seconds for step in rest)
    return (
        PhaseTiming("prefill", ids.numel(), reading, first[0].seconds, busy_prefill),
        PhaseTiming("decode", batch, writing, seconds, busy_decode),
    )


def _watched(
    work: Callable[[], list[Step]], device: torch.device
) -> tuple[list[Step], float | None]:
    started, used, before = perf_counter(), process_time(), _cpu_ticks()
    done = work()
    wall, used = perf_counter() - started, process_time() - used
    if device.type == "cuda":
        return done, _gpu_utilisation()
    ticks = [after - earlier for after, earlier in zip(_cpu_ticks(), before, strict=True)]
    if sum(ticks) > 0:
        return done, ticks[0] / sum(ticks)
    return done, min(used / (wall * cores()), 1.0)


def _cpu_ticks() -> tuple[int, int]:
    """Return the ticks that all processors were busy and idle since the start; Linux only.

    Elsewhere (0, 0): then the processor time of this process alone is taken.
    """
    try:
        first = Path("/proc/stat").read_text(encoding="utf-8").splitlines()[0]
        numbers = [int(word) for word in first.split()[1:9]]  # user nice system idle iowait ...
    except (OSError, ValueError, IndexError):
        return 0, 0
    idle = sum(numbers[3:5])
    return sum(numbers) - idle, idle


def cores() -> int:
    """Return the processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _gpu_utilisation() -> float | None:
    """Return what the driver's tool reports for the first GPU over its last sampling period."""
    try:
        shown = subprocess.run(_QUERY, capture_output=True, text=True, timeout=5, check=True)
        return int(shown.stdout.split()[0]) / 100
    except (OSError, ValueError, IndexError, subprocess.SubprocessError):
        return None
