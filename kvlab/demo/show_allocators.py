"""Demos of paging: the race of two allocators, the size of a block, and shared prefixes."""

from typing import Any

from kvlab.demo.stages import Preset, Stage, put
from kvlab.widgets.allocator_show import AllocatorShow, allocator_show
from kvlab.widgets.block_size_explorer import block_size_explorer
from kvlab.widgets.prefix_explorer import DATED, SALTED, STABLE, prefix_explorer

MIXED = {"lengths": "a few long, many short", "policy": "max", "block_size": 16}


def _refusal(which: int, **changes: Any) -> Any:
    """Return what goes to the first refusal of one piece each (0) or of blocks (1)."""

    def go(show: AllocatorShow) -> None:
        show.set(**MIXED | changes)
        show.to_refusal(which)

    return go


def _play(show: AllocatorShow) -> None:
    show.set(**MIXED, step=0)
    show.toggle()


ALLOCATORS = (
    Stage(
        "one stream, two memories",
        allocator_show,
        "step",
        (
            Preset(
                "Play until one refuses",
                _play,
                "Both memories get the same requests at the same steps. Which one refuses first, "
                "and with how much of it empty?",
            ),
            Preset(
                "The first refusal",
                _refusal(0),
                "One piece each runs {n[one piece each: running]} requests and refuses the next, "
                "with {n[one piece each: of slots wasted]} of the slots it took still empty. "
                "Blocks run {n[blocks: running]} and waste {n[blocks: of slots wasted]}.",
            ),
            Preset(
                "Blocks refuse",
                _refusal(1),
                "Step {v[step]}: blocks run {n[blocks: running]} requests at up to "
                "{n[blocks: tokens/s]} tokens/s, one piece each {n[one piece each: running]} at "
                "{n[one piece each: tokens/s]}. A larger batch shares the weights.",
            ),
            Preset(
                "If lengths were known",
                _refusal(0, policy="exact"),
                "Even the exact length, which no server knows, refuses at step {v[step]} with "
                "{n[one piece each: running]} running: {n[one piece each: of slots wasted]} of "
                "its slots wait for tokens that are still to come.",
            ),
            Preset(
                "Blocks as large as a piece",
                _refusal(1, block_size=256),
                "A block of {v[block_size]} tokens is a reservation again: it runs "
                "{n[blocks: running]} requests and wastes {n[blocks: of slots wasted]}.",
            ),
        ),
    ),
)
BLOCK_SIZE = (
    Stage(
        "waste against size",
        block_size_explorer,
        "block_size",
        (
            Preset(
                "vLLM's default",
                put(spread="spread evenly", mean=256, block_size=16),
                "Blocks of {v[block_size]}: {n[wasted, counted]} of the slots taken hold nothing, "
                "and a sequence has a table of {n[block table, a sequence]}.",
            ),
            Preset(
                "Blocks of one token",
                put(spread="spread evenly", mean=256, block_size=1),
                "{n[wasted, counted]} wasted, but {n[block table, a sequence]} of table and "
                "{n[keys of a layer in one piece]} of keys read at a time.",
            ),
            Preset(
                "Large blocks, short answers",
                put(spread="many short, few long", mean=128, block_size=256),
                "{n[wasted, counted]} wasted: most sequences never fill their first block.",
            ),
        ),
    ),
)
PREFIX = (
    Stage(
        "a tree of blocks",
        prefix_explorer,
        "step",
        (
            Preset(
                "The stable part first",
                put(layout=STABLE, block_size=4, num_blocks=16, step=2),
                "The second request: {n[this request]}. What would a date at the top change?",
            ),
            Preset(
                "A date at the top",
                put(layout=DATED, block_size=4, num_blocks=16, step=2),
                "Now {n[this request]}: a block's name covers everything before it.",
            ),
            Preset(
                "A salt for each tenant",
                put(layout=SALTED, block_size=4, num_blocks=16, step=6),
                "Blocks are found by the same tenant alone: {n[shared so far]} shared in all.",
            ),
            Preset(
                "Nobody runs, memory is full",
                put(layout=STABLE, block_size=4, num_blocks=8, step=5),
                "{n[blocks idle]} blocks are idle: nobody holds them, they can still be found, "
                "and they are given away when room is needed.",
            ),
        ),
    ),
)
