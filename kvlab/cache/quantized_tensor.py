"""One piece of keys or values as codes, scales and zero points, and which numbers share a scale.

`quantize` and `dequantize` are the whole of it; no time, no cache. Shapes are (batch, num_kv_heads,
tokens, head_dim) before, and codes (batch, num_kv_heads, tokens, bytes of a token) after.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import NamedTuple, Self

import torch
from torch import Tensor

from kvlab.arithmetic.quantized_formats import CHANNEL, TENSOR, SideOptions
from kvlab.arithmetic.quantized_options import QuantizedOptions
from kvlab.cache.float8 import float8_codec
from kvlab.cache.packing import pack, unpack_to_float
from kvlab.cache.quantizers import (
    FP16_MAX,
    AsymmetricIntegers,
    Codec,
    SymmetricIntegers,
    fp16_not_below,
)
from kvlab.errors import InvalidArgument

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


class Codes(NamedTuple):
    """Packed codes with the scales, and the zero points or None, that belong to them.

    codes: uint8 (batch, num_kv_heads, tokens, bytes). scale and zero: (..., tokens, groups of a
    token), for channels (..., groups of tokens, head_dim), for a whole tensor (1, 1, 1, 1).
    """

    codes: Tensor
    scale: Tensor
    zero: Tensor | None

    @property
    def nbytes(self) -> int:
        """Bytes of codes, scales and zero points."""
        return sum(part.nbytes for part in self if part is not None)


@dataclass(frozen=True)
class Recipe:
    """How one side of a layer is quantised: which numbers share a scale, and the arithmetic."""

    options: SideOptions
    head_dim: int
    group: int
    codec: Codec

    @classmethod
    def of(cls, options: SideOptions, head_dim: int, device: torch.device | str = "cpu") -> Self:
        """Return the recipe for vectors of `head_dim` numbers; refuses groups that do not fit."""
        one_scale = options.granularity == TENSOR
        if options.is_float:
            codec: Codec = float8_codec(options.format, one_scale=one_scale, device=device)
        else:
            kind = SymmetricIntegers if options.symmetric else AsymmetricIntegers
            codec = kind(options.nbits)
        return cls(options, head_dim, options.group_size(head_dim), codec)

    @property
    def has_one_scale(self) -> bool:
        """Whether a whole tensor has a single scale."""
        return self.options.granularity == TENSOR

    @property
    def tokens_per_scale(self) -> int:
        """How many tokens one row of scales serves."""
        return self.group if self.options.granularity == CHANNEL else 1

    def scale_for(self, numbers: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the scales and zero points of these numbers."""
        if self.has_one_scale:
            scale, zero = self._one_scale(numbers)
            return scale.view(1, 1, 1, 1), None if zero is None else zero.view(1, 1, 1, 1)
        grouped = self._grouped(numbers.float())
        return self.codec.scale_for(grouped.amin(self._axis), grouped.amax(self._axis))

    def encode(self, numbers: Tensor, scale: Tensor, zero: Tensor | None) -> Tensor:
        """Return the packed codes of these numbers."""
        if self.has_one_scale:  # it meets every number: no groups
            codes = self.codec.encode(numbers.float(), scale.float(), zero)
            return pack(codes, self.options.nbits)
        scale, zero = self._spread(scale), self._spread(zero)
        codes = self.codec.encode(self._grouped(numbers.float()), scale, zero)
        return pack(codes.reshape(numbers.shape), self.options.nbits)

    def decode(
        self,
        codes: Tensor,
        scale: Tensor,
        zero: Tensor | None,
        dtype: torch.dtype = torch.float32,
    ) -> Tensor:
        """Return what packed codes stand for, in new memory; the largest in `dtype` at most."""
        if self.has_one_scale and self.options.nbits == 8:
            return self._looked_up(codes, scale, zero, dtype)
        whole = codes if self.options.is_float else self._unpacked(codes)
        spread = self._spread(scale), self._spread(zero)
        numbers = self.codec.decode(self._grouped(whole), *spread)
        if dtype == torch.float16:  # a scale rounded up may reach past its largest number
            numbers.clamp_(-FP16_MAX, FP16_MAX)
        return numbers.to(dtype).reshape(*codes.shape[:-1], self.head_dim)

    def _looked_up(
        self, codes: Tensor, scale: Tensor, zero: Tensor | None, dtype: torch.dtype
    ) -> Tensor:
        """Decode the 256 bytes that there are, and look up each code among them."""
        every = torch.arange(256, dtype=torch.uint8, device=codes.device)
        spread = (None if part is None else part.float().view(1) for part in (scale, zero))
        known = self.codec.decode(every, *spread)
        limit = min(torch.finfo(kind).max for kind in (dtype, known.dtype))
        known = known.clamp_(-limit, limit).to(dtype)
        return known.index_select(0, codes.flatten().int()).view(codes.shape)

    def _unpacked(self, codes: Tensor) -> Tensor:
        return unpack_to_float(codes, self.options.nbits, self.head_dim)

    def _one_scale(self, numbers: Tensor) -> tuple[Tensor, Tensor | None]:
        if self.options.scale is None:
            low, high = numbers.amin(), numbers.amax()  # together faster than aminmax
            return self.codec.scale_for(low.float(), high.float())
        given = torch.tensor(self.options.scale, dtype=torch.float32, device=numbers.device)
        return given if self.options.is_float else fp16_not_below(given), None

    @property
    def _axis(self) -> int:
        return 3 if self.options.granularity == CHANNEL else 4

    def _grouped(self, numbers: Tensor) -> Tensor:
        """Return a view with an axis of its own, `_axis`, for the numbers that share a scale."""
        *batch, tokens, head_dim = numbers.shape
        if self.options.granularity == CHANNEL:
            return numbers.reshape(*batch, tokens // self.group, self.group, head_dim)
        return numbers.reshape(*batch, tokens, head_dim // self.group, self.group)

    def _spread(self, scale: Tensor | None) -> Tensor | None:
        return None if scale is None else scale.float().unsqueeze(self._axis)


def quantize(numbers: Tensor, format: str, **options: object) -> tuple[Codes, Recipe]:
    """Return the codes of (batch, num_kv_heads, tokens, head_dim), and the recipe to read them.

    Formats and options are those of `QuantizedLayer`; with "channel" the groups must fill the
    tokens. Nothing is kept exact.

    >>> numbers = torch.linspace(10, 11, 32).view(1, 1, 1, 32)
    >>> codes, recipe = quantize(numbers, "int4", granularity="token", symmetric=False)
    >>> round(float(codes.scale), 4), codes.nbytes
    (0.0667, 20)
    >>> bool((dequantize(codes, recipe) - numbers).abs().max() <= 0.0334)
    True
    """
    check_numbers("numbers", numbers)
    side = QuantizedOptions(format=format, **options).key  # type: ignore[arg-type]
    recipe = Recipe.of(side, numbers.shape[-1], numbers.device)
    if numbers.shape[2] % recipe.tokens_per_scale:
        rule = f"must be a multiple of q_group_size={recipe.group}, tokens that share a scale"
        raise InvalidArgument("tokens", numbers.shape[2], rule)
    scale, zero = recipe.scale_for(numbers)
    return Codes(recipe.encode(numbers, scale, zero), scale, zero), recipe


def dequantize(codes: Codes, recipe: Recipe) -> Tensor:
    """Return the float32 numbers that codes stand for, shaped as they were."""
    return recipe.decode(*codes)


def check_numbers(argument: str, numbers: Tensor) -> None:
    """Refuse what has no place on a scale: other types than floating point, NaN and infinity."""
    if numbers.dtype not in FLOATS:
        rule = "must be float16, bfloat16, float32 or float64 to be quantised"
        raise InvalidArgument(argument, numbers.dtype, rule)
    wide = numbers.dtype if numbers.dtype.itemsize > 2 else torch.float32
    if isfinite(numbers.sum(dtype=wide).item()):  # NaN and infinity never leave a sum again
        return
    finite = numbers.isfinite()  # finite numbers may add up to infinity
    if not bool(finite.all()):
        first = numbers[~finite][0].item()
        raise InvalidArgument(argument, first, "must be finite: it would spoil a whole scale")
