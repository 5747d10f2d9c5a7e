"""What the checks 11-b to 11-d compare with: reference functions, slips, numbers of real logs."""

from math import floor

from kvlab.arithmetic.memory import kv_bytes_per_token
from kvlab.arithmetic.ranks import heads_on_rank
from kvlab.arithmetic.units import GIB
from kvlab.course.grading import Grade, Misconception, Target, grade_number
from kvlab.course.guarded import WrongFunction, grade_function

LOG_GIB, LOG_BLOCK = 11.03, 16
"""Available memory and block size that vLLM 0.10.1.1 printed for Qwen2-7B on two GPUs."""

ASKED_GIB = 15.37
"""Available memory on a rank of exercise 11-b: Qwen3 4B on two GPUs, a start of our own."""

START_UPS = ((5.01, 1, 93_872), (24.83, 1, 464_848), (11.03, 2, 412_944), (12.02, 2, 450_192))
"""Four starts of one model: GiB available on a rank, ranks, tokens printed."""


def qwen2_bytes_per_token(tp: int) -> int:
    """Return the bytes of a token of Qwen2-7B on one of `tp` ranks: 28 layers, 4 KV heads of 128.

    >>> qwen2_bytes_per_token(1), qwen2_bytes_per_token(2)
    (57344, 28672)
    """
    heads = heads_on_rank(4, tp)
    return kv_bytes_per_token(num_layers=28, num_kv_heads=heads, head_dim=128, bytes_per_element=2)


def predicted_tokens(gib: float = LOG_GIB, tp: int = 2, block_size: int = LOG_BLOCK) -> int:
    """Return the tokens that a rank's memory holds in whole blocks.

    >>> predicted_tokens()
    413056
    """
    return floor(gib * GIB / (block_size * qwen2_bytes_per_token(tp))) * block_size


def asked_tokens() -> int:
    """Return the tokens of exercise 11-b: 36 layers, 8 KV heads of 128, two ranks.

    >>> asked_tokens()
    223840
    """
    each = kv_bytes_per_token(
        num_layers=36, num_kv_heads=heads_on_rank(8, 2), head_dim=128, bytes_per_element=2
    )
    return floor(ASKED_GIB * GIB / (LOG_BLOCK * each)) * LOG_BLOCK


def grade_log_tokens(answer: object) -> Grade:
    """Grade exercise 11-b: five digits are asked for, so 11 tokens more or less pass."""
    right = asked_tokens()
    rounded = "Right so far, but rounded: an engine counts whole blocks. Give five digits or more."
    known = (
        ("tp-forgotten", right // 2, "That is a token of the whole model: with tp 2 a rank keeps "
         "4 of the 8 KV heads, so half the bytes."),
        ("pooled", 2 * right, "The memory printed is that of one rank: adding both ranks' memory "
         "counts the second GPU twice. Keys without values give the same number."),
        ("query-heads", right // 4, "Query heads were counted: only the 8 KV heads are stored."),
        ("query-heads-no-tp", right // 8, "Query heads were counted, and not divided by tp."),
        ("rounded", round(right, -3), rounded),
        ("rounded", round(right, -2), rounded),
        ("gb-for-gib", round(right * 1e9 / GIB), "The log prints GiB: 2^30 bytes, not 10^9."),
        ("blocks", right // LOG_BLOCK, "Those are blocks; each holds 16 tokens."),
        ("fp8", right * 4, "A token came out at a quarter: 2 bytes for each element, K and V."),
    )  # fmt: skip
    slips = tuple(Misconception(*row) for row in known)
    target = Target(right, tolerance=0.00005, words=("tokens",), misconceptions=slips)
    return grade_number(answer, target)


def start_up_lines(
    available_bytes: int, bytes_per_token: int, block_size: int, max_model_len: int
) -> tuple[int, int, float]:
    """Return (blocks, tokens, concurrency) as vLLM prints them for a model of full attention.

    >>> start_up_lines(int(24.83 * 2**30), 57_344, 16, 16_384)[1:]
    (464928, 28.376953125)
    """
    blocks = available_bytes // (block_size * bytes_per_token)
    return blocks, blocks * block_size, blocks / -(-max_model_len // block_size)


def _unrounded(available: int, each: int, block_size: int, length: int) -> tuple[object, ...]:
    tokens = available // each
    return tokens // block_size, tokens, tokens / length


def _whole_requests(available: int, each: int, block_size: int, length: int) -> tuple[object, ...]:
    blocks, tokens, many = start_up_lines(available, each, block_size, length)
    return blocks, tokens, int(many)


def _length_in_tokens(
    available: int, each: int, block_size: int, length: int
) -> tuple[object, ...]:
    blocks, tokens, _ = start_up_lines(available, each, block_size, length)
    return blocks, tokens, tokens / length


def _length_down(available: int, each: int, block_size: int, length: int) -> tuple[object, ...]:
    blocks, tokens, _ = start_up_lines(available, each, block_size, length)
    return blocks, tokens, blocks / (length // block_size)


_LINES_WRONG = (
    WrongFunction("no-blocks", _unrounded, "The tokens must be whole blocks: count blocks first, "
                  "then multiply by block_size."),
    WrongFunction("whole-requests", _whole_requests, "The engine prints the fraction, as 28.37x; "
                  "return it too."),
    WrongFunction("length-in-tokens", _length_in_tokens, "Blocks and tokens are right. A request "
                  "takes whole blocks: divide blocks by the blocks of one request."),
    WrongFunction("length-down", _length_down, "Blocks and tokens are right. The last block of a "
                  "request is begun, so round the blocks of one request up."),
)  # fmt: skip
LINES_CASES = tuple(
    (int(gib * GIB), qwen2_bytes_per_token(tp), 16, length)
    for (gib, tp, _), length in zip(START_UPS, (16_384, 16_384, 16_384, 20_001), strict=True)
)


def grade_start_up(answer: object) -> Grade:
    """Grade exercise 11-c."""
    return grade_function(answer, start_up_lines, LINES_CASES, _LINES_WRONG)


def per_rank_requests(heads: int = 4, tp: int = 16, budget_gib: int = 30) -> int:
    """Return how many requests of 32,768 positions a rank holds: 48 layers, head_dim 128, 16 bit.

    >>> per_rank_requests()
    40
    """
    each = kv_bytes_per_token(
        num_layers=48, num_kv_heads=heads_on_rank(heads, tp), head_dim=128, bytes_per_element=2
    )
    return budget_gib * GIB // (each * 32_768)


def grade_ranks(answer: object) -> Grade:
    """Grade exercise 11-d."""
    right = per_rank_requests()
    known = (
        ("pooled", 4 * right, "That adds up the memory of all ranks, or lets a rank keep a "
         "quarter of a head: with 4 KV heads on 16 ranks each head is kept four times."),
        ("tp-ignored", right // 4, "A rank does not keep all 4 heads; tp spreads them until each "
         "rank has one."),
        ("keys-only", 2 * right, "Keys were counted without values."),
        ("divided-again", right / 16, "The 30 GiB are those of one rank, and it keeps one head: "
         "nothing is left to divide by 16."),
        ("query-heads", right / 64, "Query heads were counted: only the KV heads are stored."),
        ("all-ranks", 16 * right, "All ranks work on the same requests: what one rank holds is "
         "what the replica holds."),
    )  # fmt: skip
    slips = tuple(Misconception(*row) for row in known)
    words = ("requests", "sessions", "users")
    return grade_number(answer, Target(right, exact=True, words=words, misconceptions=slips))
