"""The work of one pass through a model: FLOPs, weights read, cache read, on each pipeline stage.

Left out: activations, norms, softmax, RoPE, state updates of recurrent layers, and what ranks send
each other. So every time made from this is a lower bound.
"""

from dataclasses import dataclass

from kvlab.arithmetic.checks import whole_number
from kvlab.arithmetic.flops import triangle
from kvlab.arithmetic.plan_deployment import Deployment
from kvlab.arithmetic.storage import (
    CHUNKED,
    CROSS,
    GROWING,
    LATENT,
    LayerStorage,
    count_stores,
)


@dataclass(frozen=True, slots=True)
class StageWork:
    """One pass on one rank of one stage: FLOPs, and the bytes that it must move."""

    flops: int
    weight_bytes: int
    cache_bytes: int

    @property
    def bytes(self) -> int:
        """Weights and cache together."""
        return self.weight_bytes + self.cache_bytes

    @property
    def intensity(self) -> float:
        """FLOPs for each byte moved: where the pass stands on the roofline's x axis."""
        return self.flops / self.bytes if self.bytes else 0.0


def prefill_work(
    deployment: Deployment, prompt_tokens: int, batch: int = 1
) -> tuple[StageWork, ...]:
    """Return the work of a prefill of `batch` prompts: weights read once, the cache written once.

    >>> (work,) = prefill_work(Deployment.of("llama-3.1-8b"), 8192)
    >>> work.weight_bytes, work.cache_bytes, round(work.flops / 1e12)
    (16060522496, 1073741824, 132)
    """
    prompt, requests = whole_number("prompt_tokens", prompt_tokens), whole_number("batch", batch)
    return _work(deployment, (0, prompt), requests, prompt)


def decode_work(deployment: Deployment, context: int, batch: int = 1) -> tuple[StageWork, ...]:
    """Return the work of one decode step of `batch` requests whose caches then hold `context`.

    The weights are read once for the batch, each cache for its own request.

    >>> (work,) = decode_work(Deployment.of("llama-3.1-70b"), 8192, batch=32)
    >>> work.cache_bytes / 2**30
    80.0
    """
    tokens, requests = whole_number("context", context), whole_number("batch", batch)
    return _work(deployment, (tokens - 1, tokens), requests, tokens)


def _work(
    deployment: Deployment, span: tuple[int, int], batch: int, context: int
) -> tuple[StageWork, ...]:
    tokens = (span[1] - span[0]) * batch
    cache = deployment.request(context, batch).stages
    weights, layers, tp = deployment.weights, deployment.stage_layers, deployment.tp
    works = []
    for stage, stores in enumerate(deployment.stages):
        flops = 2 * tokens * weights.multiplied_per_token * layers[stage] // sum(layers)
        flops += batch * attention_flops(deployment, stores, *span)
        if stage == deployment.pp - 1:
            flops += 2 * batch * weights.head_parameters
        read = weights_read(deployment, stage, tokens)
        works.append(StageWork(-(-flops // tp), read, cache[stage].request_bytes))
    return tuple(works)


def weights_read(deployment: Deployment, stage: int, tokens: int) -> int:
    """Return the weights that a pass reads: all, but only the routed experts that are chosen."""
    held, experts = deployment.weight_bytes[stage], deployment.weights.experts
    if experts is None:
        return held
    routed = held * experts.routed // deployment.weights.parameters
    return held - int(routed * (1 - experts.share_read(tokens)))


def attention_flops(
    deployment: Deployment, stores: tuple[LayerStorage, ...], start: int, end: int
) -> int:
    """Return the FLOPs of one request's attention for the tokens at positions start+1 to end.

    Every query head computes its own scores. A latent layer is counted as it decodes: all query
    heads against the latent itself.

    >>> model = Deployment.of("llama-3.1-70b")
    >>> attention_flops(model, model.model.layers, 8191, 8192) == 4 * 80 * 64 * 128 * 8192
    True
    """
    heads = deployment.model.num_heads or deployment.model.max_kv_heads()
    total = 0
    for store, count in count_stores(stores):
        if store.kind == CROSS:
            pairs = (end - start) * deployment.source_length
        elif store.kind in GROWING:
            pairs = _pairs(store, end) - _pairs(store, start)
        else:
            continue
        width = store.k_dim + store.v_dim + (store.k_dim if store.kind == LATENT else 0)
        total += count * 2 * heads * width * pairs
    return total


def _pairs(store: LayerStorage, tokens: int) -> int:
    """Query-key pairs of the first `tokens` tokens: a triangle, cut at the window."""
    window = store.window
    if window is None:
        pairs = triangle(tokens)
    elif store.kind == CHUNKED:
        chunks, rest = divmod(tokens, window)
        pairs = chunks * triangle(window) + triangle(rest)
    else:
        pairs = triangle(min(tokens, window)) + max(tokens - window, 0) * window
    return pairs // store.stride
