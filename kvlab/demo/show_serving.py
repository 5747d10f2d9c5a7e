"""Demos of serving: one server under load, and the planner of a deployment."""

from collections.abc import Mapping
from typing import Any

from kvlab.demo.stages import Preset, Stage, put
from kvlab.widgets.base import Explorer, Frame
from kvlab.widgets.planner import planner
from kvlab.widgets.planner_frame import plan_lines, plan_numbers, rank_picture
from kvlab.widgets.planner_inputs import EXAMPLE, PRESETS, planned
from kvlab.widgets.serving_explorer import serving_explorer
from kvlab.widgets.serving_run import STEPS


def wide_planner() -> Explorer:
    """Return the planner with the bars alone in the picture; its numbers stand beside it."""
    show = planner()

    def draw(**chosen: Any) -> Frame:
        made, report = planned(**chosen)
        lines, name = plan_lines(report), report["model"].rsplit("/", 1)[-1]
        picture = rank_picture(made, title=f"{name} on {report['gpus']} GPUs")
        said = [f"{report['verdict']}.", f"{lines['what binds']}."]
        said.append(f"Next change: {lines['next change']}.")
        return Frame(picture, plan_numbers(report), " ".join(said))

    show.draw = draw
    show.redraw()
    return show


_CALM = {
    "rate": 16, "prompt_tokens": 1024, "num_blocks": 2048, "preemption": "recompute",
    "reserve_output": False, "step": STEPS - 1,
}  # fmt: skip
_BURST = _CALM | {"rate": 32, "step": STEPS // 2}


def _pool(show: Any) -> Mapping[str, str]:
    """What the two counts of the planner are called in a sentence."""
    return {"fit": show.numbers["requests at their peak"], "pool": show.numbers[_POOL]}


_POOL = "counted as one pool"
SERVING = (
    Stage(
        "one server",
        serving_explorer,
        "step",
        (
            Preset(
                "A calm day",
                put(**_CALM),
                "{v[rate]} arrivals a second: all {n[answered]} are answered, with a first token "
                "after {n[TTFT p95]} for all but one in twenty.",
            ),
            Preset(
                "A burst: why do they wait?",
                put(**_BURST),
                "{v[rate]} arrivals a second. What does the queue wait for: a seat, blocks or the "
                "token budget? Half of them waited {n[TTFT p50 so far]} or more so far.",
            ),
            Preset(
                "Reserve the answer",
                put(**_BURST | {"reserve_output": True, "step": STEPS - 1}),
                "Nobody comes in without room for the answer: {n[computed again]} computed again, "
                "and yet one in twenty waits {n[TTFT p95]} or more for the first token. No "
                "preemptions is not no trouble.",
            ),
            Preset(
                "Let in what fits now",
                put(**_BURST | {"step": STEPS - 1}),
                "The same traffic with growth not reserved: {n[computed again]} computed again, "
                "one in twenty waits {n[TTFT p95]} or more, {n[tokens/s]} tokens/s.",
            ),
            Preset(
                "Longer prompts",
                put(**_CALM | {"prompt_tokens": 4096}),
                "Prompts of {v[prompt_tokens]} tokens: the sustained batch falls to "
                "{n[sustained batch]}, and {n[tokens/s]} tokens/s are left.",
            ),
            Preset(
                "A larger pool",
                put(**_BURST | {"num_blocks": 16_384, "step": STEPS - 1}),
                "{v[num_blocks]} blocks: {n[computed again]} computed again, and one in twenty "
                "waits {n[TTFT p95]} or more. Memory was what they waited for.",
            ),
        ),
    ),
)
PLANNER = (
    Stage(
        "the plan",
        wide_planner,
        "context",
        (
            Preset(
                "Llama 70B on 8 cards",
                put(**EXAMPLE),
                "{fit} requests of {v[context]} tokens fit on {v[gpus]} GPUs. What would bring "
                "more: another card, or fewer bits?",
                _pool,
            ),
            Preset(
                "MQA: 92 or 11?",
                put(**PRESETS["MQA: 92 or 11?"]),
                "Counted as one pool {pool} requests would fit; on each GPU {fit} do. Every GPU "
                "keeps a copy of the one KV head.",
                _pool,
            ),
            Preset(
                "two cards for DeepSeek-V3",
                put(**PRESETS["two cards for DeepSeek-V3"]),
                "{v[gpus]} GPUs: {fit} requests. The weights alone are too much, whatever the "
                "cache saves.",
                _pool,
            ),
            Preset(
                "Answers grow",
                put(**EXAMPLE | {"context": 8192, "output": 4096}),
                "With {v[output]} tokens of answer reserved, {fit} requests fit; what is admitted "
                "must have room for its peak.",
                _pool,
            ),
            Preset(
                "It fits and is late",
                put(**EXAMPLE | {"ttft": 2}),
                "{fit} requests fit, and the first token comes after {n[first token after]}: a "
                "request may fit and still be late for {v[ttft]}.",
                _pool,
            ),
        ),
    ),
)
