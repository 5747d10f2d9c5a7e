"""Which layers a config describes: from any of its spellings to one type name a layer.

The names are those of transformers' `layer_types`; `families` says what each type stores. Where a
config leaves its layers to its class, `class_patterns` knows the pattern.
"""

from collections.abc import Callable, Iterable

from kvlab.arithmetic.checks import whole_number
from kvlab.arithmetic.class_patterns import CLASS_PATTERNS
from kvlab.arithmetic.config_fields import Config
from kvlab.errors import InvalidArgument

FULL, SLIDING, CHUNKED = "full_attention", "sliding_attention", "chunked_attention"
LINEAR, CONV, CROSS, NO_CACHE = "linear_attention", "conv", "cross_attention", "none"
MAX_LAYERS = 10_000
PATTERN_LETTERS = {"M": LINEAR, "*": FULL, "-": NO_CACHE, "E": NO_CACHE, "L": SLIDING, "G": FULL}

Reader = Callable[[Config, int], list[str] | None]


def layer_types(config: Config) -> list[str]:
    """Return one type name for each layer, and note where a class pattern had to be used.

    >>> layer_types(Config({"num_hidden_layers": 3, "sliding_window": 64}, []))
    ['sliding_attention', 'sliding_attention', 'sliding_attention']
    """
    count = num_layers(config)
    for reader in READERS:
        types = reader(config, count)
        if types is not None:
            types = _checked(config, types, count)
            return types if reader is _listed else _with_indexer(config, types)
    return _with_indexer(config, [_uniform_type(config)] * count)


def _with_indexer(config: Config, types: list[str]) -> list[str]:
    """A config with an indexer uses it in every full layer, unless it lists its layers."""
    indexed = config.raw.get("index_head_dim") is not None
    return ["indexed_attention" if indexed and name == FULL else name for name in types]


def num_layers(config: Config) -> int:
    """Return the number of layers: the field, else the length of a list that has one entry each."""
    if config.model_type == "longcat_flash" and "num_hidden_layers" not in config.raw:
        config.note("each of the num_layers blocks holds two attention layers (longcat_flash)")
        return 2 * config.count("num_hidden_layers")
    if config.value("num_hidden_layers") is not None:
        count = config.count("num_hidden_layers")
        if count > MAX_LAYERS:
            name = f"config.{config.block}{config.key('num_hidden_layers')}"
            raise InvalidArgument(name, count, f"must be {MAX_LAYERS:,} layers or fewer")
        return count
    for key in ("layer_types", "layers_block_type", "hybrid_override_pattern", "block_configs"):
        if config.has(key):
            config.note(f"num_hidden_layers is not in the config: the length of {key} was used")
            return len(config.raw[key])
    return config.count("num_hidden_layers")


def layer_order(config: Config, count: int) -> list[int]:
    """Return the layers in the order in which they store: a looped layer once for each pass.

    >>> fields = {"loop_layer_index_start": 1, "loop_layer_index_end": 3, "loop_num_passes": 2}
    >>> layer_order(Config(fields, []), 4)
    [0, 1, 2, 1, 2, 3]
    """
    passes, start = config.optional("loop_num_passes"), config.raw.get("loop_layer_index_start", 0)
    end = config.raw.get("loop_layer_index_end", count)
    if passes is None and config.raw.get("recurrent_kv_cache_mode", "per_loop") == "per_loop":
        passes, start = config.optional("n_recurrent_loops"), config.raw.get("n_input_layers", 0)
        end = start + config.raw.get("n_recurrent_layers", count)
    if passes is None or passes == 1:
        return list(range(count))
    config.note(f"layers {start} to {end - 1} run {passes} times and store each time")
    return [*range(start), *list(range(start, end)) * passes, *range(end, count)]


def _checked(config: Config, types: list[str], count: int) -> list[str]:
    if len(types) != count:
        rule = f"must name each of the {count} layers"
        raise InvalidArgument(f"config.{config.block}layer_types", f"{len(types)} names", rule)
    return types


def _uniform_type(config: Config) -> str:
    if config.value("use_sliding_window") is False:
        return FULL
    if config.value("sliding_window"):
        return SLIDING
    return CHUNKED if config.value("attention_chunk_size") else FULL


def _listed(config: Config, count: int) -> list[str] | None:
    for key in ("layer_types", "layers_block_type", "layer_block_types", "mixer_types"):
        names = config.raw.get(key)
        if isinstance(names, (list, tuple)) and names:
            return [str(name) for name in names]
    return None


