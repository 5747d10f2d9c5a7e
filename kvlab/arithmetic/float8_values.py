"""The numbers that 8 bits of floating point can say, computed from the bits by hand; no torch.

Two ways to spend the 8 bits: E4M3 has 4 bits of exponent and 3 of fraction, E5M2 has 5 and 2.
"""

from functools import cache
from typing import NamedTuple

from kvlab.errors import InvalidArgument


class Float8Kind(NamedTuple):
    """How 8 bits are spent: one of sign, then exponent, then fraction.

    The bias is what is taken off the exponent. `has_infinity` is False for E4M3: where others
    keep infinity it has ordinary numbers, all but one pattern.
    """

    exponent_bits: int
    fraction_bits: int
    bias: int
    has_infinity: bool


FLOAT8_KINDS = {"e4m3": Float8Kind(4, 3, 7, False), "e5m2": Float8Kind(5, 2, 15, True)}


class Float8Value(NamedTuple):
    """One of the 256: its byte, the parts of it as whole numbers, and the number that it means."""

    byte: int
    sign: int
    exponent: int
    fraction: int
    value: float
    pattern: str


@cache
def float8_table(kind: str) -> tuple[Float8Value, ...]:
    """Return the 256 numbers of "e4m3" or "e5m2", in the order of their bytes.

    >>> table = float8_table("e4m3")
    >>> table[0b0_0111_000].value, table[0b0_1111_110].value, table[0b0_0000_001].value
    (1.0, 448.0, 0.001953125)
    >>> table[0b1_0111_001].pattern, table[0b1_0111_001].value
    ('1 0111 001', -1.125)
    """
    if kind not in FLOAT8_KINDS:
        raise InvalidArgument("kind", kind, f"must be one of {', '.join(FLOAT8_KINDS)}")
    return tuple(_decode(byte, FLOAT8_KINDS[kind]) for byte in range(256))


@cache
def largest_float8(kind: str) -> float:
    """Return the largest finite number of a kind.

    >>> largest_float8("e4m3"), largest_float8("e5m2")
    (448.0, 57344.0)
    """
    return max(entry.value for entry in float8_table(kind) if abs(entry.value) < float("inf"))


def _decode(byte: int, kind: Float8Kind) -> Float8Value:
    steps = 2**kind.fraction_bits
    top = 2**kind.exponent_bits - 1
    sign, exponent, fraction = byte >> 7, byte // steps & top, byte % steps
    if exponent == 0:  # no leading 1: the numbers go down to 0 in even steps
        size = fraction / steps * 2.0 ** (1 - kind.bias)
    else:
        size = (1 + fraction / steps) * 2.0 ** (exponent - kind.bias)
    if exponent == top and kind.has_infinity:
        size = float("nan") if fraction else float("inf")
    elif exponent == top and fraction == steps - 1:
        size = float("nan")
    bits = f"{byte:08b}"
    pattern = f"{bits[0]} {bits[1 : 1 + kind.exponent_bits]} {bits[1 + kind.exponent_bits :]}"
    return Float8Value(byte, sign, exponent, fraction, -size if sign else size, pattern)
