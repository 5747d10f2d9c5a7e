"""The exercises of chapter 05: what shared heads save, where they stop saving, and how to pool."""

from kvlab.course import checks_05
from kvlab.course.exercises import CheckResult, Exercise, check

PARAMETERS = Exercise(
    id="05-a",
    title="The weights of attention",
    statement=(
        "Write `attention_parameters(hidden_size, num_heads, num_kv_heads, head_dim)`: the "
        "parameters of the query, key, value and output projections of one layer, without biases. "
        "Roughly 1 line."
    ),
    stub="def attention_parameters(hidden_size, num_heads, num_kv_heads, head_dim):\n    ...",
    grade=checks_05.grade_parameters,
    why="Q and output belong to the query heads, K and V to the KV heads: only these two shrink.",
    hints=(
        "How wide is the vector that each projection takes in, and the one it gives?",
        "Q gives num_heads x head_dim numbers, K and V give num_kv_heads x head_dim each.",
        "The output projection takes num_heads x head_dim numbers back to hidden_size.",
    ),
    solution=(
        "def attention_parameters(hidden_size, num_heads, num_kv_heads, head_dim):\n"
        "    return 2 * hidden_size * (num_heads + num_kv_heads) * head_dim\n"
    ),
)

ON_A_RANK = Exercise(
    id="05-b",
    title="Four heads on eight GPUs",
    statement=(
        "Qwen3 235B has 94 layers, 64 query heads, 4 KV heads and head_dim 128; the cache is in "
        "16 bit. It runs on eight GPUs with tensor parallelism 8. How many KiB does one token "
        "take on each GPU?"
    ),
    grade=checks_05.grade_on_a_rank,
    why=(
        "Eight query heads on a GPU read one KV head, and need all of it: 2 x 94 x 1 x 128 x 2 "
        "bytes. Each head lies on two GPUs, so the pool holds everything twice."
    ),
    hints=(
        "Which query heads does one GPU compute, and which KV heads do these read?",
        "A score needs the whole key: a GPU keeps whole heads, one at least.",
        "Count the bytes of one KV head in all layers, keys and values.",
    ),
    solution='answer = f"{2 * 94 * 1 * 128 * 2 / 1024} KiB"\n',
)

POOL = Exercise(
    id="05-c",
    title="Pool the heads",
    statement=(
        "`weight` is the key projection of a layer, an array of shape (heads x head_dim, hidden); "
        "a head is head_dim rows. Write `pool(weight, num_kv_heads, head_dim)`: the projection "
        "with num_kv_heads heads, each the mean of the neighbouring heads that it replaces. "
        "Roughly 2 lines."
    ),
    stub="def pool(weight, num_kv_heads, head_dim):\n    ...",
    grade=checks_05.grade_pool,
    why=(
        "Query heads that share a KV head are neighbours, so their old KV heads are neighbours. "
        "Rows of one head stay apart: each is another number of the key."
    ),
    hints=(
        "Give the array four axes: new head, old head within it, number within the head, hidden.",
        "`weight.reshape(num_kv_heads, -1, head_dim, weight.shape[1])` has them in this order.",
        "Take the mean over the second axis and bring back two axes.",
    ),
    solution=(
        "def pool(weight, num_kv_heads, head_dim):\n"
        "    heads = weight.reshape(num_kv_heads, -1, head_dim, weight.shape[1])\n"
        "    return heads.mean(axis=1).reshape(-1, weight.shape[1])\n"
    ),
)

EXERCISES = (PARAMETERS, ON_A_RANK, POOL)


def check_parameters(answer: object) -> CheckResult:
    """Check 05-a: a function `attention_parameters(...)`."""
    return check("05-a", answer)


def check_on_a_rank(answer: object) -> CheckResult:
    """Check 05-b: a size with its unit.

    >>> check_on_a_rank("23.5 KiB").grade.misconception
    'part-of-a-head'
    """
    return check("05-b", answer)


def check_pool(answer: object) -> CheckResult:
    """Check 05-c: a function `pool(weight, num_kv_heads, head_dim)`."""
    return check("05-c", answer)
