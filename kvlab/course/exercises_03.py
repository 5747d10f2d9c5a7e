"""The exercises of chapter 03: the formula, a config, a published table, a card, a measurement."""

from kvlab.course import checks_03
from kvlab.course.exercises import CheckResult, Exercise, check
from kvlab.course.exercises_03_more import GROWTH, HOW_MANY_FIT
from kvlab.course.published_table import corrections, marked

CACHE_BYTES = Exercise(
    id="03-a",
    title="The formula as a function",
    statement=(
        "Write `cache_bytes(num_layers, num_kv_heads, head_dim, bytes_per_element, seq_len, "
        "users)`: the bytes of keys and values when each user keeps `seq_len` tokens. Every layer "
        "is a full one. Roughly 1 line."
    ),
    stub=(
        "def cache_bytes(num_layers, num_kv_heads, head_dim, bytes_per_element, seq_len, users):\n"
        "    ..."
    ),
    grade=checks_03.grade_bytes,
    why=(
        "Count vectors: a key and a value, for each KV head, of each layer, for each token, of "
        "each user. Then numbers in a vector, then bytes in a number."
    ),
    hints=(
        "How many vectors does one token leave in one layer?",
        "A key and a value for each KV head: 2 x num_kv_heads, each of head_dim numbers.",
        "Then times layers, tokens, users, and bytes of a number.",
    ),
    solution=(
        "def cache_bytes(num_layers, num_kv_heads, head_dim, bytes_per_element, seq_len, users):\n"
        "    vectors = 2 * num_layers * num_kv_heads * seq_len * users\n"
        "    return vectors * head_dim * bytes_per_element\n"
    ),
)

FROM_A_CONFIG = Exercise(
    id="03-b",
    title="From a config to a size",
    statement=(
        "Qwen3 4B: hidden_size 2560, num_attention_heads 32, num_key_value_heads 8, head_dim 128, "
        "num_hidden_layers 36, max_position_embeddings 40960. It runs with its weights in 4 bit "
        "and its cache in bf16. How many GiB does the cache of one request with 32,768 tokens "
        "take? Payload only."
    ),
    grade=checks_03.grade_config,
    why=(
        "2 x 36 x 8 x 128 x 2 bytes are 147,456 bytes a token, and 32,768 of them 4.5 GiB. The "
        "config writes head_dim, so hidden_size over heads is not asked; the weights' 4 bits are "
        "not the cache's."
    ),
    hints=(
        "Which of the numbers are in the formula at all?",
        "head_dim is written: do not divide. The cache has 2 bytes for a number.",
        "Bytes a token times 32,768, then divided by 2^30.",
    ),
    solution="answer = 2 * 36 * 8 * 128 * 2 * 32_768 / 2**30\n",
)

TABLE_FACTOR = Exercise(
    id="03-c",
    title="Run the page's own function",
    statement=(
        "A page prints these sizes for Llama 3 8B in 16 bit: 128 MB for 2,048 tokens, 512 for "
        "8,192, 2,048 for 32,768, 8,192 for 131,072. Its function is `page_mib(num_layers, "
        "num_kv_heads, head_dim, seq_len)`. Run it with 32 layers, 8 KV heads, head_dim 128. By "
        "what must every printed size be multiplied?"
    ),
    grade=checks_03.grade_factor,
    why=(
        "The code has both factors, the printed table has lost one of them: text and code disagree "
        "in every row."
    ),
    hints=(
        "Call page_mib(32, 8, 128, 2048) and look at what comes out.",
        "Divide what is returned by what is printed, for each of the four lengths.",
    ),
    solution=(
        "from kvlab.course.published_table import PRINTED_MIB, page_mib\n\n"
        "ratios = [page_mib(32, 8, 128, n) / printed for n, printed in PRINTED_MIB.items()]\n"
        "answer = ratios[0]\n"
    ),
)

_LINES = "".join(
    f"#   {letter}: {printed} -> {right}\n"
    for letter, printed, right in corrections()
    if letter in marked()
)

INHERITED = Exercise(
    id="03-d",
    title="Which later numbers inherit it?",
    statement=(
        "The ten statements A to J come later on the same page. Mark those that were made from the "
        'faulty table, as letters: `answer = "A C"`. Multiply, divide or copy a faulty size and '
        "the fault comes along; divide two of them and it cancels."
    ),
    grade=checks_03.grade_marks,
    why=(
        "Sizes, and whatever is a size over something else, inherit the lost factor. Ratios of two "
        "sizes do not, and weights never met it. Correct the source, then everything downstream."
    ),
    hints=(
        "Go through them one by one: is a cache size inside?",
        "Where two cache sizes are divided by each other, the lost factor cancels.",
        "Three of the ten are sound.",
    ),
    solution=f'answer = "{" ".join(sorted(marked()))}"\n# printed -> recomputed:\n{_LINES}',
)

EXERCISES = (CACHE_BYTES, FROM_A_CONFIG, TABLE_FACTOR, INHERITED, HOW_MANY_FIT, GROWTH)


def check_cache_bytes(answer: object) -> CheckResult:
    """Check 03-a: a function `cache_bytes(...)` that returns bytes."""
    return check("03-a", answer)


def check_from_a_config(answer: object) -> CheckResult:
    """Check 03-b: a size in GiB.

    >>> check_from_a_config("18 GiB").grade.misconception
    'query-heads'
    """
    return check("03-b", answer)


def check_table_factor(answer: object) -> CheckResult:
    """Check 03-c: a factor."""
    return check("03-c", answer)


def check_inherited(answer: object) -> CheckResult:
    """Check 03-d: letters such as "A C"."""
    return check("03-d", answer)


def check_how_many_fit(answer: object) -> CheckResult:
    """Check 03-e: four whole numbers.

    >>> check_how_many_fit([496, 124, 31, 7]).grade.misconception
    'factor-2'
    """
    return check("03-e", answer)


def check_growth(answer: object) -> CheckResult:
    """Check 03-f: a function `bytes_held(tokens)` that returns bytes."""
    return check("03-f", answer)
