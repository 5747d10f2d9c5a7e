"""The example of every figure that the gallery shows; the numbers only have to look real."""

from collections.abc import Callable

from kvlab.figures import (
    attention,
    bars,
    blocks,
    cards,
    comparison,
    curves,
    race,
    ratio_bars,
    recompute,
    strips,
    tables,
    token_forwards,
)
from kvlab.figures.curves import Axis, Mark, Series
from kvlab.figures.toy_step import toy_step
from kvlab.model.toy import Toy, ToyCache
from kvlab.widgets.allocator_show import show_frame
from kvlab.widgets.memory_guess import memory_guess
from kvlab.widgets.toy_race import toy_race_frame

GIB, GB = 2**30, 10**9
LETTERS = list("ABCDEFGH")


def _memory() -> str:
    segments = [
        bars.Segment("weights", 16_060_000_000, "weights", "16.1 GB"),
        bars.Segment("24 requests x 8,192", 24 * GIB, "value", "25.8 GB = 24.0 GiB"),
        bars.Segment("room for 33 more", 36_100_000_000, "free", "36.1 GB"),
        bars.Segment("overhead", 2 * GB, "wasted", "2 GB", hatched=True),
    ]
    return bars.memory_bar(
        segments,
        capacity=80 * GB,
        title="Where the memory goes",
        reading="The bar is one card. The green part is the only one that grows.",
        caption="one 80 GB card, 8B model, 16-bit cache",
        markers=[bars.Marker("cache = weights at 14.96 requests", 2 * 16_060_000_000)],
        guess=bars.Marker("your guess: 40 GB", 40 * GB),
    )


