"""Drag the block size: what is wasted at one end, and what has to be kept at the other."""

import random
from functools import lru_cache

import ipywidgets as widgets

from kvlab.arithmetic.catalogue import model_shape
from kvlab.arithmetic.units import format_bytes
from kvlab.figures.curves import Axis, Mark, Series, curve_chart
from kvlab.paging.block_sizes import TABLE_ENTRY_BYTES, BlockSizeCost, block_size_cost
from kvlab.paging.waste import mean_length_for
from kvlab.serving.lengths import parse_lengths
from kvlab.widgets.base import Explorer, Frame
from kvlab.widgets.controls import button, dropdown, powers

SIZES = tuple(1 << i for i in range(10))
NUM_DRAWN, MODEL = 2000, "llama-3.1-8b"
SPREADS = {
    "many short, few long": "lognormal:{mean}:1.0",
    "spread evenly": "uniform:1:{twice}",
    "all alike": "{mean}",
}
_READING = "Solid: counted over 2,000 drawn lengths. Dashed: (block - 1) / 2 slots a sequence."


@lru_cache(maxsize=32)
def costs(spread: str, mean: int) -> tuple[BlockSizeCost, ...]:
    """Return the cost of each size in `SIZES` for 2,000 lengths around a mean, in tokens.

    >>> [round(100 * cost.wasted, 1) for cost in costs("spread evenly", 256)][::4]
    [0.0, 2.8, 33.8]
    """
    lengths = parse_lengths("lengths", SPREADS[spread].format(mean=mean, twice=2 * mean - 1))
    draw = random.Random(f"block sizes {spread} {mean}")
    drawn = [lengths.draw(draw, i) for i in range(NUM_DRAWN)]
    shape = model_shape(MODEL)
    keys = shape.num_kv_heads * shape.head_dim * 2
    return tuple(block_size_cost(drawn, size, bytes_per_token_layer_keys=keys) for size in SIZES)


def block_size_frame(spread: str, mean: int, block_size: int, *, scale: float = 1.0) -> Frame:
    """Return waste against block size for these lengths, and the numbers of one size."""
    found = costs(spread, mean)
    here = found[SIZES.index(block_size)]
    lines = [
        Series("by formula", SIZES, [100 * c.expected for c in found], "weights", "dashed"),
        Series("counted", SIZES, [100 * c.wasted for c in found], "wasted"),
    ]
    picture = curve_chart(
        lines,
        x=Axis("block size, tokens", log=True, base=2),
        y=Axis("slots without a token, % of those taken"),
        marks=[Mark(f"{block_size}: {here.wasted:.1%}", block_size)],
        title=f"Waste of the last block: {spread}, mean {mean:,} tokens",
        reading=_READING,
        height=220,
        scale=scale,
    )
    entries = here.table_entries
    table = format_bytes(round(entries * TABLE_ENTRY_BYTES))
    numbers = {
        "wasted, counted": f"{here.wasted:.2%}",
        "wasted, by formula": f"{here.expected:.2%}",
        "block table, a sequence": f"{entries:,.1f} entries, {table.split(' (')[0]}",
        "new blocks, 1,000 tokens": f"{here.turns:,.1f}",
        "keys of a layer in one piece": format_bytes(here.piece_bytes).split(" (")[0],
        "prefix kept again, each": f"{here.unshared:g} tokens",
    }
    limit = mean_length_for(0.04, block_size) if block_size > 1 else 0
    words = f"Blocks of {block_size}: waste stays under 4 % from a mean of {limit:,.0f} tokens on"
    return Frame(picture, numbers, f"{words}, where lengths are spread evenly.")


class BlockSizeExplorer(Explorer):
    """The explorer; controls are `spread`, `mean` and `block_size`."""

    def __init__(self, spread: str, mean: int, block_size: int, *, scale: float = 1.0) -> None:
        controls: dict[str, widgets.Widget] = {
            "spread": dropdown("lengths", list(SPREADS), spread),
            "mean": powers("mean length, tokens", mean, 16, 8192),
            "block_size": powers("block size, tokens", block_size, SIZES[0], SIZES[-1]),
        }

        def draw(**values: object) -> Frame:
            return block_size_frame(**values, scale=scale)  # type: ignore[arg-type]

        home = button("back to the example", self.reset)
        super().__init__(controls, draw, kind="block-size-explorer", extras=[home])


def block_size_explorer(
    spread: str = "spread evenly", *, mean: int = 256, block_size: int = 16, scale: float = 1.0
) -> BlockSizeExplorer:
    """Return the explorer; pieces are those of Llama 3.1 8B in 16 bit.

    >>> show = block_size_explorer()
    >>> show.controls["block_size"].value = 256
    >>> show.numbers["keys of a layer in one piece"]
    '512.00 KiB'
    """
    return BlockSizeExplorer(spread, mean, block_size, scale=scale)
