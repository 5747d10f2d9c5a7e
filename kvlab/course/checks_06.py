"""What the checks of chapter 06 compare with: reference functions and known wrong ways."""

from kvlab.course.grading import Grade, Misconception, Target, grade_number
from kvlab.course.guarded import WrongFunction, grade_function

Appended = tuple[list[int], list[int], list[int], list[tuple[int, int]]]


def slot(position: int, block_table: list[int], block_size: int) -> int:
    """Return the physical slot of a logical position.

    >>> slot(20, [7, 2], 16)
    36
    """
    return block_table[position // block_size] * block_size + position % block_size


_SLOT_WRONG = (
    WrongFunction(
        "position-itself",
        lambda position, table, size: position,
        "That is the logical position; where its block lies is for the table to say.",
    ),
    WrongFunction(
        "offset-forgotten",
        lambda position, table, size: table[position // size] * size,
        "That is the first slot of the right block; the place within the block is missing.",
    ),
    WrongFunction(
        "block-not-scaled",
        lambda position, table, size: table[position // size] + position % size,
        "A block number counts blocks; in slots it is block_size times as much.",
    ),
    WrongFunction(
        "whole-position-added",
        lambda position, table, size: table[position // size] * size + position,
        "The whole position was added; only its place within the block is left.",
    ),
)
_SLOT_CASES = [(20, [7, 2], 16), (0, [3], 4), (11, [5, 0, 9], 4), (47, [8, 1, 30], 16)]


def grade_slot(answer: object) -> Grade:
    """Grade exercise 06-a."""
    return grade_function(answer, slot, _SLOT_CASES, _SLOT_WRONG)


LENGTHS, BLOCK = (130, 48, 1001), 16


def grade_blocks(answer: object) -> Grade:
    """Grade exercise 06-b."""
    right = sum(-(-n // BLOCK) for n in LENGTHS)
    together = -(-sum(LENGTHS) // BLOCK)
    known = (
        ("rounded-together", together, "You rounded the sum: a block is never split between two."),
        ("rounded-down", sum(n // BLOCK for n in LENGTHS), "The last block is begun: round up."),
        ("one-too-many", sum(n // BLOCK + 1 for n in LENGTHS), "48 tokens fill three blocks."),
        ("slots", right * BLOCK, "Those are slots; a block holds 16 of them."),
        ("unused", right * BLOCK - sum(LENGTHS), "Those are the slots that stay empty."),
    )
    slips = tuple(Misconception(*row) for row in known)
    return grade_number(answer, Target(right, exact=True, words=("blocks",), misconceptions=slips))


def append(
    table: list[int], num_tokens: int, ref_count: list[int], free: list[int], block_size: int
) -> Appended:
    """Return (table, ref_count, free, copies) after a slot for one more token was found.

    >>> append([0, 1], 5, [2, 2, 0], [2], 4)
    ([0, 2], [2, 1, 1], [], [(1, 2)])
    """
    table, ref_count, free, copies = list(table), list(ref_count), list(free), []
    if num_tokens % block_size == 0:
        table.append(free.pop())
        ref_count[table[-1]] = 1
    elif ref_count[table[-1]] > 1:
        old, table[-1] = table[-1], free.pop()
        ref_count[old] -= 1
        ref_count[table[-1]] = 1
        copies.append((old, table[-1]))
    return table, ref_count, free, copies


def _writes_shared(
    table: list[int], num_tokens: int, ref_count: list[int], free: list[int], block_size: int
) -> Appended:
    if num_tokens % block_size == 0:
        return append(table, num_tokens, ref_count, free, block_size)
    return table, ref_count, free, []


def _keeps_count(
    table: list[int], num_tokens: int, ref_count: list[int], free: list[int], block_size: int
) -> Appended:
    after = append(table, num_tokens, ref_count, free, block_size)
    for old, _ in after[3]:
        after[1][old] += 1
    return after


def _frees_source(
    table: list[int], num_tokens: int, ref_count: list[int], free: list[int], block_size: int
) -> Appended:
    after = append(table, num_tokens, ref_count, free, block_size)
    for old, _ in after[3]:
        after[2].append(old)
        after[1][old] = 0
    return after


def _copies_own(
    table: list[int], num_tokens: int, ref_count: list[int], free: list[int], block_size: int
) -> Appended:
    if num_tokens % block_size == 0:
        return append(table, num_tokens, ref_count, free, block_size)
    held = list(ref_count)
    held[table[-1]] += 1
    after = append(table, num_tokens, held, free, block_size)
    after[1][table[-1]] -= 1
    return after


def _copies_full(
    table: list[int], num_tokens: int, ref_count: list[int], free: list[int], block_size: int
) -> Appended:
    if num_tokens % block_size or ref_count[table[-1]] < 2:
        return append(table, num_tokens, ref_count, free, block_size)
    copied = append(table, num_tokens - 1, ref_count, free, block_size)
    after = append(copied[0], num_tokens, copied[1], copied[2], block_size)
    return after[0], after[1], after[2], copied[3]


_APPEND_WRONG = (
    WrongFunction(
        "writes-to-shared",
        _writes_shared,
        "A shared block that is part full is written to: the other sequence would see the token.",
    ),
    WrongFunction(
        "count-kept",
        _keeps_count,
        "After a copy the old block has one holder fewer; with the count kept it is never freed.",
    ),
    WrongFunction(
        "frees-the-source",
        _frees_source,
        "The old block went to the free list, but the other sequence still holds it.",
    ),
    WrongFunction(
        "copies-its-own",
        _copies_own,
        "A block with a single holder was copied; its holder may write where it stands.",
    ),
    WrongFunction(
        "copies-full",
        _copies_full,
        "A full block was copied; nobody writes to it any more, so it can stay shared.",
    ),
)
_APPEND_CASES = [
    ([0, 1], 5, [2, 2, 0, 0], [3, 2], 4),  # shared and part full
    ([0, 1], 8, [2, 2, 0, 0, 0], [4, 3, 2], 4),  # shared and full
    ([0, 2], 6, [2, 1, 1, 0], [3], 4),  # its own
    ([3], 4, [0, 0, 0, 1], [0, 2, 1], 4),  # full, its own
    ([1, 0], 3, [3, 1, 0], [2], 2),  # three holders
]


def grade_append(answer: object) -> Grade:
    """Grade exercise 06-c."""
    return grade_function(answer, append, _APPEND_CASES, _APPEND_WRONG)


def grade_chart(answer: object) -> Grade:
    """Grade exercise 06-d."""
    truth = 16 * 2048 / 32_768
    known = (
        ("share-drawn", 6 / 16, "That is the share drawn; divide it by the true one."),
        ("upside-down", truth / 6, "Turned round: the chart shows too much, not too little."),
        ("waste", (10 / 16) / (15 / 16), "You compared the empty parts; the filled one is meant."),
        ("label", 0.12 / 0.0625, "That is the label, 88 %, against the truth; the bar is meant."),
        ("cells", truth, "That many cells should be filled; the chart fills six."),
    )
    slips = tuple(Misconception(*row) for row in known)
    return grade_number(answer, Target(6 / truth, words=("times", "x"), misconceptions=slips))
