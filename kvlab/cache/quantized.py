"""Keys and values in fewer bits: `QuantizedLayer`, and one class for each format by name.

The newest tokens (`residual_length`) and the first ones (`num_sink_tokens`) are kept exact. Every
other token is quantised once, when it leaves the newest, and never touched again; attention reads
it dequantised. Keys and values are stored apart and may differ in all but these two lengths.

Options, the same for `fp8`, `fp8-e5m2`, `int8`, `int4` and `int2`; None means the format's default:

    granularity      what shares a scale: "tensor" (all of one layer's keys, or values), "token"
                     (one token of one KV head), "group" (`q_group_size` channels of such a token)
                     or "channel" (one channel, over `q_group_size` tokens)
    q_group_size     channels of a group, must divide head_dim; or tokens that share a channel's
                     scale. Default: 128 (int8), 64 (int4, fp8), 32 (int2); where that does not
                     divide head_dim, the largest that does
    symmetric        True: a scale alone; False: a scale and a zero point. FP8 has no zero point
    residual_length  the newest tokens that stay exact. Groups of tokens are quantised when they
                     are whole, so with "channel" R means R to R + q_group_size - 1
    num_sink_tokens  the first tokens that stay exact; default 0. They are slots: in a row with
                     left padding they are padding
    exact_prefill    True (default): the call that finds the cache empty attends to its own exact
                     keys and values, as in transformers and most engines. So one forward pass over
                     a whole text shows no loss: read a context first, then measure what follows
    key_format, value_format          another format for one side, or "exact" for none
    key_granularity, value_granularity, key_q_group_size, value_q_group_size, key_symmetric,
    value_symmetric                   as without the prefix, for one side
    key_scale, value_scale            a scale measured beforehand, for granularity "tensor"
    nbits            8, 4 or 2: another way to name int8, int4 or int2

    format      keys by   values by  group  zero point  residual_length
    fp8         tensor    tensor     -      -           0
    fp8-e5m2    tensor    tensor     -      -           0
    int8        group     group      128    no          0
    int4        channel   group      64     yes         128
    int2        channel   group      32     yes         128

Scales and zero points are FP16 in any compute dtype. The one exception: an FP8 tensor's only scale
is FP32. A tensor's scale is frozen by the first call that brings tokens past the sinks; what comes
later and is larger is clamped. Keys or values that are NaN or infinite are refused.

Going back (`truncate_to`) is exact within the residual, but a token that was quantised stays so:
fewer than `residual_length` may be exact afterwards. Going back into the middle of a group of
tokens is refused, because the group would have to be split.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor

from kvlab.arithmetic.quantized_options import QuantizedOptions
from kvlab.cache.base import KVLayer
from kvlab.cache.quantized_side import QuantizedSide
from kvlab.cache.quantized_tensor import Recipe, check_numbers


class QuantizedLayer(KVLayer):
    """One layer that keeps its past in 8, 4 or 2 bits; no token is dropped.

    >>> import torch
    >>> layer = QuantizedLayer(format="int4", residual_length=0, exact_prefill=False)
    >>> states = torch.randn(1, 2, 64, 64, dtype=torch.float16)
    >>> keys, values = layer.update(states, states)
    >>> 2 * states.nbytes / layer.nbytes  # 16 bits against 4.5
    3.5555555555555554
    """

    _fixed_format: str | None = None  # what a subclass stores
    __signature__: inspect.Signature

    def __init__(self, **options: Any) -> None:
        super().__init__()
        if self._fixed_format is not None:
            options["format"] = self._fixed_format
        self.options = QuantizedOptions(**options)
        self.sides: tuple[QuantizedSide, QuantizedSide] | None = None

    def __init_subclass__(cls) -> None:
        """Show the options, but for the format, as the signature of a class for one format."""
        super().__init_subclass__()
        cls.__signature__ = _signature_without("format")

    @property
    def is_croppable(self) -> bool:
        """Whether shortening leaves no trace: not where newest tokens were quantised meanwhile."""
        return self.options.residual_tokens == 0 or not any(self.num_quantized)

    @property
    def num_quantized(self) -> tuple[int, int]:
        """How many tokens have quantised keys, and how many quantised values."""
        return (0, 0) if self.sides is None else tuple(side.num_quantized for side in self.sides)

    def allocate(self, key_states: Tensor, value_states: Tensor) -> None:
        """Start with both sides empty; refuses groups that do not fit, and FP8 where it is not."""
        self.sides = self._empty_side("key", key_states), self._empty_side("value", value_states)

    def store(self, key_states: Tensor, value_states: Tensor) -> tuple[Tensor, Tensor]:
        """Keep the new tokens exact and quantise those that leave the newest."""
        first_call = self.cumulative_length == 0
        keys, values = self.sides
        self.sides = keys.appended(key_states), values.appended(value_states)
        if first_call and self.options.exact_prefill:
            return key_states, value_states
        return self.read()

    def read(self) -> tuple[Tensor, Tensor]:
        """Return all keys and values as attention sees them: exact ones, and dequantised ones."""
        keys, values = self.sides
        return keys.read(), values.read()

    def num_kept(self) -> int:
        """Return how many tokens are held: all that were seen."""
        return self.cumulative_length

    def held(self) -> tuple[Tensor, ...]:
        """Return what is stored: exact tokens, packed codes, scales and zero points.

        These are not keys and values; `read` gives them.
        """
        keys, values = self.sides
        return (*keys.held(), *values.held())

    def keep_first(self, n: int) -> None:
        """Forget all tokens but the first `n`; `Unsupported` where a group would have to split.

        What was quantised stays quantised, so fewer than `residual_length` may be exact then.
        """
        keys, values = self.sides
        self.sides = keys.shortened(n), values.shortened(n)

    def take_rows(self, rows: Tensor) -> None:
        """Reorder all that belongs to a sequence, into new tensors."""
        keys, values = self.sides
        self.sides = keys.selected(rows), values.selected(rows)

    def copy_storage(self) -> None:
        """Move to tensors of its own."""
        if self.sides is not None:
            with torch.inference_mode(False):
                keys, values = self.sides
                self.sides = keys.cloned(), values.cloned()

    def reset(self) -> None:
        """Become as new: no tokens, no memory, no frozen scale."""
        super().reset()
        self.sides = None

    def _check_shapes(self, key_states: Tensor, value_states: Tensor) -> None:
        super()._check_shapes(key_states, value_states)
        check_numbers("key_states", key_states)
        check_numbers("value_states", value_states)

    def _empty_side(self, side: str, states: Tensor) -> QuantizedSide:
        how = getattr(self.options, side)
        nothing = states.new_empty((*states.shape[:2], 0, states.shape[3]))
        recipe = None if how.is_exact else Recipe.of(how, states.shape[3], states.device)
        lengths = self.options.residual_tokens, self.options.num_sink_tokens
        return QuantizedSide(recipe, *lengths, sinks=nothing, newest=nothing)


def _signature_without(*names: str) -> inspect.Signature:
    every = inspect.signature(QuantizedOptions)
    kept = [p for name, p in every.parameters.items() if name not in names]
    return inspect.Signature(kept)


QuantizedLayer.__signature__ = _signature_without()


class Fp8Layer(QuantizedLayer):
    """FP8 E4M3: 4 bits of exponent, 3 of fraction; the larger precision of the two."""

    _fixed_format = "fp8"


class Fp8E5M2Layer(QuantizedLayer):
    """FP8 E5M2: 5 bits of exponent, 2 of fraction; the larger range of the two."""

    _fixed_format = "fp8-e5m2"


class Int8Layer(QuantizedLayer):
    """INT8: 255 even steps, a scale for 128 channels; 8.125 bits where head_dim is 128."""

    _fixed_format = "int8"


class Int4Layer(QuantizedLayer):
    """INT4: 16 even steps, keys by channel and values by token; 4.5 bits in groups of 64."""

    _fixed_format = "int4"


class Int2Layer(QuantizedLayer):
    """INT2: 4 even steps, keys by channel and values by token; 3 bits in groups of 32."""

    _fixed_format = "int2"
