"""What the checks of chapter 08 compare with: reference functions and known wrong ways."""

import re
from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from kvlab.arithmetic.float8_values import float8_table
from kvlab.arithmetic.quantized_bytes import quantized_bytes
from kvlab.course.grading import Grade, Misconception, Target, Verdict, grade_number, unread_grade
from kvlab.course.guarded import WrongFunction, grade_function
from kvlab.course.typed import Unread

MIB = 2**20
Numbers = NDArray[np.float64]


def grade_int4_bytes(answer: object) -> Grade:
    """Grade exercise 08-a."""
    shape = {"num_layers": 32, "num_kv_heads": 8, "head_dim": 128, "tokens": 8192}
    options = {"granularity": "group", "q_group_size": 64, "residual_length": 128}
    right = quantized_bytes("int4", **shape, **options) / MIB
    token = 2 * 32 * 8 * 128 / MIB  # numbers of a token, in millions of 2^20
    known = (
        ("a-quarter", 8192 * token / 2, "That is a quarter of 16 bit: scales, zero points and the "
         "exact tokens are missing."),
        ("no-residual", 8192 * token * 4.5 / 8, "The newest 128 tokens stay in 16 bit."),
        ("no-zero-point", 8064 * token * 4.25 / 8 + 128 * token * 2, "A group has a zero point, "
         "too: 2 bytes more."),
        ("no-scales", 8064 * token / 2 + 128 * token * 2, "Each group of 64 has a scale and a zero "
         "point, 4 bytes."),
        ("added", 8192 * token * 4.5 / 8 + 128 * token * 2, "The exact tokens were counted twice: "
         "they are not quantised as well."),
        ("keys-only", right / 2, "Keys and values are both kept."),
        ("one-layer", right / 32, "That is one layer; the model has 32."),
    )  # fmt: skip
    slips = tuple(Misconception(*row) for row in known)
    return grade_number(answer, Target(right, unit="MiB", misconceptions=slips))


def through_channels(keys: Numbers, nbits: int) -> Numbers:
    """Return keys (tokens, channels) as they come back; each channel has a scale and a zero point.

    >>> through_channels(np.array([[0.0, 10.0], [3.0, 40.0]]), 2).tolist()
    [[0.0, 10.0], [3.0, 40.0]]
    """
    return _through(keys, nbits, axis=0)


def _through(keys: Numbers, nbits: int, axis: int | None, steps: int | None = None) -> Numbers:
    low, high = keys.min(axis, keepdims=True), keys.max(axis, keepdims=True)
    most = 2**nbits - 1
    scale = (high - low) / (steps or most)
    zero = np.round(-low / scale)
    codes = np.clip(np.round(keys / scale) + zero, 0, most)
    return (codes - zero) * scale


def _offset(keys: Numbers, nbits: int) -> Numbers:
    low, high = keys.min(0), keys.max(0)
    scale = (high - low) / (2**nbits - 1)
    return np.round((keys - low) / scale) * scale + low


def _symmetric(keys: Numbers, nbits: int) -> Numbers:
    most = 2 ** (nbits - 1) - 1
    scale = np.abs(keys).max(0) / most
    return np.clip(np.round(keys / scale), -most, most) * scale


_THROUGH_WRONG = (
    WrongFunction(
        "per-token",
        lambda keys, nbits: _through(keys, nbits, axis=1),
        "Each token has a scale; a channel is a column, so look along axis 0.",
    ),
    WrongFunction(
        "per-tensor",
        lambda keys, nbits: _through(keys, nbits, axis=None),
        "One scale serves all numbers; each channel is to have its own.",
    ),
    WrongFunction(
        "one-step-too-many",
        lambda keys, nbits: _through(keys, nbits, axis=0, steps=2**nbits),
        "2^nbits codes have one step fewer between them: divide by 2^nbits - 1.",
    ),
    WrongFunction(
        "smallest-number-kept",
        _offset,
        "The smallest number is kept in place of a whole zero point. That works, too, but a 0 no "
        "longer comes back as exactly 0: round the zero point.",
    ),
    WrongFunction(
        "symmetric", _symmetric, "That has no zero point; codes are to go from 0 to 2^nbits - 1."
    ),
)


