"""The exercises of chapter 11: admission, a start-up log predicted, ranks against a pool."""

from kvlab.arithmetic.units import GIB
from kvlab.course import admission_11, checks_11, checks_fit
from kvlab.course.exercises import CheckResult, Exercise, check

_FIT = checks_fit.heads_that_fit()
_MHA, _GQA = (checks_fit.request_bytes(32_768, kv_heads=heads) for heads in (32, 8))

ADMISSION = Exercise(
    id="11-a",
    title="How many may start?",
    statement=(
        "Write `admission_bound(budget_bytes, bytes_per_token, context, output, block_size)`: how "
        "many requests may be admitted when each of them grows to context + output positions and "
        "memory is handed out in whole blocks of `block_size` positions. Roughly 2 lines."
    ),
    stub=(
        "def admission_bound(budget_bytes, bytes_per_token, context, output, block_size):\n    ..."
    ),
    grade=admission_11.grade_admission,
    why=(
        "Admission rests on the peak. 48 requests of 4,096 positions fill 24 GiB of an 8B model to "
        "the last byte; each then grows by 1,000, so only 38 may start."
    ),
    hints=(
        "How many positions does a request hold when its answer is finished?",
        "Round them up to whole blocks: `-(-positions // block_size)` divides and rounds up.",
        "Whole requests only: `//`.",
    ),
    solution=(
        "def admission_bound(budget_bytes, bytes_per_token, context, output, block_size):\n"
        "    blocks = -(-(context + output) // block_size)\n"
        "    return budget_bytes // (blocks * block_size * bytes_per_token)\n"
    ),
)

LOG_TOKENS = Exercise(
    id="11-b",
    title="Predict a line of a log",
    statement=(
        "Qwen3 4B has 36 layers, 32 query heads, 8 KV heads, head_dim 128. Suppose vLLM starts it "
        "on two GPUs with tensor parallelism 2, a 16-bit cache and blocks of 16 tokens, and prints "
        "`Available KV cache memory: 15.37 GiB`, the memory of one rank. How many tokens would the "
        "next line, `GPU KV cache size`, print? Take 15.37 as exact, and give at least five digits."
    ),
    grade=checks_11.grade_log_tokens,
    why=(
        "2 x 36 layers x 4 KV heads x 128 x 2 bytes are 73,728 bytes a token on each rank, and "
        "15.37 GiB hold 13,990 blocks of 16: 223,840 tokens. A real log may differ by up to 73 "
        "tokens and a block, since its GiB are rounded."
    ),
    hints=(
        "How many of the 8 KV heads does one of two ranks keep?",
        "Bytes of a token on a rank: 2 x layers x its KV heads x head_dim x 2 bytes.",
        "15.37 GiB are 15.37 x 2^30 bytes; divide, then round down to a multiple of 16.",
    ),
    solution=(
        "per_token = 2 * 36 * (8 // 2) * 128 * 2  # bytes on one rank\n"
        "blocks = int(15.37 * 2**30) // (16 * per_token)\n"
        "answer = 16 * blocks\n"
    ),
)

START_UP = Exercise(
    id="11-c",
    title="The three numbers at the start",
    statement=(
        "Write `start_up_lines(available_bytes, bytes_per_token, block_size, max_model_len)` for a "
        "model of full attention: return (blocks, tokens, concurrency), what vLLM prints once it "
        "knows the memory left on a rank. Concurrency is the number of requests of full length, "
        "with its fraction; a request takes whole blocks. Roughly 3 lines."
    ),
    stub=(
        "def start_up_lines(available_bytes, bytes_per_token, block_size, max_model_len):\n    ..."
    ),
    grade=checks_11.grade_start_up,
    why=(
        "Blocks come first: everything else is counted in them. For full attention this is tokens "
        "over length, but for rounding; with windows or states it is not."
    ),
    hints=(
        "How many bytes does one block take?",
        "Only whole blocks exist: use `//`; the tokens are blocks times block_size.",
        "Blocks of one request: max_model_len / block_size, rounded up.",
    ),
    solution=(
        "def start_up_lines(available_bytes, bytes_per_token, block_size, max_model_len):\n"
        "    blocks = available_bytes // (block_size * bytes_per_token)\n"
        "    each = -(-max_model_len // block_size)\n"
        "    return blocks, blocks * block_size, blocks / each\n"
    ),
)

