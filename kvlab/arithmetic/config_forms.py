"""The form of a config's fields: flags, lists and tables, each refused by name when it is not one.

A field of the wrong form is never passed over: the layers would then be another model's.
"""

from collections.abc import Mapping
from typing import Any

from kvlab.arithmetic.checks import whole_number
from kvlab.arithmetic.config_fields import Config
from kvlab.errors import InvalidArgument

MAX_LAYERS = 10_000


def refuse(config: Config, key: str, rule: str) -> InvalidArgument:
    """Return the error that names one field of a config."""
    return InvalidArgument(f"config.{config.block}{key}", config.raw.get(key), rule)


def flag(config: Config, field: str, *, default: bool = False) -> bool:
    """Return a field that is true or false; absent and null give `default`.

    >>> flag(Config({"use_cla": True}, []), "use_cla"), flag(Config({}, []), "use_cla")
    (True, False)
    """
    value = config.value(field)
    if value is None:
        return default
    if isinstance(value, int) and value in (0, 1):
        return bool(value)
    raise refuse(config, field, "must be true or false")


def listed(config: Config, key: str) -> list[Any] | None:
    """Return a field that is a list; absent, null and empty give None."""
    values = config.raw.get(key)
    if values is None:
        return None
    if not isinstance(values, (list, tuple)):
        raise refuse(config, key, "must be a list")
    return list(values) or None


def numbers(config: Config, key: str, *, minimum: int = 0) -> list[int] | None:
    """Return a field that is a list of layer numbers; an empty list is one too.

    >>> numbers(Config({"attn_layer_indices": [3, 7]}, []), "attn_layer_indices")
    [3, 7]
    """
    if config.raw.get(key) is None:
        return None
    name = f"config.{config.block}{key}"
    return [whole_number(name, n, minimum=minimum) for n in listed(config, key) or []]


def table(config: Config, key: str) -> Mapping[str, Any] | None:
    """Return a field that is an object; absent and null give None."""
    value = config.raw.get(key)
    if value is None or isinstance(value, Mapping):
        return value
    raise refuse(config, key, "must be an object")


def window(config: Config) -> int | None:
    """Return the tokens that a windowed layer looks back over, or None.

    ModernBERT's `local_attention` counts both sides of a token: a decoder has the half of it.

    >>> window(Config({"local_attention": 128}, [])), window(Config({"sliding_window": 64}, []))
    (64, 64)
    """
    both = config.raw.get("local_attention")
    if isinstance(both, int) and not isinstance(both, bool):
        return config.count("local_attention", minimum=2) // 2
    return config.optional("sliding_window")


def few(config: Config, field: str, *, default: int | None = None, minimum: int = 1) -> int:
    """Return a count of layers or of passes over them: no more than a model may have."""
    count = config.count(field, default=default, minimum=minimum)
    if count > MAX_LAYERS:
        rule = f"must be {MAX_LAYERS:,} layers or fewer"
        raise InvalidArgument(f"config.{config.block}{config.key(field)}", count, rule)
    return count
