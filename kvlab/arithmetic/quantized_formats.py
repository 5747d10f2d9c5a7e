"""The formats of a quantised cache, and how one side of a layer is stored in one of them.

No torch, no bytes. Left out: reading the options of a cache (`quantized_options.py`) and what they
cost (`quantized_bytes.py`).
"""

from dataclasses import dataclass
from typing import NamedTuple

from kvlab.errors import InvalidArgument

TENSOR, TOKEN, CHANNEL, GROUP = "tensor", "token", "channel", "group"
GRANULARITIES = (TENSOR, TOKEN, CHANNEL, GROUP)
EXACT = "exact"
INTEGER_BITS = (8, 4, 2)


class FormatDefaults(NamedTuple):
    """What a format is used with where nothing else is said."""

    nbits: int
    is_float: bool
    key_granularity: str
    value_granularity: str
    q_group_size: int
    symmetric: bool
    residual_length: int


FORMATS = {
    "fp8": FormatDefaults(8, True, TENSOR, TENSOR, 64, True, 0),
    "fp8-e5m2": FormatDefaults(8, True, TENSOR, TENSOR, 64, True, 0),
    "int8": FormatDefaults(8, False, GROUP, GROUP, 128, True, 0),
    "int4": FormatDefaults(4, False, CHANNEL, GROUP, 64, False, 128),
    "int2": FormatDefaults(2, False, CHANNEL, GROUP, 32, False, 128),
}
"""Format -> its defaults. "fp8" is E4M3, with one scale a tensor as transformers' FP8 layer has."""


@dataclass(frozen=True, slots=True)
class SideOptions:
    """How one side of a layer, its keys or its values, is stored.

    `default_group` is taken where `q_group_size` is None.
    """

    side: str
    format: str
    granularity: str
    q_group_size: int | None
    default_group: int
    symmetric: bool
    scale: float | None = None

    @property
    def is_exact(self) -> bool:
        """Whether nothing of this side is quantised."""
        return self.format == EXACT

    @property
    def nbits(self) -> int:
        """Bits of one code."""
        return FORMATS[self.format].nbits

    @property
    def is_float(self) -> bool:
        """Whether the codes are floating-point numbers of 8 bits."""
        return not self.is_exact and FORMATS[self.format].is_float

    @property
    def has_zero_point(self) -> bool:
        """Whether a zero point is stored beside every scale."""
        return not (self.symmetric or self.is_float or self.is_exact)

    @property
    def scale_bytes(self) -> int:
        """Bytes of a scale: 2, but 4 for the one scale that an FP8 tensor has."""
        return 4 if self.is_float and self.granularity == TENSOR else 2

    def group_size(self, head_dim: int) -> int:
        """Return how many neighbours share a scale: tokens for channels, else channels.

        Raises `InvalidArgument` for groups that do not fill the `head_dim` channels.
        """
        if self.granularity in (TENSOR, TOKEN):
            return head_dim
        if self.granularity == CHANNEL:
            return self.q_group_size or self.default_group
        if self.q_group_size is None:
            largest = min(self.default_group, head_dim)
            return next(size for size in range(largest, 0, -1) if head_dim % size == 0)
        if head_dim % self.q_group_size:
            rule = f"must divide the {head_dim} channels of the {self.side}s (head_dim)"
            raise InvalidArgument("q_group_size", self.q_group_size, rule)
        return self.q_group_size

    def quantized_tokens(self, tokens: int, *, residual_length: int, num_sink_tokens: int) -> int:
        """Return how many of `tokens` tokens are quantised; all others are exact.

        A group of tokens is quantised when it is whole: up to group - 1 tokens more stay exact.
        """
        if self.is_exact:
            return 0
        past = max(0, tokens - num_sink_tokens - residual_length)
        return past - past % self.group_size(1) if self.granularity == CHANNEL else past
