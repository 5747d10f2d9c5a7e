"""The exercises of chapter 06: find a slot, count blocks, append, find the error in a chart."""

from kvlab.course import checks_06
from kvlab.course.exercises import CheckResult, Exercise, check

SLOT = Exercise(
    id="06-a",
    title="The slot of a position",
    statement=(
        "Write `slot(position, block_table, block_size)`: the physical slot of a logical "
        "position. Roughly 1 line."
    ),
    stub="def slot(position, block_table, block_size):\n    ...",
    grade=checks_06.grade_slot,
    why="The table is asked once for each block; within a block tokens lie one after another.",
    hints=(
        "Which entry of the table is about this position? Divide, and drop the rest.",
        "A block number counts blocks. How many slots come before that block?",
        "Add the place within the block: the rest of the division.",
    ),
    solution=(
        "def slot(position, block_table, block_size):\n"
        "    block_id = block_table[position // block_size]\n"
        "    return block_id * block_size + position % block_size\n"
    ),
)

BLOCKS = Exercise(
    id="06-b",
    title="Blocks of mixed requests",
    statement=(
        "Three requests hold 130, 48 and 1,001 tokens and share nothing. How many blocks of 16 "
        "do they take together?"
    ),
    grade=checks_06.grade_blocks,
    why="9 + 3 + 63. Every request is rounded up for itself, so slack is counted per request.",
    hints=(
        "May two requests share a block that is not full? Here they share nothing.",
        "So round up three times, not once.",
        "48 is a multiple of 16: its last block is full.",
    ),
    solution="answer = -(-130 // 16) + -(-48 // 16) + -(-1001 // 16)\n",
)

APPEND = Exercise(
    id="06-c",
    title="Append, with copy on write",
    statement=(
        "A sequence holds the blocks `table` and `num_tokens` tokens, one or more; it gets one "
        "more. `ref_count[b]` says how many tables hold block b, `free` lists free blocks (take "
        "the last). Write `append(table, num_tokens, ref_count, free, block_size)`: return "
        "(table, ref_count, free, copies) afterwards, `copies` a list of pairs (from, to). "
        "Roughly 9 lines."
    ),
    stub="def append(table, num_tokens, ref_count, free, block_size):\n    ...",
    grade=checks_06.grade_append,
    why=(
        "The reference count decides, not who came first: whoever writes to a block with other "
        "holders copies it, and the last holder writes where it stands."
    ),
    hints=(
        "Two questions: is the last block full? If not, does anybody else hold it?",
        "Full: take a new block with one holder. A full block is never written again.",
        "Part full and shared: take a block, put it into the table in place of the old one, and "
        "count one holder less for the old one. It stays out of `free`.",
    ),
    solution=(
        "def append(table, num_tokens, ref_count, free, block_size):\n"
        "    copies = []\n"
        "    if num_tokens % block_size == 0:\n"
        "        table.append(free.pop())\n"
        "        ref_count[table[-1]] = 1\n"
        "    elif ref_count[table[-1]] > 1:\n"
        "        old, table[-1] = table[-1], free.pop()\n"
        "        ref_count[old] -= 1\n"
        "        ref_count[table[-1]] = 1\n"
        "        copies.append((old, table[-1]))\n"
        "    return table, ref_count, free, copies\n"
    ),
)

CHART = Exercise(
    id="06-d",
    title="Find the error in the chart",
    statement=(
        "A published chart draws reservations of 32,768 tokens as bars of 16 cells. The bar of a "
        'request of 2,048 tokens has 6 filled cells and the label "88 % wasted". How many times '
        "too large is its filled part?"
    ),
    grade=checks_06.grade_chart,
    why="A cell stands for 2,048 tokens, so one cell should be filled: 93.75 % are wasted.",
    hints=(
        "How many tokens does one cell stand for?",
        "How many cells do 2,048 tokens fill? Compare with those drawn.",
    ),
    solution="answer = 6 / (16 * 2048 / 32_768)\n",
)

EXERCISES = (SLOT, BLOCKS, APPEND, CHART)


def check_slot(answer: object) -> CheckResult:
    """Check 06-a: a function `slot(position, block_table, block_size)`."""
    return check("06-a", answer)


def check_blocks(answer: object) -> CheckResult:
    """Check 06-b: a number of blocks.

    >>> check_blocks(74).grade.misconception
    'rounded-together'
    """
    return check("06-b", answer)


def check_append(answer: object) -> CheckResult:
    """Check 06-c: a function `append(...)`."""
    return check("06-c", answer)


def check_chart(answer: object) -> CheckResult:
    """Check 06-d: a factor."""
    return check("06-d", answer)
