"""Two more exercises of chapter 03: how many requests fit, and growth measured against theory."""

from kvlab.course import checks_fit, growth_03
from kvlab.course.exercises import Exercise

_ROWS = zip(checks_fit.LENGTHS, checks_fit.that_fit(), strict=True)
_SIZES = ", ".join(f"{n:,}: {checks_fit.request_bytes(n) / 2**30:g} GiB, {fit}" for n, fit in _ROWS)
_IN_GB = ", ".join(str(fit) for fit in checks_fit.that_fit(checks_fit.ROOM_GIB * 10**9))

HOW_MANY_FIT = Exercise(
    id="03-e",
    title="How many fit on the card?",
    statement=(
        "Llama 3.1 8B: 32 layers, 32 query heads, 8 KV heads, head_dim 128, cache in 16 bit. "
        "Beside its weights an 80 GB card has 62 GiB left for caches. How many requests fit if "
        "each holds 2,048 tokens? 8,192? 32,768? 131,072? Payload only. Give four whole numbers "
        "in a list."
    ),
    grade=checks_fit.grade_fit,
    why=(
        f"Bytes of one request, then the room over it, rounded down. {_SIZES}. With 62 GB in "
        f"place of 62 GiB it would be {_IN_GB}: the unit alone moves the answer."
    ),
    hints=(
        "How many bytes does one token take? Section 1 has it.",
        "One request of 8,192 tokens takes exactly 1 GiB. The others are a quarter of it, four "
        "times it and sixteen times it.",
        "62 GiB over the bytes of a request; whole requests only, so round down with `//`.",
    ),
    solution=(
        "per_token = 2 * 32 * 8 * 128 * 2\n"
        "answer = [62 * 2**30 // (per_token * n) for n in (2048, 8192, 32_768, 131_072)]\n"
    ),
)

GROWTH = Exercise(
    id="03-f",
    title="Growth against theory",
    statement=(
        "Measure it yourself. Write `bytes_held(tokens)`: the model at hand reads `tokens` tokens "
        "into a fresh cache and emits one; return the bytes that the cache then holds. The check "
        "calls your function at four lengths and sets its slope beside that of the formula. "
        "Roughly 2 lines."
    ),
    stub="def bytes_held(tokens):\n    # your code\n    ...",
    grade=growth_03.grade_growth,
    why=(
        "Each token adds the same bytes, and nothing is there before the first: a straight line "
        "through zero. The token emitted last is not in it."
    ),
    hints=(
        "Section 2 runs the model: `generate(loaded.model, sample_ids(loaded, 40), ...)`.",
        "Each step that `generate` gives knows its `cache_bytes`; every call has its own cache.",
        "Emit one token with `max_new_tokens=1`, take the last step, return its `cache_bytes`.",
    ),
    solution=(
        "def bytes_held(tokens):\n"
        "    steps = list(generate(loaded.model, sample_ids(loaded, tokens), max_new_tokens=1))\n"
        "    return steps[-1].cache_bytes\n"
    ),
)
