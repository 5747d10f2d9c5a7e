"""Element types of a cache, and what their scales cost.

A type stores `block` elements in `block_bytes` bytes, scales included. A row of elements that does
not fill its last block pays for the whole block.
"""

from dataclasses import dataclass

from kvlab.arithmetic.checks import whole_number
from kvlab.errors import InvalidArgument


@dataclass(frozen=True, slots=True)
class CacheDtype:
    """One way of storing the elements of a cache.

    >>> q8 = cache_dtype("q8_0")
    >>> q8.bits_per_element, q8.bytes_for(576)
    (8.5, 612)
    """

    name: str
    block: int
    block_bytes: int
    source: str

    @property
    def bits_per_element(self) -> float:
        """Bits of one element, its share of the scales included."""
        return 8 * self.block_bytes / self.block

    @property
    def has_scales(self) -> bool:
        """Whether scales are counted in `block_bytes`."""
        return self.block > 2

    def bytes_for(self, elements: int) -> int:
        """Return the bytes of one row of `elements` elements."""
        return -(-elements // self.block) * self.block_bytes


_PLAIN = "the width of the type; no scale is counted"
_TENSOR = "vLLM KVQuantMode: one scale a tensor, held with the weights; no byte in the cache"
_GGML = "ggml-common.h, block_{}: {}"

CACHE_DTYPES = {
    row.name: row
    for row in (
        CacheDtype("fp32", 1, 4, _PLAIN),
        CacheDtype("bf16", 1, 2, _PLAIN),
        CacheDtype("fp16", 1, 2, _PLAIN),
        CacheDtype("fp8", 1, 1, _TENSOR),
        CacheDtype("int8", 1, 1, f"{_PLAIN}; with_scales() adds them"),
        CacheDtype("int4", 2, 1, f"{_PLAIN}; with_scales() adds them"),
        CacheDtype("q8_0", 32, 34, _GGML.format("q8_0", "an fp16 scale and 32 x 8 bit")),
        CacheDtype("q4_0", 32, 18, _GGML.format("q4_0", "an fp16 scale and 32 x 4 bit")),
        CacheDtype("q4_1", 32, 20, _GGML.format("q4_1", "an fp16 scale, an fp16 minimum, 32 x 4")),
    )
}
"""Name -> element type; the names are those of `kvlab size --cache-dtype`."""

_SPELLINGS = {
    "float32": "fp32",
    "f32": "fp32",
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "f16": "fp16",
    "float8": "fp8",
    "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
    "float8_e4m3fn": "fp8",
}


def cache_dtype(name: "str | CacheDtype") -> CacheDtype:
    """Return the element type called `name`, in any case, or the one that was given.

    >>> cache_dtype("BF16").block_bytes
    2
    >>> cache_dtype("int3")
    Traceback (most recent call last):
    kvlab.errors.InvalidArgument: cache_dtype='int3': must be one of fp32, bf16, fp16, fp8, int8, \
int4, q8_0, q4_0, q4_1
    """
    if isinstance(name, CacheDtype):
        return name
    key = name.strip().casefold().removeprefix("torch.") if isinstance(name, str) else ""
    found = CACHE_DTYPES.get(_SPELLINGS.get(key, key))
    if found is None:
        raise InvalidArgument("cache_dtype", name, f"must be one of {', '.join(CACHE_DTYPES)}")
    return found


def with_scales(
    name: str, *, group_size: int, scale_bytes: int = 2, zero_bytes: int = 0
) -> CacheDtype:
    """Return `name` with one scale (and one zero point) for each `group_size` elements of a row.

    transformers' quantised cache keeps both in 16 bit for groups of 64: 4.5 bits an element.

    >>> with_scales("int4", group_size=64, zero_bytes=2).bits_per_element
    4.5
    """
    plain = cache_dtype(name)
    group = whole_number("group_size", group_size)
    scale = whole_number("scale_bytes", scale_bytes, minimum=0)
    zero = whole_number("zero_bytes", zero_bytes, minimum=0)
    if plain.has_scales:
        raise InvalidArgument("name", name, "has its own scales already")
    block_bytes = plain.bytes_for(group) + scale + zero
    return CacheDtype(f"{plain.name}/{group}", group, block_bytes, "one scale a group of elements")
