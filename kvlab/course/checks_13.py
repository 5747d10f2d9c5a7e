"""What the checks of chapter 13 compare with: own marks, and one case from end to end."""

from kvlab.arithmetic.memory import kv_bytes
from kvlab.course.grading import Grade, Misconception, Target, grade_number
from kvlab.course.guarded import WrongFunction, grade_function
from kvlab.course.practice import own_mark

GB, GIB = 10**9, 2**30
FREE = 50 * GB
"""72 of 80 GB may be used; 18 are weights, 4 are overhead."""
BYTES_ON_RANK = kv_bytes(
    num_layers=80, num_kv_heads=1, head_dim=128, seq_len=32_768, bytes_per_element=2
)
"""A request of 32,768 tokens of a 70B shape in 16 bit, on one of eight ranks."""


def counts(made: list[int], total: int) -> bool:
    """Whether a spoken answer that made these points counts as right."""
    return own_mark(made, total)[1]


_MARK_CASES = [
    ([1, 2, 3, 4, 5], 5), ([1, 2, 3, 4], 5), ([2, 3, 4, 5], 5), ([1, 2, 3], 5), ([], 5),
    ([1, 1, 1, 1], 5), ([1], 2), ([2], 2),
]  # fmt: skip
_MARK_WRONG = (
    WrongFunction(
        "scope-forgotten",
        lambda made, total: len(set(made)) >= total - 1,
        "The scope was not asked for: without point 1 nothing counts.",
    ),
    WrongFunction(
        "all-points",
        lambda made, total: 1 in made and len(set(made)) >= total,
        "Every point was asked for; one may be missing, if it is not the scope.",
    ),
    WrongFunction(
        "counted-twice",
        lambda made, total: 1 in made and len(made) >= total - 1,
        "A point that is named twice was counted twice.",
    ),
)


def grade_mark(answer: object) -> Grade:
    """Grade exercise 13-a."""
    return grade_function(answer, counts, _MARK_CASES, _MARK_WRONG)


def requests_of_case() -> int:
    """Return the whole requests of exercise 13-b: the free bytes of a rank over its share of one.

    >>> requests_of_case()
    37
    """
    return FREE // BYTES_ON_RANK


def grade_case(answer: object) -> Grade:
    """Grade exercise 13-b.

    >>> grade_case(40).misconception
    'gib-for-gb'
    """
    known = (
        ("gib-for-gb", 50 * GIB // BYTES_ON_RANK, "50 GB were read as GiB; the task says GB."),
        ("eight-heads", FREE // (8 * BYTES_ON_RANK), "Eight heads were counted on a rank. Query"
         " heads keep nothing, and of the 8 KV heads a rank has one."),
        ("factor-two", 2 * FREE // BYTES_ON_RANK, "Half the bytes of a token are missing: keys and"
         " values, in 2 bytes each."),
        ("one-rank-of-eight", 8 * FREE // BYTES_ON_RANK, "The room of all ranks, but the share of"
         " one: every request needs room on every rank."),
        ("share-forgotten", 58 * GB // BYTES_ON_RANK, "The 90 % were left out."),
        ("overhead-forgotten", 54 * GB // BYTES_ON_RANK, "The overhead was left out."),
        ("weights-forgotten", 68 * GB // BYTES_ON_RANK, "The weights are on the card, too."),
    )  # fmt: skip
    slips = tuple(Misconception(*row) for row in known)
    words = ("requests", "request", "users")
    target = Target(requests_of_case(), unit="", words=words, exact=True, misconceptions=slips)
    return grade_number(answer, target)
