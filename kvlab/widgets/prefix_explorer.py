"""Requests with a common beginning, step by step: what is shared, what stays, what is lost."""

from functools import lru_cache

import ipywidgets as widgets

from kvlab.figures.prefix_tree import TreeBlock, prefix_tree
from kvlab.paging.prefix_story import Arrival, Departure, Scene, tell
from kvlab.widgets.base import Frame
from kvlab.widgets.controls import dropdown
from kvlab.widgets.player import StepPlayer

STABLE, DATED, SALTED = "stable part first", "a date at the top", "a salt for each tenant"
LAYOUTS = (STABLE, DATED, SALTED)
SYSTEM = "You are a careful librarian . Answer in one short line ."
QUESTIONS = ("Who wrote Emma ?", "Where is Oslo ?", "Who wrote Dracula and in which year ?")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday")
TENANTS = ("red", "blue", "red", "blue")
_READING = (
    "A block stands right of the block before it. Full blocks can be shared; a dashed one is idle:"
    " nobody holds it, and it can still be found."
)


def story(layout: str) -> tuple[Arrival | Departure, ...]:
    """Return the events: three requests come, two end, and one comes again.

    >>> [event.number for event in story(STABLE)]
    [0, 1, 0, 2, 1, 3]
    """
    texts = (*QUESTIONS, QUESTIONS[0])
    come = []
    for number, question in enumerate(texts):
        words = [*SYSTEM.split(), *question.split()]
        if layout == DATED:
            words = ["Today", "is", DAYS[number], ".", *words]
        salt = TENANTS[number] if layout == SALTED else None
        come.append(Arrival(number, tuple(words), salt))
    return (come[0], come[1], Departure(0), come[2], Departure(1), come[3])


@lru_cache(maxsize=64)
def scenes(layout: str, block_size: int, num_blocks: int) -> tuple[Scene, ...]:
    """Return the scenes of the story for a pool, computed once."""
    return tuple(tell(story(layout), num_blocks=num_blocks, block_size=block_size))


def prefix_frame(
    step: int, layout: str, block_size: int, num_blocks: int, *, scale: float = 1.0
) -> Frame:
    """Return the tree after `step` events, and what sharing saved so far.

    >>> frame = prefix_frame(2, STABLE, 4, 16)
    >>> frame.readout["this request"]
    '12 tokens shared, 4 computed'
    """
    scene = scenes(layout, block_size, num_blocks)[step]
    blocks = [
        TreeBlock(n.block_id, n.parent, " ".join(n.words), n.owners, n.findable, n.fresh, n.hit)
        for n in scene.nodes
    ]
    picture = prefix_tree(
        blocks,
        title=f"Blocks of {block_size} tokens, {num_blocks} in the pool",
        reading=_READING,
        empty="no block is held and none can be found",
        scale=scale,
    )
    asked = scene.computed_in_all + scene.shared_in_all
    rate = f" ({scene.shared_in_all / asked:.0%})" if asked else ""
    readout = {
        "this request": f"{scene.shared} tokens shared, {scene.computed} computed",
        "shared so far": f"{scene.shared_in_all} of {asked} tokens{rate}",
        "blocks free": f"{scene.num_free}",
        "blocks idle": f"{scene.num_idle}",
    }
    return Frame(picture, readout, scene.said)


def prefix_explorer(
    *,
    layout: str = STABLE,
    block_size: int = 4,
    num_blocks: int = 16,
    start: int = 2,
    scale: float = 1.0,
) -> StepPlayer:
    """Return the player; controls are `layout`, `block_size`, `num_blocks` and `step`.

    >>> show = prefix_explorer()
    >>> show.controls["layout"].value = DATED
    >>> show.numbers["this request"]
    '0 tokens shared, 20 computed'
    """
    others: dict[str, widgets.Widget] = {
        "layout": dropdown("prompt", LAYOUTS, layout),
        "block_size": dropdown("block size, tokens", (4, 8, 16), block_size),
        "num_blocks": dropdown("blocks in the pool", (6, 8, 12, 16, 24), num_blocks),
    }

    def draw(step: int, **values: object) -> Frame:
        return prefix_frame(step, **values, scale=scale)  # type: ignore[arg-type]

    count = len(story(layout)) + 1
    return StepPlayer(draw, count, kind="prefix-explorer", start=start, others=others, name="event")
