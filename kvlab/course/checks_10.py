"""What the checks of chapter 10 compare with: reference functions and known wrong ways."""

from kvlab.course.claim_math_10 import blocks_of, milliseconds_to_swap
from kvlab.course.grading import Grade, Misconception, Target, grade_number
from kvlab.course.guarded import WrongFunction, grade_function

NOBODY, SEAT, BLOCKS, BUDGET = range(4)


def fits(
    prompt_tokens: int, max_new_tokens: int, free_blocks: int, promised_blocks: int, block_size: int
) -> bool:
    """Return whether a request fits at its full length beside all that was promised.

    >>> fits(100, 29, 10, 2, 16), fits(100, 30, 10, 2, 16)
    (True, False)
    """
    peak = prompt_tokens + max_new_tokens - 1
    return blocks_of(peak, block_size) <= free_blocks - promised_blocks


_FITS_WRONG = (
    WrongFunction(
        "prompt-only",
        lambda p, n, free, promised, size: blocks_of(p, size) <= free - promised,
        "Only the prompt is counted: with a reserve the stated answer counts too.",
    ),
    WrongFunction(
        "last-token",
        lambda p, n, free, promised, size: blocks_of(p + n, size) <= free - promised,
        "Nearly: the last token emitted is never fed back, so it takes no slot.",
    ),
    WrongFunction(
        "promises-forgotten",
        lambda p, n, free, promised, size: blocks_of(p + n - 1, size) <= free,
        "Free blocks are counted, promises aren't: the running ones will still grow into them.",
    ),
    WrongFunction(
        "rounded-down",
        lambda p, n, free, promised, size: (p + n - 1) // size <= free - promised,
        "A block that is begun is taken whole: round the blocks up.",
    ),
    WrongFunction(
        "strictly-less",
        lambda p, n, free, promised, size: blocks_of(p + n - 1, size) < free - promised,
        "Nearly: a request that needs exactly what is left does fit.",
    ),
    WrongFunction(
        "two-parts",
        lambda p, n, free, promised, size: (
            blocks_of(p, size) + blocks_of(n - 1, size) <= free - promised
        ),
        "Prompt and answer were rounded up apart; the answer goes on in the prompt's last block.",
    ),
)
FITS_CASES = (
    (100, 29, 10, 2, 16),
    (100, 30, 10, 2, 16),
    (100, 28, 8, 0, 16),
    (100, 28, 9, 0, 16),
    (120, 1, 8, 0, 16),
    (121, 9, 20, 12, 16),
    (500, 2000, 200, 10, 16),
    (1, 1, 1, 0, 16),
    (64, 1, 5, 2, 16),
    (20, 21, 4, 1, 16),
    (16, 33, 3, 1, 16),
)


def grade_fits(answer: object) -> Grade:
    """Grade exercise 10-a."""
    return grade_function(answer, fits, FITS_CASES, _FITS_WRONG)


def diagnose(running: int, waiting: int, free: int, needed: int, max_running: int) -> int:
    """Return what the head of a queue lacks: 0 nobody waits, 1 a seat, 2 blocks, 3 the budget.

    >>> diagnose(64, 10, 500, 40, 64), diagnose(30, 10, 12, 40, 64), diagnose(30, 10, 500, 40, 64)
    (1, 2, 3)
    """
    if not waiting:
        return NOBODY
    if running >= max_running:
        return SEAT
    return BLOCKS if needed > free else BUDGET


_DIAGNOSE_WRONG = (
    WrongFunction(
        "pool-must-be-empty",
        lambda r, w, f, n, m: NOBODY if not w else SEAT if r >= m else BLOCKS if f == 0 else BUDGET,
        "A pool need not be empty to be too small: compare the free blocks with those needed.",
    ),
    WrongFunction(
        "queue-forgotten",
        lambda r, w, f, n, m: SEAT if r >= m else BLOCKS if n > f else BUDGET,
        "Ask first whether anybody waits: a full server without a queue is a well-used server.",
    ),
    WrongFunction(
        "blocks-before-seats",
        lambda r, w, f, n, m: NOBODY if not w else BLOCKS if n > f else SEAT if r >= m else BUDGET,
        "Here the scheduler looks at seats first: with none left it does not ask for blocks.",
    ),
    WrongFunction(
        "exact-fit",
        lambda r, w, f, n, m: NOBODY if not w else SEAT if r >= m else BLOCKS if n >= f else BUDGET,
        "A request that needs exactly the free blocks has enough of them.",
    ),
    WrongFunction(
        "always-memory",
        lambda r, w, f, n, m: BLOCKS if w else NOBODY,
        "Not every queue is for memory: look at seats and at the free blocks.",
    ),
)
DIAGNOSE_CASES = (
    (64, 10, 500, 40, 64),
    (30, 10, 12, 40, 64),
    (30, 10, 500, 40, 64),
    (64, 0, 0, 40, 64),
    (12, 0, 900, 10, 64),
    (64, 3, 5, 40, 64),
    (30, 1, 40, 40, 64),
    (30, 1, 0, 1, 64),
)


def grade_diagnose(answer: object) -> Grade:
    """Grade exercise 10-b."""
    return grade_function(answer, diagnose, DIAGNOSE_CASES, _DIAGNOSE_WRONG)


def grade_swap(answer: object) -> Grade:
    """Grade exercise 10-c."""
    right = milliseconds_to_swap("llama-3.1-8b", "H100", 8192)
    known = (
        ("one-way", right / 2, "That is one way: the cache has to come back, too."),
        ("both-directions", right / 4, "That is one way at 128 GB/s; each way has 64 GB/s."),
        ("query-heads", 4 * right, "Query heads were counted; the cache holds 8 KV heads."),
        ("one-layer", right / 32, "That is one layer; the model has 32."),
        ("gib-as-gb", 2 * 1000 / 64, "1 GiB was taken as 1 GB; it is 1.074 GB."),
        ("hbm", 2 * 2**30 / 3.35e9, "That is the GPU's own memory; the host is behind PCIe."),
    )
    slips = tuple(Misconception(*row) for row in known)
    return grade_number(answer, Target(right, unit="ms", misconceptions=slips))
