"""What a quantised cache costs: bytes to the last one, bits per number, and the ratio to 16 bits.

The options are those of the cache (`QuantizedOptions`). Codes, scales, zero points and the tokens
that stay exact are counted, nothing else. No torch.
"""

from kvlab.arithmetic.checks import whole_number
from kvlab.arithmetic.quantized_formats import TENSOR, SideOptions
from kvlab.arithmetic.quantized_options import QuantizedOptions
from kvlab.errors import InvalidArgument

ZERO_POINT_BYTES = 2


def quantized_bytes(
    format: str,
    *,
    num_kv_heads: int,
    head_dim: int,
    tokens: int,
    num_layers: int = 1,
    batch: int = 1,
    bytes_per_element: int = 2,
    value_dim: int | None = None,
    **options: object,
) -> int:
    """Return the bytes that a quantised cache holds after `tokens` tokens.

    `bytes_per_element` is that of an exact number; `value_dim` where values are not as wide as
    keys. Scales and zero points are whole numbers of bytes, codes fill whole bytes a token.

    >>> shape = {"num_kv_heads": 8, "head_dim": 128, "tokens": 8192}
    >>> 2 * 8 * 128 * 8192 * 2, quantized_bytes("int4", **shape)
    (33554432, 9814016)
    """
    chosen = QuantizedOptions(format=format, **options)  # type: ignore[arg-type]
    shape = {
        "batch": whole_number("batch", batch),
        "num_kv_heads": whole_number("num_kv_heads", num_kv_heads),
        "tokens": whole_number("tokens", tokens, minimum=0),
        "bytes_per_element": whole_number("bytes_per_element", bytes_per_element),
    }
    width = whole_number("head_dim", head_dim)
    dims = width, width if value_dim is None else whole_number("value_dim", value_dim)
    sides = zip((chosen.key, chosen.value), dims, strict=True)
    layer = sum(_side_bytes(side, chosen, head_dim=dim, **shape) for side, dim in sides)
    return whole_number("num_layers", num_layers) * layer


def compression(format: str, **shape_and_options: object) -> float:
    """Return how many times smaller the cache is than one that is exact, after `tokens` tokens.

    Takes what `quantized_bytes` takes.

    >>> shape = {"num_kv_heads": 8, "head_dim": 128, "tokens": 8192}
    >>> round(compression("int4", residual_length=0, **shape), 2)
    3.56
    >>> round(compression("int4", residual_length=128, **shape), 2)
    3.42
    >>> round(compression("int8", **shape), 3)
    1.969
    """
    exact = {"key_format": "exact", "value_format": "exact"}
    shape = {k: v for k, v in shape_and_options.items() if k not in _OPTION_NAMES}
    whole = quantized_bytes("int8", **shape, **exact)  # type: ignore[arg-type]
    quantized = quantized_bytes(format, **shape_and_options)  # type: ignore[arg-type]
    if not quantized:
        raise InvalidArgument("tokens", shape.get("tokens"), "must be 1 or more to be compared")
    return whole / quantized


def bits_per_element(format: str, *, head_dim: int, **options: object) -> float:
    """Return the bits of one number of a long context, its share of the scales included.

    The mean of keys and values, where an exact side has 16 bits. Exact tokens are left out, and so
    is the one scale of a tensor.

    >>> bits_per_element("int4", head_dim=128, q_group_size=64)
    4.5
    >>> bits_per_element("int8", head_dim=128, q_group_size=32, value_format="exact")
    12.25
    """
    chosen = QuantizedOptions(format=format, **options)  # type: ignore[arg-type]
    width = whole_number("head_dim", head_dim)
    return sum(_side_bits(side, width) for side in (chosen.key, chosen.value)) / 2


def bytes_at_bits(bytes_at_16_bits: int, bits: float) -> float:
    """Return the bytes of the same numbers stored in another number of bits each, no scales.

    >>> bytes_at_bits(69_120, bits=6)
    25920.0
    """
    if not 0 < bits <= 64:
        raise InvalidArgument("bits", bits, "must be above 0 and at most 64")
    return whole_number("bytes_at_16_bits", bytes_at_16_bits, minimum=0) * bits / 16


def reduction(before: float, after: float) -> float:
    """Return what share of the bytes is gone.

    >>> round(100 * reduction(389_120, 69_120), 1)  # fewer numbers, by the architecture
    82.2
    >>> round(100 * reduction(389_120, bytes_at_bits(69_120, bits=6)), 2)  # and 6 bits for each
    93.34
    """
    if before <= 0:
        raise InvalidArgument("before", before, "must be above 0")
    return 1 - after / before


_OPTION_NAMES = frozenset(QuantizedOptions.__dataclass_fields__)


def _side_bytes(
    side: SideOptions,
    options: QuantizedOptions,
    *,
    batch: int,
    num_kv_heads: int,
    head_dim: int,
    tokens: int,
    bytes_per_element: int,
) -> int:
    """Return the bytes of one side of one layer."""
    heads = batch * num_kv_heads
    kept = {
        "residual_length": options.residual_tokens,
        "num_sink_tokens": options.num_sink_tokens,
    }
    past = side.quantized_tokens(tokens, **kept)
    exact = heads * (tokens - past) * head_dim * bytes_per_element
    if side.is_exact:
        return exact
    codes = heads * past * -(-head_dim * side.nbits // 8)
    if side.granularity == TENSOR:  # there since the first token that may be quantised
        scales = int(tokens > options.num_sink_tokens)
    else:
        scales = heads * past * head_dim // side.group_size(head_dim)
    zero_bytes = ZERO_POINT_BYTES if side.has_zero_point else 0
    return exact + codes + scales * (side.scale_bytes + zero_bytes)


def _side_bits(side: SideOptions, head_dim: int) -> float:
    if side.is_exact:
        return 16.0
    codes = 8 * -(-head_dim * side.nbits // 8) / head_dim
    if side.granularity == TENSOR:
        return codes
    zero_bytes = ZERO_POINT_BYTES if side.has_zero_point else 0
    return codes + 8 * (side.scale_bytes + zero_bytes) / side.group_size(head_dim)
