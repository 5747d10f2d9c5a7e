"""Configs that write their layers out: names, letters, digits, cycles, numbers, loops.

Each reader gives one type name a layer, or None when the config does not use its spelling.
"""

from collections.abc import Iterable

from kvlab.arithmetic.checks import whole_number
from kvlab.arithmetic.config_fields import Config
from kvlab.arithmetic.config_forms import MAX_LAYERS, few, listed, numbers, refuse, table

FULL, SLIDING, HYBRID = "full_attention", "sliding_attention", "hybrid"
LINEAR, CONV, CROSS, NO_CACHE = "linear_attention", "conv", "cross_attention", "none"
LETTERS = {"M": LINEAR, "*": FULL, "-": NO_CACHE, "E": NO_CACHE, "L": SLIDING, "G": FULL}


def listed_types(config: Config, count: int) -> list[str] | None:
    """Names, one a layer."""
    for key in ("layer_types", "layers_block_type", "layer_block_types", "mixer_types"):
        if names := listed(config, key):
            return [str(name) for name in names]
    return None


def lettered(config: Config, count: int) -> list[str] | None:
    """One letter a layer (Nemotron-H), or letters that repeat (Exaone 4)."""
    pattern = config.raw.get("hybrid_override_pattern")
    if pattern is not None:
        if not isinstance(pattern, str) or not pattern or set(pattern) - set(LETTERS):
            rule = f"must be a text of the letters {' '.join(LETTERS)}"
            raise refuse(config, "hybrid_override_pattern", rule)
        return [LETTERS[letter] for letter in pattern]
    cycle = config.raw.get("sliding_window_pattern")
    if isinstance(cycle, str) and cycle and set(cycle) <= set(LETTERS):
        return [LETTERS[cycle[i % len(cycle)]] for i in range(count)]
    return None


def numbered(config: Config, count: int) -> list[str] | None:
    """Lists of 0 and 1: what each digit means depends on the key."""
    meanings = {
        "attn_type_list": (LINEAR, FULL),  # MiniMax: 1 is softmax attention
        "hybrid_layer_pattern": (FULL, SLIDING),  # MiMo: 1 is windowed
        "is_sliding": (FULL, SLIDING),
    }
    for key, meaning in meanings.items():
        if digits := listed(config, key):
            if not all(isinstance(digit, int) and digit in (0, 1) for digit in digits):
                raise refuse(config, key, "must be a list of 0 and 1")
            return [meaning[digit] for digit in digits]
    return None


def cycled(config: Config, count: int) -> list[str] | None:
    """A short list that repeats: RecurrentGemma's blocks, GPT-Neo's attention."""
    for key in ("block_types", "_block_types"):
        if blocks := listed(config, key):
            names = {"recurrent": LINEAR, "attention": SLIDING}
            cycle = [names.get(str(block), str(block)) for block in blocks]
            return [cycle[i % len(cycle)] for i in range(count)]
    groups = listed(config, "attention_types")
    return None if groups is None else [name for group in groups for name in _group(config, group)]


def _group(config: Config, group: object) -> list[str]:
    """GPT-Neo: [["global", "local"], 12] stands for 12 such pairs."""
    if not isinstance(group, (list, tuple)) or len(group) != 2 or not isinstance(group[0], list):
        raise refuse(config, "attention_types", "must hold pairs of a list of names and a number")
    times = min(whole_number(f"config.{config.block}attention_types", group[1]), MAX_LAYERS)
    return [SLIDING if kind == "local" else FULL for kind in group[0]] * times


def indexed(config: Config, count: int) -> list[str] | None:
    """Lists of layer numbers."""
    linear = table(config, "linear_attn_config") or {}
    inner = Config(linear, config.notes, block=f"{config.block}linear_attn_config.")
    full = numbers(inner, "full_attn_layers", minimum=1)
    if full is not None:  # Kimi: counted from 1
        return _choose(count, {number - 1 for number in full}, FULL, LINEAR)
    for key, chosen_type, other in (
        ("attn_layer_indices", FULL, LINEAR),
        ("full_attn_idxs", FULL, CONV),
        ("full_attention_layers", FULL, LINEAR),
        ("hybrid_layer_ids", HYBRID, LINEAR),
        ("local_layer_ids", "hybrid_sliding", HYBRID),
        ("cross_attention_layers", CROSS, FULL),
        ("global_attention_layers", FULL, SLIDING),
    ):
        chosen = numbers(config, key)
        if chosen is not None:
            return _choose(count, set(chosen), chosen_type, other)
    return None


def _choose(count: int, chosen: Iterable[int], yes: str, no: str) -> list[str]:
    return [yes if i in chosen else no for i in range(count)]


def layer_order(config: Config, count: int) -> list[int]:
    """Return the layers in the order in which they store: a looped layer once for each pass.

    >>> fields = {"loop_layer_index_start": 1, "loop_layer_index_end": 3, "loop_num_passes": 2}
    >>> layer_order(Config(fields, []), 4)
    [0, 1, 2, 1, 2, 3]
    """
    start_key, passes_key, end = "loop_layer_index_start", "loop_num_passes", 0
    if config.optional(passes_key) is not None:
        end = few(config, "loop_layer_index_end", default=count)
    elif config.raw.get("recurrent_kv_cache_mode", "per_loop") == "per_loop":
        start_key, passes_key = "n_input_layers", "n_recurrent_loops"
    if config.optional(passes_key) in (None, 1):
        return list(range(count))
    passes, start = few(config, passes_key), few(config, start_key, default=0, minimum=0)
    end = end or start + few(config, "n_recurrent_layers", default=count - start)
    if not start <= end <= count:
        raise refuse(config, start_key, f"must begin a loop inside the {count} layers")
    config.note(f"layers {start} to {end - 1} run {passes} times and store each time")
    return [*range(start), *list(range(start, end)) * passes, *range(end, count)]
