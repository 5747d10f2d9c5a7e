"""Which layers of a Llama see only a window of the past, and how wide it is. No torch here."""

from collections.abc import Mapping, Sequence
from typing import Any

from kvlab.arithmetic.checks import whole_number
from kvlab.errors import InvalidArgument

FULL, SLIDING = "full_attention", "sliding_attention"  # what a layer sees, in HF's words
WINDOWED_TYPES = ("mistral", "ministral")  # a Llama that may have windows, in transformers


def check_windows(window: object, types: object, num_layers: int) -> tuple[str, ...] | None:
    """Return `layer_types` as a tuple; raise `InvalidArgument` where the two do not fit."""
    if window is not None:
        whole_number("sliding_window", window)
    if types is None:
        return None
    known = isinstance(types, Sequence) and all(kind in (FULL, SLIDING) for kind in types)
    if not known or isinstance(types, str):
        raise InvalidArgument("layer_types", types, f"must name each layer {FULL} or {SLIDING}")
    if len(types) != num_layers:
        rule = f"must name all {num_layers} layers"
        raise InvalidArgument("layer_types", f"{len(types)} names", rule)
    if SLIDING in types and window is None:
        rule = f"must be a number of tokens where layer_types names {SLIDING}"
        raise InvalidArgument("sliding_window", None, rule)
    return tuple(types)


def windows_of(
    window: int | None, types: Sequence[str] | None, num_layers: int
) -> tuple[int | None, ...]:
    """Return the window of each layer in tokens, None where a layer sees everything.

    >>> windows_of(6, ["sliding_attention", "full_attention"], 2)
    (6, None)
    """
    types = (SLIDING,) * num_layers if types is None else types
    return tuple(window if kind == SLIDING else None for kind in types)


def read_windows(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the window and layer types that transformers' class for this `model_type` obeys."""
    kind, types = config["model_type"], config.get("layer_types")
    listed = list(types) if isinstance(types, Sequence) else []
    if kind not in WINDOWED_TYPES:  # a Llama has no windows there, whatever else the file says
        if SLIDING in listed:
            rule = "transformers' Llama ignores windows; say model_type 'ministral'"
            raise InvalidArgument("layer_types", types, rule)
        return {}
    if "sliding_window" not in config:  # a missing key would mean 4,096 there
        raise InvalidArgument("sliding_window", "missing", "must be a number of tokens or null")
    window = config["sliding_window"]
    if kind == "mistral" and window is not None and set(listed) - {SLIDING}:
        rule = "a Mistral has its window in all layers; say model_type 'ministral'"
        raise InvalidArgument("layer_types", types, rule)
    return {"sliding_window": window, "layer_types": types}
