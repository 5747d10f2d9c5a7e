"""Which layers a config describes: from any of its spellings to one type name a layer.

The names are those of transformers' `layer_types`; `families` says what each type stores. Where a
config leaves its layers to its class, `class_patterns` knows the pattern.
"""

from collections.abc import Callable

from kvlab.arithmetic.checks import whole_number
from kvlab.arithmetic.class_patterns import CLASS_PATTERNS
from kvlab.arithmetic.config_fields import Config
from kvlab.arithmetic.config_forms import few, flag
from kvlab.arithmetic.layer_lists import cycled, indexed, lettered, listed_types, numbered
from kvlab.errors import InvalidArgument

FULL, SLIDING, CHUNKED = "full_attention", "sliding_attention", "chunked_attention"
LINEAR = "linear_attention"

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
            return types if reader is listed_types else _with_indexer(config, types)
    return _with_indexer(config, [_uniform_type(config)] * count)


def _with_indexer(config: Config, types: list[str]) -> list[str]:
    """A config with an indexer uses it in every full layer, unless it lists its layers."""
    indexed = config.raw.get("index_head_dim") is not None
    return ["indexed_attention" if indexed and name == FULL else name for name in types]


def num_layers(config: Config) -> int:
    """Return the number of layers: the field, else the length of a list that has one entry each."""
    if config.model_type == "longcat_flash" and "num_hidden_layers" not in config.raw:
        config.note("each of the num_layers blocks holds two attention layers (longcat_flash)")
        return 2 * few(config, "num_hidden_layers")
    if config.value("num_hidden_layers") is not None:
        return few(config, "num_hidden_layers")
    for key in ("layer_types", "layers_block_type", "hybrid_override_pattern", "block_configs"):
        if isinstance(config.raw.get(key), (list, tuple, str)):
            config.note(f"num_hidden_layers is not in the config: the length of {key} was used")
            return len(config.raw[key])
    return config.count("num_hidden_layers")


def _checked(config: Config, types: list[str], count: int) -> list[str]:
    if len(types) != count:
        rule = f"must name each of the {count} layers"
        raise InvalidArgument(f"config.{config.block}layer_types", f"{len(types)} names", rule)
    return types


def _uniform_type(config: Config) -> str:
    if not flag(config, "use_sliding_window", default=True):
        return FULL
    if config.value("sliding_window"):
        return SLIDING
    return CHUNKED if config.value("attention_chunk_size") else FULL


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


SLIDING_PERIODS = ("sliding_window_pattern", "_sliding_window_pattern")


def _by_class(config: Config, count: int) -> list[str] | None:
    pattern = CLASS_PATTERNS.get(config.model_type)
    types = None if pattern is None else pattern(config, count)
    if types is not None and len(set(types)) > 1:
        config.note(f"layer_types is not in the config: the pattern of {config.model_type} classes")
    return types


READERS: tuple[Reader, ...] = (
    listed_types, lettered, numbered, cycled, indexed, _periodic, _by_class,
)  # fmt: skip
