"""What the checks of chapter 07 compare with: reference functions and known wrong ways."""

from kvlab.course.claim_math_07 import blocks_of_a_crowd, hit_tokens, prefix_bill
from kvlab.course.grading import Grade, Misconception, Target, grade_number
from kvlab.course.guarded import WrongFunction, grade_function

_HIT_WRONG = (
    WrongFunction(
        "every-token",
        lambda prompt, equal, block_size: min(equal, prompt - 1),
        "Single tokens were counted; only full blocks have a name.",
    ),
    WrongFunction(
        "last-token-too",
        lambda prompt, equal, block_size: equal // block_size * block_size,
        "One of the prompts is known whole. Its last token must be computed all the same, and so"
        " its last block is not found.",
    ),
    WrongFunction(
        "blocks",
        lambda prompt, equal, block_size: min(equal, prompt - 1) // block_size,
        "Those are blocks; tokens are asked for.",
    ),
    WrongFunction(
        "rounded-up",
        lambda prompt, equal, block_size: -(-equal // block_size) * block_size,
        "Rounded up: a part-full block was counted as found.",
    ),
    WrongFunction(
        "prompt-alone",
        lambda prompt, equal, block_size: (prompt - 1) // block_size * block_size,
        "The whole prompt was counted, not the part that is equal.",
    ),
)
_HIT_CASES = [(36, 34, 32), (64, 64, 32), (65, 64, 32), (1000, 1000, 16), (10, 10, 1), (20, 3, 4)]


def grade_hit(answer: object) -> Grade:
    """Grade exercise 07-a."""
    return grade_function(answer, hit_tokens, _HIT_CASES, _HIT_WRONG)


def grade_crowd(answer: object) -> Grade:
    """Grade exercise 07-b.

    >>> grade_crowd(blocks_of_a_crowd(64, 1500, 200, 16)).verdict.value
    'right'
    """
    known = (
        ("not-shared", 64 * 107, "Nothing is shared there: 64 times all blocks of a prompt."),
        ("own-alone", 93 + 64 * 13, "The 12 tokens of the part-full block were left out: each"
         " request keeps them with its own 200."),
        ("rounded-up", 94 + 64 * 13, "A part-full block was shared: 1,500 tokens fill 93 blocks"
         " and a part of the next."),
        ("shared-alone", 93, "Those are the shared blocks; what each has of its own is missing."),
        ("tokens", 1488 + 64 * 212, "Those are tokens; blocks are asked for."),
        ("one-request", 93 + 14, "That is one request. How many are there?"),
    )  # fmt: skip
    slips = tuple(Misconception(*row) for row in known)
    right = blocks_of_a_crowd(64, 1500, 200, 16)
    words = ("blocks", "block")
    target = Target(right, unit="", words=words, exact=True, misconceptions=slips)
    return grade_number(answer, target)


def grade_bill(answer: object) -> Grade:
    """Grade exercise 07-c.

    >>> [grade_bill(text).verdict.value for text in ("$0.44", "44 cents", "44")]
    ['right', 'right', 'wrong']
    """
    right = prefix_bill(40_000, 25, 3.0, 125, 10)
    known = (
        ("no-cache", 3.0, "That is the price without a cache: 25 times the whole prefix."),
        ("write-forgotten", prefix_bill(40_000, 26, 3.0, 0, 10), "Only reads were counted: the"
         " first use writes, at 1.25 times the base."),
        ("read-too-many", prefix_bill(40_000, 26, 3.0, 125, 10), "One read too many: the first"
         " use is the write, 24 are reads."),
        ("no-premium", prefix_bill(40_000, 25, 3.0, 100, 10), "The premium of the write was left"
         " out."),
        ("million", prefix_bill(10**6, 25, 3.0, 125, 10), "That is for a million tokens; the"
         " prefix has 40,000."),
        ("read-discount-inverted", prefix_bill(40_000, 25, 3.0, 125, 90), "A read costs 0.1 times"
         " the base; it saves 0.9."),
        ("cents", 100 * right, "Those are cents; the bill is asked in dollars."),
    )  # fmt: skip
    slips = tuple(Misconception(*row) for row in known)
    return grade_number(answer, Target(right, unit="$", misconceptions=slips))
