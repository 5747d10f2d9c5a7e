"""Every widget of the course that has controls to move, each as a chapter shows it.

The model is `tiny`, which comes with the package, so that nothing has to be fetched. Questions,
quizzes and interviews are left out: they have buttons and fields, and redraw once per answer.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kvlab.widgets.base import Explorer

PLAIN = (
    "follow_token", "toy_race", "work_explorer", "memory_explorer", "memory_guess",
    "roofline_explorer", "heads_explorer", "catalogue_explorer", "allocation_race",
    "allocator_show", "block_size_explorer", "prefix_explorer", "bits_explorer",
    "serving_explorer", "planner",
)  # fmt: skip
"""Widgets that start without an argument; each lies in a module of its own name."""


def widget_makers() -> dict[str, Callable[[], Explorer]]:
    """Return how each widget is made, by its name, in the order of the chapters.

    >>> list(widget_makers())[0]
    'follow_token'
    """
    makers: dict[str, Callable[[], Any]] = {name: _plain(name) for name in PLAIN}
    makers["block_player"] = _block_player
    makers["share_explorer"] = _share_explorer
    makers["eviction_explorer"] = _eviction_explorer
    return makers


def _plain(name: str) -> Callable[[], Any]:
    return lambda: getattr(import_module(f"kvlab.widgets.{name}"), name)()


def _block_player() -> Any:
    """The widget of chapter 06: 12 blocks of 8 tokens, sequences that come, grow and go."""
    from kvlab.paging import BlockManager, EventLog
    from kvlab.widgets.block_player import block_player

    log = EventLog()
    manager = BlockManager(12, 8, log=log)
    for number, name in enumerate("ABCDEF"):
        if number >= 3:
            manager.free("ABCDEF"[number - 3])
        manager.allocate(name, 11 + 2 * number)
        for _ in range(8):
            manager.append(name)
    return block_player(log.events, num_blocks=12, block_size=8, letters="ABCDEF")


def _share_explorer() -> Any:
    from kvlab.model.attention_share import attention_share
    from kvlab.model.load import load_model
    from kvlab.model.sample_text import sample_ids
    from kvlab.widgets.share_explorer import share_explorer

    loaded = load_model("tiny")
    return share_explorer(attention_share(loaded.model, sample_ids(loaded, 100)), name="tiny")


def _eviction_explorer() -> Any:
    from kvlab.model.eviction_runs import eviction_runs
    from kvlab.model.quality import Bench
    from kvlab.widgets.eviction_explorer import eviction_explorer

    bench = Bench("tiny", tokens=160, facts=8, num_sequences=2)
    return eviction_explorer(eviction_runs(bench, ("window", "h2o"), (100, 50, 25, 12)))
