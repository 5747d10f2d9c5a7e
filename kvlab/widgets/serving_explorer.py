"""One server under load: turn its knobs, then walk through the time of the run."""

import ipywidgets as widgets

from kvlab.figures.serving_timeline import said
from kvlab.figures.serving_tracks import serving_tracks
from kvlab.serving.limits import RECOMPUTE, SWAP
from kvlab.serving.watch import NOBODY, Look
from kvlab.widgets.base import Frame
from kvlab.widgets.controls import dropdown, powers
from kvlab.widgets.player import StepPlayer
from kvlab.widgets.serving_run import GPU, MODEL, STEPS, fleet, serving_run

RESERVES = (("what it holds now", False), ("prompt and stated answer", True))
"""What a request must find free before it comes in."""


def serving_frame(
    step: int,
    rate: int = 16,
    prompt_tokens: int = 1024,
    num_blocks: int = 2048,
    preemption: str = RECOMPUTE,
    reserve_output: bool = False,
    *,
    scale: float = 1.0,
) -> Frame:
    """Return the run up to `step` of its time, with what one reads off it there.

    >>> serving_frame(STEPS - 1).readout["answered"]
    '240'
    """
    run = serving_run(rate, prompt_tokens, num_blocks, preemption, reserve_output)
    seen = run.looks[step]
    size = fleet().block_size * num_blocks
    title = f"{MODEL} on one {GPU}, a pool of {num_blocks:,} blocks, {size:,} tokens"
    picture = serving_tracks(run.looks, now=step, title=title, scale=scale)
    return Frame(picture, _times(seen) | run.totals, _words(seen))


def _times(seen: Look) -> dict[str, str]:
    return {
        "TTFT p50 so far": said(seen.ttft_p50, "s"),
        "TTFT p95": said(seen.ttft_p95, "s"),
        "TPOT p50": said(seen.tpot_p50 and 1000 * seen.tpot_p50, "ms"),
        "TPOT p95": said(seen.tpot_p95 and 1000 * seen.tpot_p95, "ms"),
    }


def _words(seen: Look) -> str:
    waits = "nobody waits" if seen.waits_for == NOBODY else f"the next waits for {seen.waits_for}"
    return (
        f"At {said(seen.seconds, 's')}: {seen.running} run, {seen.waiting} wait, "
        f"{seen.block_use:.0%} of the blocks are in use, {seen.preemptions} preemptions so far; "
        f"{waits}. From \u201canswered\u201d on the numbers are those of the whole run."
    )


def serving_explorer(*, start: int | None = None, scale: float = 1.0) -> StepPlayer:
    """Return the player; controls are the parameters of `serving_frame`, and `step`.

    The last seven numbers are those of the whole run.

    >>> show = serving_explorer()
    >>> show.controls["num_blocks"].value = 16384
    >>> show.numbers["computed again"]
    '0 tokens'
    """
    others: dict[str, widgets.Widget] = {
        "rate": powers("arrivals a second", 16, 1, 64),
        "prompt_tokens": powers("prompt, tokens (mean)", 1024, 128, 8192),
        "num_blocks": powers("pool, blocks of 16 tokens", 2048, 256, 16384),
        "preemption": dropdown("when full", [("recompute", RECOMPUTE), ("swap", SWAP)], RECOMPUTE),
        "reserve_output": dropdown("let in who finds room for", RESERVES, False),
    }

    def draw(**values: object) -> Frame:
        return serving_frame(**values, scale=scale)  # type: ignore[arg-type]

    return StepPlayer(
        draw,
        STEPS,
        kind="serving-explorer",
        start=STEPS - 1 if start is None else start,
        others=others,
        name="time, in steps",
        interval_seconds=0.15,
    )
