"""The exercises of chapter 00: bytes of a vector, and GiB against GB."""

from kvlab.arithmetic.units import GIB, gb, gib
from kvlab.course.exercises import CheckResult, Exercise, check
from kvlab.course.grading import Grade, Misconception, Target, Verdict, grade_number

HIDDEN_SIZE, BYTES = 576, 2  # SmolLM2's vector in bfloat16
POOL_GIB = 60


def grade_vector_bytes(answer: object) -> Grade:
    """Grade exercise 00-a."""
    known = (
        ("bits-as-bytes", HIDDEN_SIZE * 16, "16 bits were counted as 16 bytes: 8 bits are 1 byte."),
        ("weights-dtype", HIDDEN_SIZE * 4, "That is float32, 4 bytes a number; bfloat16 has 2."),
        ("one-byte-each", HIDDEN_SIZE, "That is how many numbers there are, not how many bytes."),
        ("key-and-value", HIDDEN_SIZE * BYTES * 2, "One vector is asked for, not a pair of them."),
    )
    slips = tuple(Misconception(*row) for row in known)
    right = HIDDEN_SIZE * BYTES
    return grade_number(answer, Target(right, unit="B", exact=True, misconceptions=slips))


def grade_gib_to_gb(answer: object) -> Grade:
    """Grade exercise 00-b."""
    known = (
        ("same-number", POOL_GIB, "The number of GB is larger: a GiB is more bytes than a GB."),
        ("upside-down", gib(POOL_GIB * 10**9), "Upside down: that is 60 GB written in GiB."),
        ("mega-step", POOL_GIB * 1.024, "That is the step from K to k; giga takes it three times."),
    )
    slips = tuple(Misconception(*row) for row in known)
    right = gb(POOL_GIB * GIB)
    grade = grade_number(answer, Target(right, unit="GB", tolerance=0.001, misconceptions=slips))
    rounded = grade_number(answer, Target(right, unit="GB", tolerance=0.02))
    if grade.verdict is Verdict.WRONG and not grade.misconception and rounded.right:
        return Grade(Verdict.NEAR, "Near, but not to three digits: 1 GiB is 2^30 bytes exactly.")
    return grade


VECTOR_BYTES = Exercise(
    id="00-a",
    title="One vector in memory",
    statement=(
        "SmolLM2 gives every token a vector of 576 numbers. How many bytes does one such vector "
        "take in bfloat16, which stores a number in 16 bits?"
    ),
    grade=grade_vector_bytes,
    why="576 numbers of 2 bytes each. The dtype decides the bytes, the model decides the numbers.",
    hints=(
        "How many bytes are 16 bits?",
        "Every number takes the same room: numbers times bytes of one number.",
    ),
    solution="answer_a = 576 * 16 // 8\n",
    stub="answer_a = ...",
)

GIB_TO_GB = Exercise(
    id="00-b",
    title="The same memory, two numbers",
    statement=(
        "An engine reports a KV cache pool of 60 GiB. A data sheet counts in GB. How many GB is "
        "that pool? Three digits are enough."
    ),
    grade=grade_gib_to_gb,
    why=(
        "60 x 2^30 bytes over 10^9. The same bytes, a number 7.4 % larger: always say which unit "
        "it is."
    ),
    hints=(
        "Go through bytes: 1 GiB is 2^30 bytes.",
        "1 GB is 10^9 bytes, so divide the bytes by 10**9.",
    ),
    solution="answer_b = 60 * 2**30 / 10**9\n",
    stub="answer_b = ...",
)

EXERCISES = (VECTOR_BYTES, GIB_TO_GB)


def check_vector_bytes(answer: object) -> CheckResult:
    """Check 00-a: a number of bytes.

    >>> check_vector_bytes(576 * 16).grade.misconception
    'bits-as-bytes'
    """
    return check("00-a", answer)


def check_gib_to_gb(answer: object) -> CheckResult:
    """Check 00-b: a number of GB.

    >>> check_gib_to_gb("60 GB").grade.misconception
    'same-number'
    """
    return check("00-b", answer)
