"""Fewer bits, live: bytes to scale against 16 bit, and the error on real keys and values."""

from functools import lru_cache
from typing import Any

import ipywidgets as widgets
import torch
from torch import Tensor

from kvlab.arithmetic.quantized_bytes import bits_per_element, quantized_bytes
from kvlab.arithmetic.units import format_bytes
from kvlab.cache import make_cache
from kvlab.cache.quantized import QuantizedLayer
from kvlab.errors import InvalidArgument
from kvlab.figures.channel_map import Channels, channel_map
from kvlab.figures.comparison import Bar
from kvlab.model.load import LoadedModel, load_model
from kvlab.model.phases import prefill
from kvlab.model.sample_text import sample_ids
from kvlab.widgets.base import Explorer, Frame
from kvlab.widgets.controls import button, dropdown, powers

FORMATS = ("fp8", "fp8-e5m2", "int8", "int4", "int2")
GRANULARITIES = ("tensor", "token", "group", "channel")
BLOCK = 128
"""Tokens of the block whose error is shown; a multiple of every group that can be chosen."""

RESIDUALS = (0, 32, 64, 128, 256)
_READING = (
    "Dashed: 16 bit. Below, a bar is a channel of one head: pale, how large it is (root mean "
    "square over tokens); full, what storing it gets wrong."
)


class Block:
    """Real keys and values of one layer, (1, num_kv_heads, 128, head_dim), and whose they are."""

    def __init__(self, loaded: LoadedModel, layer: int) -> None:
        config = loaded.model.config
        if not 0 <= layer < config.num_layers:
            rule = f"must be from 0 to {config.num_layers - 1}, the layers of {loaded.name}"
            raise InvalidArgument("layer", layer, rule)
        cache = make_cache("growing", num_layers=config.num_layers)
        prefill(loaded.model, sample_ids(loaded, BLOCK), cache)
        self.keys, self.values = (s.detach().float().cpu() for s in cache.layers[layer].held())
        self.name, self.layer, self.num_layers = loaded.name, layer, config.num_layers
        self.num_kv_heads, self.head_dim = config.num_kv_heads, config.head_dim
        self.groups = [g for g in (16, 32, 64, 128) if self.head_dim % g == 0]


def stored(block: Block, format: str, granularity: str, group: int) -> tuple[Tensor, Tensor]:
    """Return a block's keys and values as they come back from a cache that keeps none exact."""
    options = _options(format, granularity, group)
    layer = QuantizedLayer(exact_prefill=False, residual_length=0, **options)
    with torch.inference_mode():
        return layer.update(block.keys, block.values)


def _options(format: str, granularity: str, group: int) -> dict[str, Any]:
    grouped = {"q_group_size": group} if granularity in ("group", "channel") else {}
    return {"format": format, "granularity": granularity, **grouped}


def bits_frame(
    block: Block,
    *,
    format: str,
    granularity: str,
    group: int,
    residual: int,
    context: int,
    head: int = 0,
    scale: float = 1.0,
) -> Frame:
    """Return the bytes of a context in this format, and the error on the block."""
    shape = {"num_kv_heads": block.num_kv_heads, "head_dim": block.head_dim, "tokens": context}
    options = _options(format, granularity, group)
    exact = {"key_format": "exact", "value_format": "exact"}
    full = quantized_bytes("int8", num_layers=block.num_layers, **shape, **exact)
    held = quantized_bytes(
        num_layers=block.num_layers, residual_length=residual, **shape, **options
    )
    bits = bits_per_element(head_dim=block.head_dim, **options)
    rows, errors = [], {}
    back_again = stored(block, format, granularity, group)
    for name, states, back in zip(
        ("keys", "values"), (block.keys, block.values), back_again, strict=True
    ):
        errors[name] = float((back - states).norm() / states.norm())
        sizes, wrong = (_rms(x[0, head]) for x in (states, back - states))
        words = f"error {errors[name]:.2%}"
        rows.append(Channels(name, sizes, name[:-1], wrong, words=words))
    words = f"{held / full:.1%} of {format_bytes(full).split(' (')[0]}"
    bars = [Bar(f"{context:,} tokens", held, words, "value", ghost=full)]
    title = f"{block.name}, layer {block.layer + 1} of {block.num_layers}, head {head}"
    picture = channel_map(rows, bars=bars, title=title, reading=_READING, scale=scale)
    readout = {
        "bits a number, scales included": f"{bits:g}",
        "held": format_bytes(held),
        "times smaller": f"{full / held:.2f}x",
        "error of keys": f"{errors['keys']:.2%}",
        "error of values": f"{errors['values']:.2%}",
    }
    return Frame(picture, readout, _event(options, residual, context, held, full))


def _rms(numbers: Tensor) -> list[float]:
    return numbers.square().mean(0).sqrt().tolist()


def _event(options: dict[str, Any], residual: int, context: int, held: int, full: int) -> str:
    shared = {
        "tensor": "one scale for all of a layer's keys, one for its values",
        "token": "a scale for each token and head",
        "group": f"a scale for {options.get('q_group_size')} channels of a token",
        "channel": f"a scale for {options.get('q_group_size')} tokens of a channel",
    }[str(options["granularity"])]
    exact = f", the newest {min(residual, context)} tokens exact" if residual else ""
    return (
        f"{options['format']}, {shared}{exact}: {held:,} of {full:,} bytes. Payload, one request."
    )


@lru_cache(maxsize=8)
def _block(name: str, layer: int) -> Block:
    return Block(load_model(name, device="cpu", dtype="float32"), layer)


def bits_explorer(
    model: str | LoadedModel = "tiny", *, layer: int = 0, head: int = 0, scale: float = 1.0
) -> Explorer:
    """Return the explorer; controls are format, granularity, group, residual and context.

    >>> show = bits_explorer()
    >>> show.numbers["bits a number, scales included"], show.numbers["times smaller"]
    ('5', '3.15x')
    >>> show.controls["granularity"].value = "tensor"
    >>> show.numbers["bits a number, scales included"]
    '4'
    """
    block = _block(model, layer) if isinstance(model, str) else Block(model, layer)
    most = block.groups[-1]
    residual = widgets.SelectionSlider(
        options=[(f"{n}", n) for n in RESIDUALS],
        value=32,
        description="newest tokens exact",
        style={"description_width": "initial"},
        layout=widgets.Layout(width="300px"),
    )
    controls: dict[str, widgets.Widget] = {
        "format": dropdown("format", FORMATS, "int4"),
        "granularity": dropdown("a scale for each", GRANULARITIES, "group"),
        "group": powers("group size", min(32, most), block.groups[0], most, width="250px"),
        "residual": residual,
        "context": powers("context, tokens", 4096, 128, 131_072, width="300px"),
    }

    controls["group"].layout.margin = "2px 2px 2px 14px"

    def draw(**values: object) -> Frame:
        return bits_frame(block, head=head, scale=scale, **values)  # type: ignore[arg-type]

    show = Explorer(controls, draw, kind="bits-explorer")
    home = button("back to the example", show.reset)
    show.box.children[0].children += (home,)
    return show
