"""Row train-tiny: seconds of a training step beside the least that its arithmetic takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvlab.bench.lines import Line
from kvlab.bench.rates import matrix_rate, multipliers
from kvlab.bench.setting import Setting
from kvlab.bench.timing import Work, interleaved

STAGE = 8
"""The first long stage of the recipe: 32 facts in 256 tokens."""


def rows(setting: Setting) -> Iterator[Line]:
    """Yield one line: the step of `tiny`'s recipe at sequences of 256 tokens."""
    from kvlab.model.train_loop import train_step
    from kvlab.model.train_plan import TrainSettings
    from kvlab.model.train_state import TrainState

    state = TrainState.new(TrainSettings(num_kv_heads=2))
    state.step, state.stage_index = 1, STAGE
    flops, tokens = step_flops(state)
    rates = multipliers()
    works: dict[str, Work] = {"step": lambda: train_step(state), **rates}
    setting.say("train-tiny: a step")
    times = interleaved(works, setting.times(7))
    rate = matrix_rate(rates, times)
    note = f"{tokens:,} tokens, {flops / 1e9:.1f} GFLOP (3 times the forward pass)"
    note += f" at {rate / 1e9:,.0f} GFLOP/s; the batch is made in the step too"
    yield Line(
        "train-tiny: a step of 256-token sequences", "ms",
        ours=1000 * times["step"].median, limit=1000 * flops / rate,
        spread=times["step"].spread, note=note,
    )  # fmt: skip


def step_flops(state: Any) -> tuple[int, int]:
    """Return (FLOPs, tokens) of a training step, counted: backward takes twice the forward.

    Attention is counted as the mask needs it.
    """
    import torch

    from kvlab.model.count_run import count_run
    from kvlab.model.train_plan import batch_for

    _, batch = batch_for(state.step, state.stage_index, state.settings)
    with count_run(state.model) as count, torch.no_grad():
        state.model(torch.from_numpy(batch.input_ids))
    return 3 * count.flops.total, count.token_forwards
