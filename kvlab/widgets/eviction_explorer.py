"""One budget, one policy: which positions survive, and what the model still answers.

The runs come in ready, so a move of the slider only draws.
"""

from collections.abc import Iterable

import ipywidgets as widgets

from kvlab.errors import InvalidArgument
from kvlab.figures.survivors import Fact, Strip, survivors
from kvlab.model.eviction_runs import EvictionRun
from kvlab.model.retrieval_language import FACT_TOKENS
from kvlab.widgets.base import Explorer, Frame
from kvlab.widgets.controls import button, dropdown

NAMES = {
    "window": "window: the newest",
    "sinks": "sinks: first 4 and the newest",
    "random": "random",
    "keynorm": "key norm: the shortest keys",
    "keydiff": "key difference: the most distinct keys",
    "h2o": "heavy hitters: attention so far",
    "expected": "expected attention: queries to come",
}
_READING = (
    "A column is a position of the context. Green is held, full green a token of a fact, empty is "
    "gone. Above, each fact: full if its question was answered right, hatched if not."
)


def eviction_frame(run: EvictionRun, texts: int | None = None, *, scale: float = 1.0) -> Frame:
    """Return the map of a run's first text, and the recall over all texts.

    >>> from kvlab.model.eviction_runs import eviction_runs
    >>> from kvlab.model.quality import Bench
    >>> [run] = eviction_runs(Bench("tiny", tokens=64, facts=4, num_sequences=1), ["h2o"], [100])
    >>> eviction_frame(run).readout["budget"]
    '64 tokens (100 %)'
    """
    facts = [
        Fact(start, FACT_TOKENS, answered)
        for start, answered in zip(run.fact_positions, run.answered, strict=True)
    ]
    strips = [
        Strip(f"layer {layer + 1}, KV head {head + 1}", kept)
        for layer, heads in enumerate(run.kept)
        for head, kept in enumerate(heads)
    ]
    picture = survivors(
        strips,
        facts,
        length=run.context_len,
        title=f"{NAMES.get(run.policy, run.policy)}, {run.budget} tokens in each KV head",
        reading=_READING,
        scale=scale,
    )
    readout = {
        "budget": f"{run.budget} tokens ({run.percent} %)",
        "cache at the end": f"{run.cache_bytes:,} bytes",
        "recall, this text": f"{sum(run.answered)} of {len(run.answered)}",
        f"recall, {texts} texts" if texts else "recall, all texts": f"{run.recall:.3f}",
        "loss, all texts": f"{run.loss:.2f} nats",
    }
    return Frame(picture, readout, _event(run))


def _event(run: EvictionRun) -> str:
    """Say what became of the facts, with the first one that was lost."""
    lost = [place for place, right in enumerate(run.answered) if not right]
    if not lost:
        return "Every fact of this text is answered."
    first = lost[0]
    name = run.facts[first].rstrip(".")
    return f"{len(lost)} facts are lost, the first of them {name} at {run.fact_positions[first]}."


def eviction_explorer(
    runs: Iterable[EvictionRun],
    *,
    policy: str = "window",
    percent: int = 25,
    texts: int | None = None,
    scale: float = 1.0,
) -> Explorer:
    """Return the explorer over ready runs; its controls are `policy` and `percent`."""
    found = {(run.policy, run.percent): run for run in runs}
    if (policy, percent) not in found:
        raise InvalidArgument("policy", (policy, percent), "must be among the runs")
    policies = dict.fromkeys(name for name, _ in found)
    percents = sorted({share for _, share in found}, reverse=True)
    controls: dict[str, widgets.Widget] = {
        "policy": dropdown("policy", [(NAMES.get(n, n), n) for n in policies], policy),
        "percent": widgets.SelectionSlider(
            options=[(f"{share} %", share) for share in percents],
            value=percent,
            description="budget, of the tokens read",
            style={"description_width": "initial"},
            layout=widgets.Layout(width="380px"),
        ),
    }

    def draw(policy: str, percent: int) -> Frame:
        return eviction_frame(found[policy, percent], texts, scale=scale)

    home = button("back to the example", lambda: show.reset())
    show = Explorer(controls, draw, kind="eviction-explorer", extras=[home])
    return show
