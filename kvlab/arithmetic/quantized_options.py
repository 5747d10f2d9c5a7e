"""The options of a quantised cache, checked and completed; the cache and the formula share them.

No torch, no bytes. Left out: what is done with the options (`kvlab/cache/quantized.py`) and what
they cost (`quantized_bytes.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite

from kvlab.arithmetic.checks import whole_number
from kvlab.arithmetic.quantized_formats import (
    CHANNEL,
    EXACT,
    FORMATS,
    GRANULARITIES,
    GROUP,
    INTEGER_BITS,
    TENSOR,
    TOKEN,
    SideOptions,
)
from kvlab.errors import InvalidArgument


@dataclass(frozen=True, kw_only=True)
class QuantizedOptions:
    """Every option of a quantised cache; None takes the default of the format.

    What begins with `key_` or `value_` overrules the option without it, for one side.

    >>> QuantizedOptions(format="int4").value
    SideOptions(side='value', format='int4', granularity='group', q_group_size=None, \
default_group=64, symmetric=False, scale=None)
    >>> QuantizedOptions(nbits=3)
    Traceback (most recent call last):
    kvlab.errors.InvalidArgument: nbits=3: must be one of 8, 4, 2
    """

    format: str | None = None
    nbits: int | None = None
    granularity: str | None = None
    q_group_size: int | None = None
    symmetric: bool | None = None
    residual_length: int | None = None
    num_sink_tokens: int = 0
    exact_prefill: bool = True
    key_format: str | None = None
    value_format: str | None = None
    key_granularity: str | None = None
    value_granularity: str | None = None
    key_q_group_size: int | None = None
    value_q_group_size: int | None = None
    key_symmetric: bool | None = None
    value_symmetric: bool | None = None
    key_scale: float | None = None
    value_scale: float | None = None

    def __post_init__(self) -> None:
        _check_flags(self)
        whole_number("num_sink_tokens", self.num_sink_tokens, minimum=0)
        if self.residual_length is not None:
            whole_number("residual_length", self.residual_length, minimum=0)
        if self.q_group_size is not None:
            whole_number("q_group_size", self.q_group_size)
            if not any(side.granularity in (CHANNEL, GROUP) for side in (self.key, self.value)):
                rule = "neither keys nor values have groups; say granularity='group' or 'channel'"
                raise InvalidArgument("q_group_size", self.q_group_size, rule)
        _ = self.key, self.value  # whatever is wrong is said now, not at the first token

    @cached_property
    def base_format(self) -> str:
        """The format of the sides that name none of their own."""
        if self.nbits is None:
            return _one_of("format", "int8" if self.format is None else self.format, (*FORMATS,))
        if self.nbits not in INTEGER_BITS or isinstance(self.nbits, bool):
            raise InvalidArgument("nbits", self.nbits, "must be one of 8, 4, 2")
        if self.format not in (None, f"int{self.nbits}"):
            raise InvalidArgument("nbits", self.nbits, f"the format is {self.format} already")
        return f"int{self.nbits}"

    @cached_property
    def key(self) -> SideOptions:
        """How keys are stored."""
        return self._side("key")

    @cached_property
    def value(self) -> SideOptions:
        """How values are stored."""
        return self._side("value")

    @cached_property
    def residual_tokens(self) -> int:
        """The newest tokens that stay exact at least: `residual_length`, or the default."""
        if self.residual_length is not None:
            return self.residual_length
        formats = [side.format for side in (self.key, self.value) if not side.is_exact]
        return max((FORMATS[name].residual_length for name in formats), default=0)

    def _side(self, side: str) -> SideOptions:
        own = getattr(self, f"{side}_format")
        name = self.base_format if own is None else own
        _one_of(f"{side}_format", name, (*FORMATS, EXACT))
        if name == EXACT:
            return SideOptions(side, EXACT, TOKEN, None, 1, True)
        usual = FORMATS[name]
        granularity = self._for_side(side, "granularity")
        if granularity is None:
            granularity = getattr(usual, f"{side}_granularity")
        _one_of("granularity", granularity, GRANULARITIES)
        group = self._group(side, granularity)
        symmetric = self._for_side(side, "symmetric")
        if usual.is_float and symmetric is False:
            raise InvalidArgument("symmetric", False, f"{name} has no zero point")
        symmetric = usual.symmetric if symmetric is None else symmetric
        scale = self._scale(side, granularity, symmetric)
        return SideOptions(side, name, granularity, group, usual.q_group_size, symmetric, scale)

    def _for_side(self, side: str, name: str) -> object:
        own = getattr(self, f"{side}_{name}")
        return getattr(self, name) if own is None else own

    def _group(self, side: str, granularity: str) -> int | None:
        own = getattr(self, f"{side}_q_group_size")
        if own is not None:
            whole_number(f"{side}_q_group_size", own)
            if granularity not in (CHANNEL, GROUP):
                rule = f"granularity {granularity!r} has no groups; say 'group' or 'channel'"
                raise InvalidArgument(f"{side}_q_group_size", own, rule)
        return self.q_group_size if own is None else own

    def _scale(self, side: str, granularity: str, symmetric: bool) -> float | None:
        scale = getattr(self, f"{side}_scale")
        if scale is None:
            return None
        if isinstance(scale, bool) or not isinstance(scale, int | float):
            raise InvalidArgument(f"{side}_scale", scale, "must be a number")
        if not (isfinite(scale) and scale > 0):
            raise InvalidArgument(f"{side}_scale", scale, "must be finite and above 0")
        if granularity != TENSOR or not symmetric:
            rule = "one scale given beforehand needs granularity='tensor' and symmetric codes"
            raise InvalidArgument(f"{side}_scale", scale, rule)
        return float(scale)


def _one_of(argument: str, value: object, known: Sequence[str]) -> str:
    if not isinstance(value, str) or value not in known:
        raise InvalidArgument(argument, value, f"must be one of {', '.join(known)}")
    return value


def _check_flags(options: QuantizedOptions) -> None:
    for name in ("symmetric", "key_symmetric", "value_symmetric", "exact_prefill"):
        value = getattr(options, name)
        if not isinstance(value, bool) and (value is not None or name == "exact_prefill"):
            raise InvalidArgument(name, value, "must be True or False")
