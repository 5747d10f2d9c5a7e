"""What the question bank needs beyond the chapters' own functions: work, bytes, blocks and logs."""

from collections.abc import Callable
from math import floor
from typing import Any

from kvlab.arithmetic.memory import kv_bytes
from kvlab.course.claim_math_11 import full_requests
from kvlab.paging.waste import blocks_for


def attention_intensity(num_heads: int, num_kv_heads: int, bytes_per_element: int) -> float:
    """Return the FLOPs for each byte of cache that decode attention reads.

    A cached number takes part in one multiply-add for each query head that reads its KV head.

    >>> attention_intensity(32, 32, 2), attention_intensity(64, 8, 2)
    (1.0, 8.0)
    """
    return 2 * num_heads / num_kv_heads / bytes_per_element


def decoded_attention_flops(num_layers: int, num_heads: int, head_dim: int, position: int) -> int:
    """Return the attention FLOPs of one decoded token at a position counted from 1.

    Scores and the mix of values; softmax left out.

    >>> decoded_attention_flops(1, 1, 4, 10)
    160
    """
    return 4 * num_layers * num_heads * head_dim * position


def square_attention_flops(
    batch: int, tokens: int, width: int, num_layers: int, projections: int = 3
) -> int:
    """Return the FLOPs of single-head attention over the full square, 1 FLOP a score for softmax.

    `projections` square matrices make queries, keys and values; no output projection.

    >>> square_attention_flops(4, 64, 128, 9)
    302137344
    """
    project = 2 * projections * batch * tokens * width**2
    square = 4 * batch * tokens**2 * width
    return num_layers * (project + square + batch * tokens**2)


def two_caches_mib(
    num_layers: int, num_heads: int, head_dim: int, source_len: int, target_len: int
) -> float:
    """Return the MiB, in 16 bit, that an encoder-decoder's decoder keeps for one sequence.

    Its own keys and values grow with the target; those of the source are made once.

    >>> two_caches_mib(24, 16, 64, 512, 0)
    48.0
    """
    shape = {"num_layers": num_layers, "num_kv_heads": num_heads, "head_dim": head_dim}
    return kv_bytes(seq_len=source_len + target_len, bytes_per_element=2, **shape) / 2**20


def state_in_tokens(head_dim: int) -> float:
    """Return the tokens whose key and value are as many numbers as a head's d x d state.

    >>> state_in_tokens(128)
    64.0
    """
    return head_dim**2 / (2 * head_dim)


def head_dim_factor(hidden_size: int, num_heads: int, head_dim: int) -> float:
    """Return the true cache over one sized with hidden size over query heads.

    >>> head_dim_factor(1024, 16, 128)
    2.0
    """
    return head_dim * num_heads / hidden_size


def shared_numbers_ratio(num_kv_heads: int, head_dim: int, latent: int, rope: int) -> float:
    """Return the numbers of a layer's keys and values over those of a latent and its RoPE key.

    >>> round(shared_numbers_ratio(8, 128, 512, 64), 2)
    3.56
    """
    return 2 * num_kv_heads * head_dim / (latent + rope)


def first_use_that_pays(write_percent: int, read_percent: int) -> int:
    """Return the first use of a cached prefix at which all uses cost less than without a cache.

    Prices in percent of the base; the first use is the write.

    >>> first_use_that_pays(125, 10), first_use_that_pays(200, 10)
    (2, 3)
    """
    return floor((write_percent - read_percent) / (100 - read_percent)) + 1


def most_unused_slots(sequences: int, block_size: int) -> int:
    """Return the most slots that the last blocks of so many sequences can leave unused.

    >>> most_unused_slots(1, 16)
    15
    """
    return sequences * (block_size - 1)


def blocks_of_samples(samples: int, prompt_tokens: int, own_tokens: int, block_size: int) -> int:
    """Return the blocks of samples of one prompt that share its full blocks, copied on write.

    Each sample has written `own_tokens` tokens, at least one.

    >>> blocks_of_samples(4, 20, 1, 16)
    5
    """
    full = prompt_tokens // block_size
    return full + samples * (blocks_for(prompt_tokens + own_tokens, block_size) - full)


def milliseconds_to_prefill(
    billions: float, tokens: int, gpus: int, tflops: int, percent: int
) -> float:
    """Return the least time to compute tokens again: 2 FLOPs a parameter, a share of the rate.

    >>> round(milliseconds_to_prefill(70.6, 8192, 8, 989, 50))
    292
    """
    return 1000 * 2 * billions * 1e9 * tokens / (gpus * tflops * 1e12 * percent / 100)


def requests_from_log(concurrency: float, logged_len: int, length: int) -> int:
    """Return the whole requests of another length in a pool whose log names a concurrency.

    For models whose layers all keep every token.

    >>> requests_from_log(4.61, 8192, 800)
    47
    """
    return floor(concurrency * logged_len / length)


def whole_requests(
    gpus: int, card_gb: int, context: int, percent: int, overhead_gb: int = 0
) -> int:
    """Return the whole requests of Llama 3.1 70B, 16 bit, on nominal cards, rank by rank.

    >>> whole_requests(8, 80, 131_072, 90, 3)
    9
    """
    return floor(full_requests("llama-3.1-70b", gpus, card_gb, context, percent, overhead_gb))


ALL: tuple[Callable[..., Any], ...] = (
    attention_intensity,
    decoded_attention_flops,
    square_attention_flops,
    two_caches_mib,
    state_in_tokens,
    head_dim_factor,
    shared_numbers_ratio,
    first_use_that_pays,
    most_unused_slots,
    blocks_of_samples,
    milliseconds_to_prefill,
    requests_from_log,
    whole_requests,
)