RANKS = Exercise(
    id="11-d",
    title="Sixteen ranks, four heads",
    statement=(
        "A model with 48 layers, 64 query heads, 4 KV heads and head_dim 128 runs on 16 GPUs with "
        "tensor parallelism 16 and a 16-bit cache. Each rank has 30 GiB left for caches. How many "
        "requests of 32,768 positions fit?"
    ),
    grade=checks_11.grade_ranks,
    why=(
        "A rank keeps one whole head: 24,576 bytes a token, 0.75 GiB a request, 40 requests. The "
        "pool of 480 GiB would promise 160, but it holds each head four times."
    ),
    hints=(
        "How many KV heads does one rank keep? A part of a head is of no use to it.",
        "Bytes of a token on that rank: 2 x layers x its KV heads x head_dim x 2 bytes.",
        "All 16 ranks work on every request, so the count of one rank is the count of all.",
    ),
    solution=(
        "per_token = 2 * 48 * 1 * 128 * 2  # one whole head on each rank\n"
        "answer = 30 * 2**30 // (per_token * 32_768)\n"
    ),
)

HEADS = Exercise(
    id="11-e",
    title="Thirty-two KV heads or eight?",
    statement=(
        "Llama 3.1 8B has 32 layers, 32 query heads, 8 KV heads, head_dim 128; its cache is in 16 "
        "bit. One card has 62 GiB left for caches, and each request takes 32,768 tokens. How many "
        "requests fit if every query head had its own KV head (MHA), and how many as the model is "
        "made (GQA)? Payload only. Give two whole numbers in a list, MHA first."
    ),
    grade=checks_fit.grade_heads,
    why=(
        f"{_MHA / GIB:g} GiB a request against {_GQA / GIB:g} GiB: {_FIT[0]} against {_FIT[1]}. "
        "Four times the bytes are not a quarter of the count, since each is rounded down."
    ),
    hints=(
        "Only the number of KV heads differs. By what factor does the size of a request?",
        "Bytes of a request: 2 x 32 layers x KV heads x 128 x 2 bytes x 32,768 tokens.",
        "62 x 2^30 bytes over each, both rounded down on their own.",
    ),
    solution=(
        "def fit(kv_heads):\n"
        "    return 62 * 2**30 // (2 * 32 * kv_heads * 128 * 2 * 32_768)\n"
        "\n"
        "\n"
        "answer = [fit(32), fit(8)]\n"
    ),
)

EXERCISES = (ADMISSION, LOG_TOKENS, START_UP, RANKS, HEADS)


def check_admission_bound(answer: object) -> CheckResult:
    """Check 11-a: a function that returns whole requests."""
    return check("11-a", answer)


def check_log_tokens(answer: object) -> CheckResult:
    """Check 11-b: the tokens that the log prints.

    >>> check_log_tokens(111_920).grade.misconception
    'tp-forgotten'
    """
    return check("11-b", answer)


def check_start_up_lines(answer: object) -> CheckResult:
    """Check 11-c: a function that returns (blocks, tokens, concurrency)."""
    return check("11-c", answer)


def check_rank_requests(answer: object) -> CheckResult:
    """Check 11-d: whole requests.

    >>> check_rank_requests(160).grade.misconception
    'pooled'
    """
    return check("11-d", answer)


def check_heads_that_fit(answer: object) -> CheckResult:
    """Check 11-e: two whole numbers.

    >>> check_heads_that_fit([15, 3]).grade.misconception
    'swapped'
    """
    return check("11-e", answer)
