"""Errors layer by layer: how far keys, values and attention move when a cache is read.

Every layer gets the exact hidden states of the full cache's run, so its error is its own and not
what earlier layers passed on. Only tokens read alone count: those that meet the cache.
"""

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kvlab.model.llama import Attention, Llama
from kvlab.model.masks import layer_masks, row_positions
from kvlab.model.quality import FULL, Bench, MakeCache
from kvlab.model.quality_logits import Watch, read

Pair = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class LayerError:
    """Relative errors of one layer: length of the difference over length of the exact one.

    `keys` and `values` are those the last token sees; None where the cache holds other tokens than
    the full one. `attention` is the attention's output, over all tokens read alone.
    """

    layer: int
    keys: float | None
    values: float | None
    attention: float


def layer_errors(
    bench: Bench, cache: str | MakeCache, *, watch: Watch | None = None, **options: Any
) -> list[LayerError]:
    """Return one `LayerError` per layer, on the first batch of the bench's task.

    >>> bench = Bench("tiny", tokens=64, facts=4, num_sequences=2)
    >>> layer_errors(bench, "growing")[1]
    LayerError(layer=1, keys=0.0, values=0.0, attention=0.0)
    """
    model, task = bench.loaded.model, next(iter(bench.task))
    exact = _Seen(bench.maker(FULL)())
    shadow = _Shadow(model, _Seen(bench.maker(cache, **options)()), task.context_len)
    with ExitStack() as hooks:
        for block in model.model.layers:
            handle = block.self_attn.register_forward_hook(shadow.compare)
            hooks.callback(handle.remove)
        read(model, task, exact, watch)
    return [
        LayerError(layer, *_differences(exact.last[layer], shadow.cache.last[layer]), attention)
        for layer, attention in enumerate(shadow.errors())
    ]


class _Seen:
    """A cache that remembers, per layer, the keys and values that it showed last."""

    def __init__(self, cache: Any) -> None:
        self.cache, self.last = cache, {}

    def update(self, key_states: Tensor, value_states: Tensor, layer_idx: int) -> Pair:
        """Pass on, and remember what comes back."""
        self.last[layer_idx] = self.cache.update(key_states, value_states, layer_idx)
        return self.last[layer_idx]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.cache, name)


class _Shadow:
    """The other cache: it is read in every layer right after the full one, with the same input."""

    def __init__(self, model: Llama, cache: _Seen, context_len: int) -> None:
        self.model, self.cache, self.context_len = model, cache, context_len
        self.past, self.masks, self.turn = 0, [], None
        self.squares = torch.zeros(model.config.num_layers, 2, dtype=torch.float64)

    def compare(self, attention: Attention, inputs: tuple[Any, ...], exact: Tensor) -> None:
        """Run a layer's attention again, through the other cache; a hook after the layer's own."""
        hidden, turn, *_ = inputs
        if attention.layer_idx == 0:
            self._begin(hidden, turn)
        # `forward` itself, for calling the module would call this hook again
        mask = self.masks[attention.layer_idx]
        found = attention.forward(hidden, self.turn, mask, self.cache)
        if self.past >= self.context_len:
            pair = ((found - exact).double().square().sum(), exact.double().square().sum())
            self.squares[attention.layer_idx] += torch.stack(pair).cpu()

    def _begin(self, hidden: Tensor, turn: Pair) -> None:
        """Ask for masks and positions once a pass, before any layer is written."""
        cache, config = self.cache, self.model.config
        self.past = int(cache.get_seq_length())
        self.masks, self.turn = layer_masks(config, hidden, self.past, None, cache), turn
        if hasattr(cache, "get_next_position"):  # it may have given its tokens new positions
            positions = row_positions(hidden, cache.get_next_position(), None)
            self.turn = self.model.rope.cos_sin(positions, hidden.dtype)

    def errors(self) -> list[float]:
        """Return the relative error of each layer's attention."""
        return [_relative(*pair) for pair in self.squares.tolist()]


def _differences(exact: Pair, found: Pair) -> list[float | None]:
    if exact[0].shape != found[0].shape:
        return [None, None]
    squares = [
        ((b - a).double().square().sum(), a.double().square().sum())
        for a, b in zip(exact, found, strict=True)
    ]
    return [_relative(float(difference), float(whole)) for difference, whole in squares]


def _relative(difference: float, whole: float) -> float:
    return (difference / whole) ** 0.5 if whole > 0 else 0.0
