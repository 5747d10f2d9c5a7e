"""The exercises of chapter 13: mark yourself by the rule, and one case from end to end."""

from kvlab.course import checks_13
from kvlab.course.exercises import CheckResult, Exercise, check

MARK = Exercise(
    id="13-a",
    title="Mark yourself by the rule",
    statement=(
        "Write `counts(made, total)`: whether a spoken answer counts as right. `made` is the list "
        "of the points you made, numbered from 1; the rubric has `total` points. All but one are "
        "needed, and never without point 1, the scope. Roughly 1 line."
    ),
    stub="def counts(made, total):\n    # your code\n    ...",
    grade=checks_13.grade_mark,
    why="A number without its scope can't be checked: the scope is the point you can't miss.",
    hints=(
        "Two conditions have to hold at once.",
        "A point that is named twice is one point: a `set` counts it once.",
        "`1 in made` is the first condition.",
    ),
    solution=("def counts(made, total):\n    return 1 in made and len(set(made)) >= total - 1\n"),
)

CASE = Exercise(
    id="13-b",
    title="One case from end to end",
    statement=(
        "Eight cards of 80 GB, tensor parallel 8; 90 % of each may be used, 18 GB of it are "
        "weights and 4 GB overhead. The model has 80 layers, 64 query heads, 8 KV heads and "
        "head_dim 128; the cache is in bf16. Each request takes at most 32,768 tokens, its answer "
        "included. How many requests fit at once?"
    ),
    stub="answer = ...",
    grade=checks_13.grade_case,
    why="80 x 0.9 - 18 - 4 = 50 GB on a rank, over 2 x 80 x 1 x 128 x 2 x 32,768 bytes; whole"
    " requests only.",
    hints=(
        "Work on one rank. How many GB are left for caches there?",
        "How many KV heads does that rank hold? Those of the query heads keep nothing.",
        "Bytes of a request on the rank: 2 x 80 x 1 x 128 x 2 x 32,768. Divide and round down.",
    ),
    solution=(
        "free = int(80 * 0.9 - 18 - 4) * 10**9\n"
        "on_rank = 2 * 80 * 1 * 128 * 2 * 32_768\n"
        "answer = free // on_rank\n"
    ),
)

EXERCISES = (MARK, CASE)


def check_mark(answer: object) -> CheckResult:
    """Check 13-a: a function.

    >>> check_mark(...).grade.answered
    False
    """
    return check("13-a", answer)


def check_case(answer: object) -> CheckResult:
    """Check 13-b: a number of requests.

    >>> check_case(37).grade.right
    True
    """
    return check("13-b", answer)
