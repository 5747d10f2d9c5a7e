"""The exercises of chapter 04: what a pass waits for, what a batch shares, what a guess costs."""

from kvlab.course import checks_04, checks_04_accept
from kvlab.course.exercises import CheckResult, Exercise, check

STEP_SECONDS = Exercise(
    id="04-a",
    title="The least time of a decode step",
    statement=(
        "Write `step_seconds(batch, flops, weight_bytes, cache_bytes)` for an H100 (989e12 FLOP/s, "
        "3.35e12 bytes/s): the least time of one decode step. `flops` and `cache_bytes` are those "
        "of one request; the weights serve the whole batch. Roughly 3 lines."
    ),
    stub="def step_seconds(batch, flops, weight_bytes, cache_bytes):\n    ...",
    grade=checks_04.grade_step,
    why="The longer of arithmetic and reading counts; only the weights are shared by the batch.",
    hints=(
        "How many bytes does the step read? Which of them grow with the batch?",
        "How many FLOPs does the step do? Divide each by its rate.",
        "Arithmetic and reading run at the same time: take `max` of the two.",
    ),
    solution=(
        "def step_seconds(batch, flops, weight_bytes, cache_bytes):\n"
        "    arithmetic = batch * flops / 989e12\n"
        "    reading = (weight_bytes + batch * cache_bytes) / 3.35e12\n"
        "    return max(arithmetic, reading)\n"
    ),
)

CROSSING = Exercise(
    id="04-b",
    title="Where the cache overtakes",
    statement=(
        "Llama 3.1 8B: 8,030,261,248 parameters, 32 layers, 32 query heads, 8 KV heads, head_dim "
        "128; weights and cache in bf16. Each request holds 4,096 tokens. Which is the first batch "
        "whose decode step moves more cache than weights? Count all weights, the input embedding "
        "too."
    ),
    grade=checks_04.grade_crossing,
    why=(
        "2 bytes a weight, all of them counted, over 2 x layers x KV heads x head_dim x 2 bytes x "
        "4,096 tokens, is 29 and a large part: the next whole number moves more cache."
    ),
    hints=(
        "How many bytes are all weights?",
        "How many bytes is one request's cache? Chapter 03 has the formula.",
        "Divide, and take the next whole number.",
    ),
    solution=(
        "weights = 2 * 8_030_261_248\n"
        "cache = 2 * 32 * 8 * 128 * 2 * 4096\n"
        "answer = weights // cache + 1\n"
    ),
)

STEP_TIME = Exercise(
    id="04-c",
    title="Fits, but in time?",
    statement=(
        "Llama 3.1 70B in bf16 on eight H100 (tensor parallel 8, 3,350 GB/s each). Every rank "
        "holds 17.64 GB of weights and one of the 8 KV heads. 32 sequences hold 8,192 tokens each; "
        "the cache of a sequence is 2.5 GiB over all ranks. How long does one decode step take at "
        'least, bound by reading? Give a unit, such as "5 ms".'
    ),
    grade=checks_04.grade_step_time,
    why=(
        "A rank reads its 17.64 GB of weights and an eighth of 80 GiB of cache, 10.74 GB, at 3,350 "
        "GB/s. Nothing that ranks send each other is in it, so a real step takes longer."
    ),
    hints=(
        "All ranks work at once, so look at one of them.",
        "It reads its weights once, and its eighth of all 32 caches.",
        "Mind the units: 10 GiB are 10.74 GB.",
    ),
    solution=(
        "weights = 17.64e9\n"
        "cache = 32 * 2.5 * 2**30 / 8\n"
        'answer = f"{1000 * (weights + cache) / 3.35e12} ms"\n'
    ),
)

ACCEPT = Exercise(
    id="04-d",
    title="Keep, add, roll back",
    statement=(
        "Greedy speculative decoding. `proposed` is the draft's list of guesses; `chosen` is what "
        "the model itself chose after the last token and after each guess, one more than "
        "`proposed`. Write `accept(proposed, chosen)`: return (tokens to emit, rows to drop from "
        "the cache), which now holds a row for each guess. Roughly 4 lines."
    ),
    stub="def accept(proposed, chosen):\n    ...",
    grade=checks_04_accept.grade_accept,
    why=(
        "Guesses are right up to the first difference. The model's own choice there is emitted "
        "too, so a round emits at least one token; it has no row yet, and wrong ones lose theirs."
    ),
    hints=(
        "Count how many guesses agree before the first that does not.",
        "`chosen[right]` is the model's own token after `right` good guesses.",
        "Every guess got a row; the wrong ones are those after the first `right`.",
    ),
    solution=(
        "def accept(proposed, chosen):\n"
        "    right = 0\n"
        "    while right < len(proposed) and proposed[right] == chosen[right]:\n"
        "        right += 1\n"
        "    return [*proposed[:right], chosen[right]], len(proposed) - right\n"
    ),
)

EXERCISES = (STEP_SECONDS, CROSSING, STEP_TIME, ACCEPT)


def check_step_seconds(answer: object) -> CheckResult:
    """Check 04-a: a function `step_seconds(batch, flops, weight_bytes, cache_bytes)`."""
    return check("04-a", answer)


def check_crossing(answer: object) -> CheckResult:
    """Check 04-b: a number of requests.

    >>> check_crossing(29).grade.misconception
    'still-weights'
    """
    return check("04-b", answer)


def check_step_time(answer: object) -> CheckResult:
    """Check 04-c: a time with its unit."""
    return check("04-c", answer)


def check_accept(answer: object) -> CheckResult:
    """Check 04-d: a function `accept(proposed, chosen)`."""
    return check("04-d", answer)
