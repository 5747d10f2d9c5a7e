"""What claims and questions of chapter 08 need: ratios with scales, and sizes in MiB."""

from collections.abc import Callable
from typing import Any

from kvlab.arithmetic.memory import kv_bytes
from kvlab.arithmetic.quantized_bytes import bits_per_element, compression

MIB = 2**20


def stored_bits(bits: int, group: int, metadata: int) -> float:
    """Return the bits of a number whose group of `group` shares `metadata` bytes.

    >>> stored_bits(4, 64, 4)
    4.5
    """
    return bits + 8 * metadata / group


def times_smaller(bits: int, group: int, metadata: int) -> float:
    """Return 16 bits over the bits of such a number.

    >>> round(times_smaller(8, 128, 2), 3)
    1.969
    """
    return 16 / stored_bits(bits, group, metadata)


def int4_times_smaller(groups: list[int]) -> list[float]:
    """Return how many times INT4 with scale and zero point is smaller, for each group size.

    >>> [round(ratio, 2) for ratio in int4_times_smaller([32, 64, 128])]
    [3.2, 3.56, 3.76]
    """
    options: dict[str, Any] = {"head_dim": 128, "granularity": "group"}
    return [16 / bits_per_element("int4", q_group_size=g, **options) for g in groups]


def int4_with_residual(tokens: list[int], residual: int) -> list[float]:
    """Return how many times INT4 in groups of 64 is smaller with so many newest tokens exact.

    >>> [round(ratio, 2) for ratio in int4_with_residual([1024, 8192], 128)]
    [2.69, 3.42]
    """
    shape: dict[str, Any] = {"num_kv_heads": 8, "head_dim": 128, "granularity": "group"}
    shape |= {"residual_length": residual, "q_group_size": 64}
    return [compression("int4", tokens=n, **shape) for n in tokens]


def int8_times_smaller() -> list[float]:
    """Return how many times INT8 is smaller: a scale for 128 numbers, and one a tensor.

    >>> [round(ratio, 3) for ratio in int8_times_smaller()]
    [1.969, 2.0]
    """
    return [
        16 / bits_per_element("int8", head_dim=128),
        16 / bits_per_element("int8", head_dim=128, granularity="tensor"),
    ]


def mib_in_bytes_each(
    layers: int, kv_heads: int, head_dim: int, tokens: int, sizes: list[int]
) -> list[float]:
    """Return the MiB of one sequence's cache with so many bytes for each number.

    >>> mib_in_bytes_each(32, 8, 128, 32_768, [2, 1])
    [4096, 2048]
    """
    shape = {"num_layers": layers, "num_kv_heads": kv_heads, "head_dim": head_dim}
    found = [kv_bytes(seq_len=tokens, bytes_per_element=b, **shape) / MIB for b in sizes]
    return [int(size) if size == int(size) else size for size in found]


def logged_ratio(before: int, after: int) -> float:
    """Return how many times more tokens an engine's log reports.

    >>> round(logged_ratio(83_488, 166_992), 3)
    2.0
    """
    return after / before


def int4_mib(layers: int, kv_heads: int, head_dim: int, tokens: int, bits: float) -> float:
    """Return the MiB of a cache with so many bits for each number, none exact."""
    return 2 * layers * kv_heads * head_dim * tokens * bits / 8 / MIB


ALL: tuple[Callable[..., Any], ...] = (
    stored_bits,
    times_smaller,
    int4_times_smaller,
    int4_with_residual,
    int8_times_smaller,
    mib_in_bytes_each,
    logged_ratio,
    int4_mib,
)