def _lettered(config: Config, count: int) -> list[str] | None:
    for key in ("hybrid_override_pattern", "sliding_window_pattern"):
        text = config.raw.get(key)
        if isinstance(text, str) and text and set(text) <= set(PATTERN_LETTERS):
            whole = (text * count)[:count] if key == "sliding_window_pattern" else text
            return [PATTERN_LETTERS[letter] for letter in whole]
    return None


def _numbered(config: Config, count: int) -> list[str] | None:
    """Lists of 0 and 1: what each digit means depends on the key."""
    meanings = {
        "attn_type_list": (LINEAR, FULL),  # MiniMax: 1 is softmax attention
        "hybrid_layer_pattern": (FULL, SLIDING),  # MiMo: 1 is windowed
        "is_sliding": (FULL, SLIDING),
    }
    for key, meaning in meanings.items():
        digits = config.raw.get(key)
        if isinstance(digits, (list, tuple)) and digits and set(digits) <= {0, 1}:
            return [meaning[int(digit)] for digit in digits]
    return None


def _cycled(config: Config, count: int) -> list[str] | None:
    """A short list that repeats: RecurrentGemma's blocks, GPT-Neo's attention."""
    blocks = config.raw.get("block_types") or config.raw.get("_block_types")
    if isinstance(blocks, (list, tuple)) and blocks:
        names = {"recurrent": LINEAR, "attention": SLIDING}
        cycle = [names.get(str(block), str(block)) for block in blocks]
        return (cycle * count)[:count]
    groups = config.raw.get("attention_types")
    if isinstance(groups, (list, tuple)) and groups:
        local = {"local": SLIDING, "global": FULL}
        return [local.get(kind, FULL) for kinds, times in groups for kind in kinds * times]
    return None


def _indexed(config: Config, count: int) -> list[str] | None:
    """Lists of layer numbers."""
    linear = config.raw.get("linear_attn_config")
    if isinstance(linear, dict) and "full_attn_layers" in linear:  # Kimi: counted from 1
        chosen = {number - 1 for number in linear["full_attn_layers"]}
        return _choose(count, chosen, FULL, LINEAR)
    for key, chosen_type, other in (
        ("attn_layer_indices", FULL, LINEAR),
        ("full_attn_idxs", FULL, CONV),
        ("full_attention_layers", FULL, LINEAR),
        ("hybrid_layer_ids", "hybrid", LINEAR),
        ("local_layer_ids", "hybrid_sliding", "hybrid"),
        ("cross_attention_layers", CROSS, FULL),
        ("global_attention_layers", FULL, SLIDING),
    ):
        if isinstance(config.raw.get(key), (list, tuple)):
            return _choose(count, set(config.raw[key]), chosen_type, other)
    return None


def _choose(count: int, chosen: Iterable[int], yes: str, no: str) -> list[str]:
    return [yes if i in chosen else no for i in range(count)]


def _periodic(config: Config, count: int) -> list[str] | None:
    """A period written in the config: every n-th layer attends to everything."""
    if config.raw.get("attn_layer_period") is not None and config.model_type != "zamba":
        period = config.count("attn_layer_period")
        offset = config.count("attn_layer_offset", default=0, minimum=0)
        return [FULL if i % period == offset else LINEAR for i in range(count)]
    for key, other in (("full_attention_interval", LINEAR), ("layer_group_size", LINEAR)):
        if config.raw.get(key) is not None:
            period = whole_number(f"config.{config.block}{key}", config.raw[key])
            return [other if (i + 1) % period else FULL for i in range(count)]
    key = next((k for k in SLIDING_PERIODS if config.raw.get(k) is not None), None)
    if key is None or not config.value("sliding_window"):
        return None
    period = whole_number(f"config.{config.block}{key}", config.raw[key])
    return [SLIDING if (i + 1) % period else FULL for i in range(count)]


SLIDING_PERIODS = (
    "sliding_window_pattern",
    "_sliding_window_pattern",
    "global_attn_every_n_layers",
)


def _by_class(config: Config, count: int) -> list[str] | None:
    pattern = CLASS_PATTERNS.get(config.model_type)
    types = None if pattern is None else pattern(config, count)
    if types is not None and len(set(types)) > 1:
        config.note(f"layer_types is not in the config: the pattern of {config.model_type} classes")
    return types


READERS: tuple[Reader, ...] = (
    _listed, _lettered, _numbered, _cycled, _indexed, _periodic, _by_class,
)  # fmt: skip