def _too_much() -> str:
    segments = [
        bars.Segment("weights", 140 * GB // 2, "weights", "70 GB"),
        bars.Segment("cache", 30 * GB, "value", "30 GB = 27.9 GiB"),
    ]
    return bars.memory_bar(segments, capacity=80 * GB, title="Too much for one card")


def _lanes() -> str:
    text = " Paris. The capital of France is the city of Paris, on the Seine"
    lanes = [
        race.Lane("recompute everything", text[:17], 4, 16, 1.93, 0, 38, "running", "wasted"),
        race.Lane("keep keys and values", text, 16, 16, 0.82, 483_840, 21, "finished", "value"),
    ]
    return race.race(lanes, prompt="The capital of France is", title="The same text, twice")


def _ratios() -> str:
    rows = [
        ratio_bars.RatioBar("decode: batch 1", 2.6, "2.6x transformers", 0.84, "84 %", "met"),
        ratio_bars.RatioBar("cache-bits: FP8", 0.4, "0.4x transformers", None, "", "missed"),
        ratio_bars.RatioBar("train-tiny: a step", None, "no peer", 0.5, "50 %"),
    ]
    return ratio_bars.ratio_bars(rows, title="kvlab bench", reading="Examples, not measured.")


def _table() -> str:
    rows = [["1 user", "0.25", "16.0"], ["100 users", "25.0", "1,600.0"]]
    head = ["cache in GiB", "2K context", "128K context"]
    return tables.table(head, rows, caption="Llama 3.1 8B, 16-bit cache", numeric=[1, 2])


def _claims() -> str:
    return cards.claim(
        "The KV cache of a 70B model needs 2.5 MB per token.",
        source="a published chapter, read 2026-11",
        verdict="wrong",
        learner="holds",
        computed={"published": "2.5 MB", "computed": "320 KiB (328 kB)", "ratio": "8.0"},
        condition="It counts 64 query heads; the cache holds 8 KV heads.",
    )


def _blocks() -> str:
    owners = [0, 0, 1, None, 2, 2, 0, 2, 1, None, 1, 3, 3, None, 2, 4, 4]
    made = [
        blocks.Block(i, () if owner is None else (owner,), 0 if owner is None else 16)
        for i, owner in enumerate(owners)
    ]
    made += [
        blocks.Block(17, (4,), 6),
        blocks.Block(18, (0, 1), 16),
        blocks.Block(19, (2,), 8),
        blocks.Block(20, (1,), 15),
        blocks.Block(21, (5,), 1),
        blocks.Block(22),
    ]
    return blocks.block_map(
        made,
        block_size=16,
        table_of=1,
        table=[18, 2, 8, 10, 20],
        fresh=[20],
        title="Paged allocation",
        reading="Each letter is a request; its blocks may lie anywhere. Hatched is allocated but "
        "empty; two letters share a block.",
    )


def _curves() -> str:
    tokens = [2**i for i in range(13)]
    lines = [
        Series("uncached", tokens, [n * 64 + n * (n - 1) / 2 for n in tokens], "wasted", "dashed"),
        Series("cached", tokens, [64 + n - 1 for n in tokens], "value"),
    ]
    axes = {"x": Axis("new tokens N", log=True, base=2), "y": Axis("token-forwards", log=True)}
    return curves.curve_chart(lines, marks=[Mark("N = P", 64)], title="Two growths", **axes)


def _triangle() -> str:
    rows = [[1.0], [0.3, 0.7], [0.1, 0.2, 0.7], [0.05, 0.05, 0.1, 0.8]]
    return attention.attention_triangle(list("ABCD"), rows, title="Who looks at whom")


def _toy(num_heads: int, letters: str) -> str:
    cache = ToyCache(num_heads)
    steps = [Toy(num_heads).step(cache, letter) for letter in letters]
    return toy_step(steps[-1])


EXAMPLES: dict[str, Callable[[], str]] = {
    "token_strip": lambda: strips.token_strip(LETTERS, current=3),
    "cache_rows": lambda: strips.cache_rows(
        LETTERS,
        ["read"] * 3 + ["written"] + ["absent"] * 4,
        title="The cache at the step of D",
        reading="Outlined cells are written this step, pale cells are read from the cache, "
        "dashed cells do not exist yet.",
    ),
    "toy_step": lambda: _toy(1, "ABCD"),
    "toy_step_two_heads": lambda: _toy(2, "ABCDEFGH"),
    "step_columns": lambda: recompute.step_columns(LETTERS, 4),
    "token_staircases": lambda: token_forwards.token_staircases(LETTERS, 3),
    "attention_bars": lambda: attention.attention_bars(
        LETTERS, [0.06, 0.11, 0.17, 0.66, None, None, None, None], query=3
    ),
    "attention_triangle": _triangle,
    "block_map": _blocks,
    "curve_chart": _curves,
    "memory_bar": _memory,
    "memory_bar_full": _too_much,
    "compare_bars": lambda: comparison.compare_bars(
        [
            comparison.Bar("with a cache", 2999, "2,999 token-forwards", "value", ghost=9000),
            comparison.Bar("without", 24995, "24,995 token-forwards", "wasted", hatched=True),
        ],
        title="Token-forwards of one answer",
    ),
    "ratio_bars": _ratios,
    "race": _lanes,
    "toy_race": lambda: toy_race_frame(27).picture,
    "allocator_columns": lambda: show_frame("a few long, many short", "max", 16, 48).picture,
    "guess_bar": lambda: memory_guess(guess="20 GB", shown=True).frame.picture,
    "guess_bar_asks": lambda: memory_guess(guess="70 GB").frame.picture,
    "guess_bar_too_much": lambda: memory_guess(guess="300 GB", shown=True).frame.picture,
    "table": _table,
    "readout": lambda: cards.readout({"per token": "320 KiB", "32K context": "10.0 GiB (10.7 GB)"}),
    "prediction": lambda: cards.prediction(
        "How many bytes does one token cost in Llama 3.1 70B?",
        guess="1 MiB",
        value="320 KiB (328 kB)",
        remark="You were 3.2 times too high. Count `num_kv_heads`, not query heads.",
    ),
    "prediction_open": lambda: cards.prediction("How many bytes does one token cost?"),
    "claim_open": lambda: cards.claim("Caching makes a step O(1).", source="a blog post, 2025"),
    "claim": _claims,
    "feedback_right": lambda: cards.feedback("right", "320 KiB: 2 x 80 x 8 x 128 x 2 bytes."),
    "feedback_wrong": lambda: cards.feedback("wrong", "You used the 64 query heads."),
    "checklist": lambda: cards.checklist(
        [
            ("python", "3.11.9", True, ""),
            ("smollm2", "not here", False, "run: kvlab fetch smollm2"),
        ],
        title="This machine",
    ),
    "progress": lambda: cards.progress(3, 12, doing="training"),
}
