"""What the check 11-a compares with: requests admitted by their peak, in whole blocks."""

from kvlab.arithmetic.units import GIB
from kvlab.course.grading import Grade
from kvlab.course.guarded import WrongFunction, grade_function


def admission_bound(
    budget_bytes: int, bytes_per_token: int, context: int, output: int, block_size: int
) -> int:
    """Return the requests that fit when each reaches context + output, in whole blocks.

    >>> admission_bound(20 * 2**30, 327_680, 8192, 1024, 16)
    7
    """
    blocks = -(-(context + output) // block_size)
    return budget_bytes // (blocks * block_size * bytes_per_token)


def _no_growth(budget: int, each: int, context: int, output: int, block_size: int) -> int:
    return admission_bound(budget, each, context, 0, block_size)


def _no_blocks(budget: int, each: int, context: int, output: int, block_size: int) -> int:
    return admission_bound(budget, each, context, output, 1)


def _blocks_down(budget: int, each: int, context: int, output: int, block_size: int) -> int:
    return budget // ((context + output) // block_size * block_size * each)


def _part_no_blocks(budget: int, each: int, context: int, output: int, block_size: int) -> float:
    return budget / ((context + output) * each)


def _with_part(budget: int, each: int, context: int, output: int, block_size: int) -> float:
    return budget / (-(-(context + output) // block_size) * block_size * each)


def _one_more(budget: int, each: int, context: int, output: int, block_size: int) -> int:
    return -(-budget // (-(-(context + output) // block_size) * block_size * each))


_ADMISSION_WRONG = (
    WrongFunction("growth-forgotten", _no_growth, "The answers grow: a request ends at context + "
                  "output, and admission must leave room for that."),
    WrongFunction("blocks-forgotten", _no_blocks, "Memory is handed out in whole blocks: round "
                  "the positions up to a multiple of block_size."),
    WrongFunction("blocks-down", _blocks_down, "The last block of a request is begun, so it "
                  "counts: round the blocks up, not down."),
    WrongFunction("rounded-up", _one_more, "Rounded up: a part of a request cannot be admitted."),
    WrongFunction("fraction", _with_part, "A part of a request cannot be admitted: return a whole "
                  "number."),
    WrongFunction("true-division", _part_no_blocks, "`/` keeps fractions: neither a part of a "
                  "block nor a part of a request exists. Round the blocks up, the requests down."),
)  # fmt: skip
ADMISSION_CASES = (
    (24 * GIB, 131_072, 4096, 1000, 16),
    (24 * GIB, 131_072, 4096, 0, 16),
    (62 * GIB, 131_072, 2048, 1, 16),
    (10**9, 57_344, 1000, 100, 64),
    (10**8, 57_344, 2048, 1024, 16),
)


def grade_admission(answer: object) -> Grade:
    """Grade exercise 11-a."""
    return grade_function(answer, admission_bound, ADMISSION_CASES, _ADMISSION_WRONG)