def grade_through_channels(answer: object) -> Grade:
    """Grade exercise 08-b."""
    rng = np.random.default_rng(8)
    keys = rng.normal(size=(6, 4)) * [1, 1, 20, 1] + [0, 0.5, 10, -0.3]
    cases = [(keys, 4), (keys[:5, :3], 2), (rng.normal(size=(9, 2)), 8)]
    return grade_function(answer, through_channels, cases, _THROUGH_WRONG)


_BYTE_SLIPS = {
    "01011010": ("cut-off", "21.3 lies between 20 and 22, and was cut off; take the nearer one."),
    "01001101": ("other-format", "Those are 5 bits of exponent and 2 of fraction: E5M2."),
    "00100011": ("no-bias", "The bias is missing: 7 is added to the exponent."),
    "01100011": ("bias-8", "The bias of E4M3 is 7, not 8."),
    "01011101": ("leading-one", "The leading 1 is not stored; fraction bits come after the point."),
    "11011011": ("sign", "The first bit is the sign; 0 stands for plus."),
}


def grade_byte(answer: object) -> Grade:
    """Grade exercise 08-c: eight bits as text, a byte in hexadecimal, or a whole number.

    >>> grade_byte("0b01011010").misconception, grade_byte("0 1011 0110").verdict.value
    ('cut-off', 'not readable')
    >>> grade_byte("0x5b").feedback
    'Right. 0x5b is the byte 0 1011 011, written in hexadecimal.'
    """
    if answer is None or answer is ... or answer == "":
        return unread_grade(Unread("", empty=True))
    byte = _read_byte(answer)
    if byte is None:
        return unread_grade(Unread('it is not a byte; write its eight bits as "0 0000 000"'))
    bits = f"{byte:08b}"
    said = ""
    if _in_hexadecimal(answer):
        fields = f"{bits[0]} {bits[1:5]} {bits[5:]}"
        said = f" {str(answer).strip()} is the byte {fields}, written in hexadecimal."
    nearest = min(float8_table("e4m3"), key=lambda entry: abs(entry.value - 21.3))
    if byte == nearest.byte:
        return Grade(Verdict.RIGHT, f"Right.{said}")
    known, words = _BYTE_SLIPS.get(bits, ("", ""))
    value = float8_table("e4m3")[byte].value
    words = words or f"Not right: read as E4M3 it means {value:.6g}."
    return Grade(Verdict.WRONG, words + said, known)


def _in_hexadecimal(answer: object) -> bool:
    return isinstance(answer, str) and bool(re.fullmatch(r"0x[0-9a-f]{1,2}", answer.strip(), re.I))


def _read_byte(answer: object) -> int | None:
    """Return the byte that an answer spells, 0 to 255, or None."""
    if isinstance(answer, Integral):
        return int(answer) if 0 <= answer < 256 and not isinstance(answer, bool) else None
    if _in_hexadecimal(answer):
        return int(str(answer), 16)
    bits = str(answer).strip().removeprefix("0b").replace(" ", "").replace("_", "")
    return int(bits, 2) if re.fullmatch(r"[01]{8}", bits) else None


def grade_half_sizes(answer: object) -> Grade:
    """Grade exercise 08-d."""
    right = 2 * 32 * 8 * 128 * 32_768 / MIB
    known = (
        ("half-size", right / 2, "That is the page's number: half of what 1 byte a number gives. "
         "Count keys and values."),
        ("16-bit", right * 2, "That is the size in 16 bit; FP8 has one byte for each number."),
        ("query-heads", right * 4, "Query heads were counted; the cache holds the 8 KV heads."),
    )  # fmt: skip
    slips = tuple(Misconception(*row) for row in known)
    return grade_number(answer, Target(right, unit="MiB", misconceptions=slips))
