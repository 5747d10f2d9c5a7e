"""The exercises of chapter 02: counting the work, with and without a cache."""

from kvlab.course import checks_02
from kvlab.course.exercises import CheckResult, Exercise, check

TOKEN_FORWARDS = Exercise(
    id="02-a",
    title="Token-forwards",
    statement=(
        "Write `token_forwards(P, N)`: return (cached, uncached), the tokens that pass through the "
        "model for P prompt tokens and N emitted ones. The prefill emits the first; the last "
        "emitted token is not fed back. Roughly 2 lines."
    ),
    stub="def token_forwards(P, N):\n    ...",
    grade=checks_02.grade_forwards,
    why=(
        "Cached, every token but the last passes once. Uncached, step i (from 0) passes P + i "
        "tokens: N times P, and 0 + 1 + ... + (N - 1)."
    ),
    hints=(
        "Cached: P tokens in the prefill, then one token a step. How many steps are left?",
        "Uncached: the first step passes P tokens, the second P + 1, the last P + N - 1.",
        "0 + 1 + ... + (N - 1) is N(N - 1)/2; use `//` to stay with whole numbers.",
    ),
    solution=(
        "def token_forwards(P, N):\n"
        "    cached = P + N - 1\n"
        "    uncached = N * P + N * (N - 1) // 2\n"
        "    return cached, uncached\n"
    ),
)

CACHED_STEP = Exercise(
    id="02-b",
    title="One cached step",
    statement=(
        "Write `cached_step(x, keys, values, weights)` for one attention head: `x` (hidden_size,) "
        "is the newest token, `keys` and `values` (kv_len, head_dim) the cache, `weights` a dict "
        'with the matrices `"query"`, `"key"`, `"value"` (hidden_size, head_dim). Return (output, '
        "keys, values), each cache one row longer. Your `attend` of chapter 01 helps; roughly 4 "
        "lines."
    ),
    stub="def cached_step(x, keys, values, weights):\n    ...",
    grade=checks_02.grade_step,
    why=(
        "Three projections of one token, whatever the history; only the attention reads all rows. "
        "Nothing of the old tokens was projected again."
    ),
    hints=(
        'Project the one token: `x @ weights["key"]` is its key.',
        "Put key and value below the others with `np.vstack`, before attending.",
        'The query `x @ weights["query"]` attends to all rows, the new one included.',
    ),
    solution=(
        "import numpy as np\n\n"
        "def cached_step(x, keys, values, weights):\n"
        '    keys = np.vstack([keys, x @ weights["key"]])\n'
        '    values = np.vstack([values, x @ weights["value"]])\n'
        '    query = x @ weights["query"]\n'
        "    scores = keys @ query / np.sqrt(len(query))\n"
        "    powers = np.exp(scores - scores.max())\n"
        "    return powers / powers.sum() @ values, keys, values\n"
    ),
)

ATTENTION_FLOPS = Exercise(
    id="02-c",
    title="Attention of a thousand decoded tokens",
    statement=(
        "Llama 3.1 70B: 80 layers, 64 query heads, 8 KV heads, head_dim 128. With a cache, 1,000 "
        "tokens are decoded at positions 7,193 to 8,192 (counted from 1, each sees itself too). "
        "How many FLOPs does attention over the history take for all of them? Scores and weighted "
        "sum; one multiply-add is 2 FLOPs; softmax left out."
    ),
    grade=checks_02.grade_flops,
    why=(
        "4 x layers x query heads x head_dim x the sum of the positions: two products with the "
        "history (scores, weighted sum), 2 FLOPs a multiply-add. Sharing keys saves bytes, not "
        "these FLOPs."
    ),
    hints=(
        "One score is a dot product of head_dim multiply-adds; there is one for each position.",
        "The weighted sum of the values takes as many again.",
        "Every query head of every layer does this.",
        "One token: 4 x layers x query heads x head_dim x position. Then add up the positions: "
        "how many there are, times the mean of the first and the last.",
    ),
    solution="answer_c = 4 * 80 * 64 * 128 * sum(range(7193, 8192 + 1))\n",
    stub="answer_c = ...",
)

LENGTHS = Exercise(
    id="02-d",
    title="Which count is off by one?",
    statement=(
        "A prompt of 6 tokens, 10 tokens emitted, with a cache. Answer with three numbers: "
        "(forward passes, decode steps, positions in the cache at the end)."
    ),
    grade=checks_02.grade_lengths,
    why=(
        "The prefill is the first pass and emits the first token; each decode step consumes one "
        "emitted token and emits the next. The last one is never consumed."
    ),
    hints=(
        "How many tokens does the prefill emit?",
        "Each decode step emits one token; the prefill has emitted one already.",
        "Each decode step adds one position to those of the prompt.",
    ),
    solution="answer_d = (1 + 9, 10 - 1, 6 + 10 - 1)\n",
    stub="answer_d = ...",
)

EXERCISES = (TOKEN_FORWARDS, CACHED_STEP, ATTENTION_FLOPS, LENGTHS)


def check_token_forwards(answer: object) -> CheckResult:
    """Check 02-a: a function `token_forwards(P, N)` that returns (cached, uncached)."""
    return check("02-a", answer)


def check_cached_step(answer: object) -> CheckResult:
    """Check 02-b: a function `cached_step(x, keys, values, weights)`."""
    return check("02-b", answer)


def check_attention_flops(answer: object) -> CheckResult:
    """Check 02-c: a number of FLOPs.

    >>> check_attention_flops("2.52 TFLOP").grade.misconception
    'kv-heads'
    """
    return check("02-c", answer)


def check_lengths(answer: object) -> CheckResult:
    """Check 02-d: (forward passes, decode steps, positions in the cache)."""
    return check("02-d", answer)
