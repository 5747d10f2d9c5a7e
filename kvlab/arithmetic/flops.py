"""The work of generating text, counted exactly, with and without a cache.

Conventions: one multiply-add is 2 FLOPs; the prompt has P tokens and N are emitted, the first by
the prefill; a token at 1-based position t attends to t keys; the LM head runs once per emitted
token. Left out: embedding look-ups (no arithmetic), norms, RoPE, softmax, activation functions.
"""

from dataclasses import astuple, dataclass, fields

from kvlab.arithmetic.checks import whole_number
from kvlab.arithmetic.shapes import ModelShape
from kvlab.errors import InvalidArgument

CAUSAL_TRIANGLE = "causal_triangle"
"""Count a query against the keys it may see, itself and the earlier ones: the work needed."""
FULL_SQUARE = "full_square"
"""Count a query against every key of its forward, masked ones too: what an eager kernel does."""


@dataclass(frozen=True)
class FlopCount:
    """FLOPs by part; every entry is an exact int.

    >>> (FlopCount(mlp=6) + FlopCount(mlp=1, lm_head=3)).total
    10
    """

    query_output_projections: int = 0
    key_value_projections: int = 0
    mlp: int = 0
    attention_scores: int = 0
    attention_values: int = 0
    lm_head: int = 0

    @property
    def by_part(self) -> dict[str, int]:
        """The parts by name, in the order in which a layer runs them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def linear(self) -> int:
        """Projections and MLP: the work that grows with tokens, not with history."""
        return self.query_output_projections + self.key_value_projections + self.mlp

    @property
    def attention(self) -> int:
        """Scores and weighted sums over the history."""
        return self.attention_scores + self.attention_values

    @property
    def total(self) -> int:
        """All parts together."""
        return sum(astuple(self))

    def __add__(self, other: "FlopCount") -> "FlopCount":
        return FlopCount(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


def token_forwards_cached(prompt_tokens: int, new_tokens: int) -> int:
    """Return how many tokens pass through the model with a cache: P + N - 1.

    The last emitted token is never fed back. The same number of positions is left in the cache.

    >>> token_forwards_cached(2000, 1000)
    2999
    """
    prompt, new = _check_run(prompt_tokens, new_tokens)
    return prompt + new - 1


def token_forwards_uncached(prompt_tokens: int, new_tokens: int) -> int:
    """Return how many tokens pass through the model when each step runs the whole text again.

    Step i (from 0) runs P + i tokens, so N steps run N*P + N(N-1)/2.

    >>> token_forwards_uncached(2000, 1000)
    2499500
    """
    prompt, new = _check_run(prompt_tokens, new_tokens)
    return new * prompt + new * (new - 1) // 2


def flops_cached(
    shape: ModelShape, prompt_tokens: int, new_tokens: int, *, attention: str = CAUSAL_TRIANGLE
) -> FlopCount:
    """Return the work of one cached generation: a prefill of P tokens and N - 1 decode steps.

    >>> from kvlab.arithmetic.catalogue import model_shape
    >>> f"{flops_cached(model_shape('llama-3.1-70b'), 2000, 1000).total:.3e}"
    '4.245e+14'
    """
    prompt, new = _check_run(prompt_tokens, new_tokens)
    positions = prompt + new - 1
    pairs = triangle(positions)
    if is_square(attention):  # only the prefill has masked pairs; a decode step has none
        pairs += prompt * prompt - triangle(prompt)
    return count_flops(shape, tokens=positions, pairs=pairs, head_positions=new)


def flops_uncached(
    shape: ModelShape, prompt_tokens: int, new_tokens: int, *, attention: str = CAUSAL_TRIANGLE
) -> FlopCount:
    """Return the work of one generation that runs the whole text again for each new token.

    >>> from kvlab.arithmetic.catalogue import model_shape
    >>> shape = model_shape('llama-3.1-70b')
    >>> f"{flops_uncached(shape, 2000, 1000).total / flops_cached(shape, 2000, 1000).total:.1f}"
    '825.7'
    """
    prompt, new = _check_run(prompt_tokens, new_tokens)
    sum_upto = _sum_of_squares if is_square(attention) else _sum_of_triangles
    pairs = sum_upto(prompt + new - 1) - sum_upto(prompt - 1)
    tokens = token_forwards_uncached(prompt, new)
    return count_flops(shape, tokens=tokens, pairs=pairs, head_positions=new)


def count_flops(shape: ModelShape, *, tokens: int, pairs: int, head_positions: int) -> FlopCount:
    """Return the work of `tokens` token-forwards, `pairs` query-key pairs and logits.

    Every other function here only says how many of the three there are. Key and value heads enter
    the projections alone: each query head computes its own scores, whoever shares its keys.
    """
    heads = whole_number("head_positions", head_positions, minimum=0)
    query_width = shape.num_heads * shape.head_dim
    kv_width = shape.num_kv_heads * shape.head_dim
    per_token = 2 * shape.num_layers * tokens
    per_pair = 2 * shape.num_layers * query_width * pairs
    return FlopCount(
        query_output_projections=per_token * 2 * shape.hidden_size * query_width,
        key_value_projections=per_token * 2 * shape.hidden_size * kv_width,
        mlp=per_token * 3 * shape.hidden_size * shape.intermediate_size,
        attention_scores=per_pair,
        attention_values=per_pair,
        lm_head=2 * shape.hidden_size * shape.vocab_size * heads,
    )


def _check_run(prompt_tokens: int, new_tokens: int) -> tuple[int, int]:
    return whole_number("prompt_tokens", prompt_tokens), whole_number("new_tokens", new_tokens)


def is_square(attention: str) -> bool:
    """Tell whether masked pairs are counted too; raise `InvalidArgument` for an unknown way."""
    if attention not in (CAUSAL_TRIANGLE, FULL_SQUARE):
        rule = f"must be {CAUSAL_TRIANGLE!r} or {FULL_SQUARE!r}"
        raise InvalidArgument("attention", attention, rule)
    return attention == FULL_SQUARE


def triangle(n: int) -> int:
    """Return 1 + 2 + ... + n: the unmasked query-key pairs of n tokens.

    >>> triangle(24)
    300
    """
    return n * (n + 1) // 2


def _sum_of_triangles(n: int) -> int:
    """T(1) + T(2) + ... + T(n)."""
    return n * (n + 1) * (n + 2) // 6


def _sum_of_squares(n: int) -> int:
    """1 + 4 + ... + n*n."""
    return n * (n + 1) * (2 * n + 1) // 6
