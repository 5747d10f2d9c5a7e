"""The exercises of chapter 08: bytes with scales, channels, a byte by hand, and half sizes."""

from kvlab.course import checks_08
from kvlab.course.exercises import CheckResult, Exercise, check

INT4_BYTES = Exercise(
    id="08-a",
    title="What INT4 really takes",
    statement=(
        "Llama 3.1 8B has 32 layers, 8 KV heads and head_dim 128. Its cache holds 8,192 tokens in "
        "INT4, in groups of 64 with an FP16 scale and an FP16 zero point each; the newest 128 "
        "tokens stay in 16 bit. How many MiB?"
    ),
    grade=checks_08.grade_int4_bytes,
    why=(
        "8,064 tokens with 4 + 32/64 = 4.5 bits a number and 128 with 16. The same in 16 bit is "
        "1,024 MiB: 3.42 times as much, not 4."
    ),
    hints=(
        "How many numbers does one token have in the whole cache?",
        "A scale and a zero point are 32 bits, shared by 64 numbers.",
        "How many tokens are quantised, and how many bits has a number of the others?",
    ),
    solution=(
        "numbers = 2 * 32 * 8 * 128  # of one token\n"
        "bits = (8192 - 128) * numbers * (4 + 32 / 64) + 128 * numbers * 16\n"
        'answer = f"{bits / 8 / 2**20} MiB"\n'
    ),
)

CHANNELS = Exercise(
    id="08-b",
    title="A scale for each channel",
    statement=(
        "`keys` is an array of shape (tokens, channels). Write `through(keys, nbits)`: the keys as "
        "they come back after quantising with codes from 0 to 2^nbits - 1, where each channel has "
        "its own scale and its own whole zero point. Leave scales unrounded. Roughly 5 lines."
    ),
    stub="def through(keys, nbits):\n    ...",
    grade=checks_08.grade_through_channels,
    why=(
        "Smallest and largest are taken down each column, so a channel that is twenty times "
        "larger spoils no other; the whole zero point brings 0 back as exactly 0."
    ),
    hints=(
        "Start with `keys.min(axis=0)` and `keys.max(axis=0)`.",
        "The scale is (high - low) / (2**nbits - 1), the zero point np.round(-low / scale).",
        "Codes are np.clip(np.round(keys / scale) + zero, 0, 2**nbits - 1); turn them back.",
    ),
    solution=(
        "import numpy as np\n\n\n"
        "def through(keys, nbits):\n"
        "    low, high = keys.min(axis=0), keys.max(axis=0)\n"
        "    scale = (high - low) / (2**nbits - 1)\n"
        "    zero = np.round(-low / scale)\n"
        "    codes = np.clip(np.round(keys / scale) + zero, 0, 2**nbits - 1)\n"
        "    return (codes - zero) * scale\n"
    ),
)

BYTE = Exercise(
    id="08-c",
    title="A byte by hand",
    statement=(
        "Which byte does E4M3 keep for 21.3, with scale 1? Answer with the eight bits as text, "
        'such as "0 0000 000". The same byte in hexadecimal, such as "0x00", will do: each of its '
        "two digits stands for four bits."
    ),
    grade=checks_08.grade_byte,
    why="21.3 = 1.331 x 2^4; 4 + 7 = 1011, and 0.331 x 8 rounds to 3 = 011. It is read as 22.",
    hints=(
        "Between which two powers of two does 21.3 lie?",
        "Exponent field: that power plus the bias, 7, in 4 bits.",
        "Fraction field: (21.3 / 16 - 1) x 8, rounded to a whole number, in 3 bits.",
    ),
    solution='answer = "0 1011 011"\n',
)

HALF_SIZES = Exercise(
    id="08-d",
    title="Find the error",
    statement=(
        "A page says: Llama 3 8B (32 layers, 8 KV heads, head_dim 128) at 32,768 tokens goes from "
        "2,048 to 1,024 MB with FP8, one scale a tensor. The ratio is right, both sizes are not. "
        "How many MiB does the FP8 cache take?"
    ),
    grade=checks_08.grade_half_sizes,
    why=(
        "65,536 numbers a token, one byte each: 2,048 MiB, and 4,096 in 16 bit. Every size "
        "of the page is half of what its own formula gives, so the ratio survives."
    ),
    hints=(
        "How many numbers does a token keep: keys and values, all layers, all KV heads?",
        "FP8 takes one byte for each; the few scales don't count here.",
        "Multiply by 32,768 tokens and divide by 2^20.",
    ),
    solution='answer = f"{2 * 32 * 8 * 128 * 1 * 32768 / 2**20} MiB"\n',
)

EXERCISES = (INT4_BYTES, CHANNELS, BYTE, HALF_SIZES)


def check_int4_bytes(answer: object) -> CheckResult:
    """Check 08-a: a size with its unit.

    >>> check_int4_bytes("256 MiB").grade.misconception
    'a-quarter'
    """
    return check("08-a", answer)


def check_channels(answer: object) -> CheckResult:
    """Check 08-b: a function `through(keys, nbits)`."""
    return check("08-b", answer)


def check_byte(answer: object) -> CheckResult:
    """Check 08-c: eight bits."""
    return check("08-c", answer)


def check_half_sizes(answer: object) -> CheckResult:
    """Check 08-d: a size with its unit."""
    return check("08-d", answer)
