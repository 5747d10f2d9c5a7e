"""The exercises of chapter 01: one token's attention over cached keys and values."""

from kvlab.course import checks_01
from kvlab.course.exercises import CheckResult, Exercise, check

ATTEND = Exercise(
    id="01-a",
    title="Attention of one query over the cache",
    statement=(
        "Write `attend(query, keys, values)`: the output of one attention head for the newest "
        "token. `query` has shape (head_dim,), `keys` and `values` (kv_len, head_dim). Numpy only; "
        "roughly 4 lines."
    ),
    stub="def attend(query, keys, values):\n    ...",
    grade=checks_01.grade_attend,
    why=(
        "One query met every key in the cache, and the weights mixed the values. No old query "
        "was needed, which is why none is kept."
    ),
    hints=(
        "One score for each key: the dot product of the query with it. `keys @ query` does all.",
        "Divide the scores by the square root of head_dim, which is `len(query)`.",
        "Softmax: take `np.exp`, then divide by the sum.",
        "The output is the sum of the values, each times its weight: `weights @ values`.",
    ),
    solution=(
        "import numpy as np\n\n"
        "def attend(query, keys, values):\n"
        "    scores = keys @ query / np.sqrt(len(query))  # (kv_len,)\n"
        "    powers = np.exp(scores - scores.max())       # the largest is 1: no overflow\n"
        "    weights = powers / powers.sum()\n"
        "    return weights @ values                      # (head_dim,)\n"
    ),
)

POSITIONS = Exercise(
    id="01-b",
    title="The position of what comes next",
    statement=(
        "Write `new_positions(q_len, cached_tokens)`: the list of 0-based positions of `q_len` new "
        "tokens when the cache already holds `cached_tokens`. Roughly 1 line."
    ),
    stub="def new_positions(q_len, cached_tokens):\n    ...",
    grade=checks_01.grade_positions,
    why=(
        "Positions go on where the cache ends. A wrong offset raises no error: RoPE turns the new "
        "query and key by the wrong angle, and the text drifts."
    ),
    hints=(
        "Seven cached tokens hold positions 0 to 6.",
        "So the first new token has position `cached_tokens`.",
        "`range(start, stop)` leaves out `stop`.",
    ),
    solution=(
        "def new_positions(q_len, cached_tokens):\n"
        "    return list(range(cached_tokens, cached_tokens + q_len))\n"
    ),
)

CACHE_SHAPE = Exercise(
    id="01-c",
    title="The shape of one layer's keys",
    statement=(
        "SmolLM2-135M has 30 layers, 9 query heads, 3 KV heads, head_dim 64 and hidden size 576. "
        "One sequence: a prompt of 12 tokens, then 5 tokens emitted. What shape do the keys of one "
        "layer have? Answer with a tuple (batch, KV heads, positions, head_dim)."
    ),
    grade=checks_01.grade_shape,
    why=(
        "One vector of head_dim numbers for each KV head and each position that was consumed; "
        "three query heads share each of them."
    ),
    hints=(
        "Which heads are stored: those that ask, or those that are asked?",
        "Of the 5 emitted tokens, how many were fed back to the model?",
        "The last emitted token has no entry yet, so there are 12 + 5 - 1 positions.",
    ),
    solution=(
        "# batch 1, 3 KV heads, 12 + 5 - 1 positions, head_dim 64\n"
        "answer_c = (1, 3, 12 + 5 - 1, 64)\n"
    ),
    stub="answer_c = ...",
)

MASK = Exercise(
    id="01-d",
    title="A causal mask that knows of the cache",
    statement=(
        "Write `causal_mask(q_len, cached_tokens)`: a boolean array of shape "
        "(q_len, cached_tokens + q_len), True where a new query (row) may see a key "
        "(column). Roughly 2 lines of numpy."
    ),
    stub="def causal_mask(q_len, cached_tokens):\n    ...",
    grade=checks_01.grade_mask,
    why=(
        "A new query sees the whole cache and the new tokens up to itself. For a single new token "
        "the row is all True, so a decode step needs no mask."
    ),
    hints=(
        "Row i is the token at position cached_tokens + i.",
        "It may see the columns 0 to cached_tokens + i, itself included.",
        "Compare a row of columns with a column of limits: `columns <= limits[:, None]`.",
    ),
    solution=(
        "import numpy as np\n\n"
        "def causal_mask(q_len, cached_tokens):\n"
        "    columns = np.arange(cached_tokens + q_len)\n"
        "    return columns <= cached_tokens + np.arange(q_len)[:, None]\n"
    ),
)

EXERCISES = (ATTEND, POSITIONS, CACHE_SHAPE, MASK)


def check_attend(answer: object) -> CheckResult:
    """Check 01-a: a function `attend(query, keys, values)`."""
    return check("01-a", answer)


def check_new_positions(answer: object) -> CheckResult:
    """Check 01-b: a function `new_positions(q_len, cached_tokens)`."""
    return check("01-b", answer)


def check_cache_shape(answer: object) -> CheckResult:
    """Check 01-c: a shape (batch, KV heads, positions, head_dim).

    >>> check_cache_shape((1, 9, 16, 64)).grade.misconception
    'query-heads'
    """
    return check("01-c", answer)


def check_causal_mask(answer: object) -> CheckResult:
    """Check 01-d: a function `causal_mask(q_len, cached_tokens)`."""
    return check("01-d", answer)
