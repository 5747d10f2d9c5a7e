"""The work of one step: a forward pass, a prefill in chunks, a step with or without a cache.

The conventions are those of `kvlab.arithmetic.flops`; summed, these steps give its closed forms.
"""

from kvlab.arithmetic.checks import whole_number
from kvlab.arithmetic.flops import CAUSAL_TRIANGLE, FlopCount, count_flops, is_square, triangle
from kvlab.arithmetic.shapes import ModelShape


def forward_flops(
    shape: ModelShape,
    *,
    q_len: int,
    cached_tokens: int = 0,
    head_positions: int = 1,
    attention: str = CAUSAL_TRIANGLE,
) -> FlopCount:
    """Return the work of one forward pass: `q_len` tokens on top of `cached_tokens` held.

    `head_positions` is how many positions get logits: 1 when only the last is used, `q_len` when
    all of them are, 0 for a chunk of a prompt that is not the last one.
    """
    tokens = whole_number("q_len", q_len)
    held = whole_number("cached_tokens", cached_tokens, minimum=0)
    own_pairs = tokens * tokens if is_square(attention) else triangle(tokens)
    pairs = tokens * held + own_pairs
    return count_flops(shape, tokens=tokens, pairs=pairs, head_positions=head_positions)


def prefill_flops(
    shape: ModelShape,
    prompt_tokens: int,
    *,
    chunk_size: int | None = None,
    head_positions: int = 1,
    attention: str = CAUSAL_TRIANGLE,
) -> FlopCount:
    """Return the work of a prefill, whole or in chunks.

    Chunking leaves the causal triangle as it is and makes the full square smaller, for a chunk
    never computes a score against a key of a later chunk. `head_positions` is 1 when only the
    last position gets logits; a prefill that computes them everywhere pays for P.
    """
    prompt = whole_number("prompt_tokens", prompt_tokens)
    chunk = prompt if chunk_size is None else whole_number("chunk_size", chunk_size)
    pairs = triangle(prompt)
    if is_square(attention):
        whole_chunks, rest = divmod(prompt, chunk)
        pairs = chunk * chunk * triangle(whole_chunks) + rest * prompt
    return count_flops(shape, tokens=prompt, pairs=pairs, head_positions=head_positions)


def cached_step_flops(shape: ModelShape, prompt_tokens: int, step: int) -> FlopCount:
    """Return the causal work of one step with a cache; step 0 is the prefill, step 1 a decode."""
    prompt = whole_number("prompt_tokens", prompt_tokens)
    index = whole_number("step", step, minimum=0)
    if index == 0:
        return forward_flops(shape, q_len=prompt)
    return forward_flops(shape, q_len=1, cached_tokens=prompt + index - 1)


def uncached_step_flops(shape: ModelShape, prompt_tokens: int, step: int) -> FlopCount:
    """Return the causal work of one step without a cache: all P + step tokens again."""
    prompt = whole_number("prompt_tokens", prompt_tokens)
    return forward_flops(shape, q_len=prompt + whole_number("step", step, minimum=0))


def attention_overtakes_at(shape: ModelShape) -> int:
    """Return the first 1-based position whose attention costs more than its projections and MLP.

    >>> from kvlab.arithmetic.catalogue import model_shape
    >>> attention_overtakes_at(model_shape('llama-3.1-70b'))
    52225
    """
    at_first = count_flops(shape, tokens=1, pairs=1, head_positions=0)
    return at_first.linear // at_first.attention + 1
