"""The exercises of chapter 10: who may come in, what a queue is for, what giving way costs."""

from kvlab.course import checks_10
from kvlab.course.exercises import CheckResult, Exercise, check

FITS = Exercise(
    id="10-a",
    title="Let in with a reserve",
    statement=(
        "Write `fits(prompt_tokens, max_new_tokens, free_blocks, promised_blocks, block_size)`: "
        "whether a request may come in if its whole answer must fit. `promised_blocks` are those "
        "that the running requests may still take. The last token of an answer is never fed back. "
        "Roughly 2 lines."
    ),
    stub="def fits(prompt_tokens, max_new_tokens, free_blocks, promised_blocks, block_size):\n"
    "    ...",
    grade=checks_10.grade_fits,
    why="The full length in whole blocks, against what is free and not promised to others.",
    hints=(
        "How many tokens does the request hold at most? The last one emitted takes no slot.",
        "How many blocks is that? A block that is begun counts whole.",
        "Of the free blocks, some will be taken by those who run already.",
    ),
    solution=(
        "def fits(prompt_tokens, max_new_tokens, free_blocks, promised_blocks, block_size):\n"
        "    peak = prompt_tokens + max_new_tokens - 1\n"
        "    return -(-peak // block_size) <= free_blocks - promised_blocks\n"
    ),
)

DIAGNOSE = Exercise(
    id="10-b",
    title="Diagnose from the gauges",
    statement=(
        "Write `diagnose(running, waiting, free_blocks, needed_blocks, max_running)`: what does "
        "the head of the queue lack, if the scheduler looks at seats first? Return 0 for nobody "
        "waits, 1 for a seat, 2 for blocks, 3 for the token budget. `needed_blocks` are those of "
        "the head. Roughly 5 lines."
    ),
    stub="def diagnose(running, waiting, free_blocks, needed_blocks, max_running):\n    ...",
    grade=checks_10.grade_diagnose,
    why="Ask in order: does anybody wait, is a seat free, are the blocks free. Else time is short.",
    hints=(
        "Without a queue nothing is lacking, however full the server is.",
        "A seat is lacking when `max_running` requests run.",
        "Blocks are lacking when the head needs more than are free; a few may be free all the "
        "same.",
    ),
    solution=(
        "def diagnose(running, waiting, free_blocks, needed_blocks, max_running):\n"
        "    if not waiting:\n"
        "        return 0\n"
        "    if running >= max_running:\n"
        "        return 1\n"
        "    return 2 if needed_blocks > free_blocks else 3\n"
    ),
)

SWAP_TIME = Exercise(
    id="10-c",
    title="Out and back",
    statement=(
        "Llama 3.1 8B (32 layers, 8 KV heads, head_dim 128, cache in bf16) on one H100. PCIe "
        "carries 64 GB/s in each direction. A request that holds 8,192 tokens is swapped out and "
        'later in again. How long is the link busy with it? Give a unit, such as "5 ms".'
    ),
    grade=checks_10.grade_swap,
    why=(
        "2 x 32 x 8 x 128 x 2 bytes a token are 128 KiB; 8,192 tokens are 1 GiB, 1.074 GB. It "
        "crosses twice."
    ),
    hints=(
        "How many bytes is the cache? Chapter 03 has the formula.",
        "Seconds are bytes over bytes a second. Mind GiB and GB.",
        "It crosses the link twice.",
    ),
    solution='cache = 2 * 32 * 8 * 128 * 2 * 8192\nanswer = f"{1000 * 2 * cache / 64e9} ms"\n',
)

EXERCISES = (FITS, DIAGNOSE, SWAP_TIME)


def check_fits(answer: object) -> CheckResult:
    """Check 10-a: a function `fits(...)` of five numbers."""
    return check("10-a", answer)


def check_diagnose(answer: object) -> CheckResult:
    """Check 10-b: a function `diagnose(...)` of five numbers."""
    return check("10-b", answer)


def check_swap_time(answer: object) -> CheckResult:
    """Check 10-c: a time with its unit.

    >>> check_swap_time("16.8 ms").grade.misconception
    'one-way'
    """
    return check("10-c", answer)
