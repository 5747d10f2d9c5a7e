"""The promise of the whole package: a cache changes the work, never the answer.

First the matrix, every cache in both Llamas, the prompt whole, token by token and in chunks.
Then 1,000 random cases of model shape x cache x chunking x batch x left padding.
"""

import random
from collections.abc import Iterator
from functools import cache as memoised
from itertools import product
from typing import Any, NamedTuple

import pytest
import torch
import transformers
from torch import Tensor

from kvlab.arithmetic.memory import kv_bytes
from kvlab.cache import cache_nbytes, call_model, make_cache, transformers_cache
from kvlab.cache.hf_caches import cache_for
from kvlab.cache.windowed import windowed_cache
from kvlab.model.config import LlamaConfig
from kvlab.model.llama import Llama

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
TOLERANCE = 1e-4  # float32
VOCAB_SIZE = 37
MAX_TOKENS = 14
NUM_CASES = 1000

HEADS = {  # query heads, KV heads, head_dim, hidden size
    "MHA": (4, 4, 4, 16),
    "GQA": (4, 2, 8, 32),
    "MQA": (4, 1, 4, 16),
    "one head": (1, 1, 8, 16),
    "head_dim is not hidden/heads": (2, 1, 12, 16),
}
SCALED = {"rope_theta": 100.0, "factor": 4.0, "original_max_position_embeddings": 8}
ROPES: dict[str, dict[str, Any]] = {
    "default": {"rope_type": "default", "rope_theta": 100.0},
    "linear": {"rope_type": "linear", "rope_theta": 100.0, "factor": 4.0},
    "llama3": {"rope_type": "llama3", **SCALED, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
    "yarn": {"rope_type": "yarn", **SCALED},
}
OUR_CACHES = ("growing", "preallocated")
CACHES = (*OUR_CACHES, "dynamic", "static")  # those that store every token exactly
EVICTING = ("window", "sinks", "keynorm", "keydiff", "random")  # exact with room for every token
OBSERVING = ("h2o", "expected")  # the same, in our Llama alone


class Shape(NamedTuple):
    """What distinguishes one tiny model from another."""

    heads: str
    rope: str
    num_layers: int
    tied: bool = False


@memoised
def our_llama(shape: Shape) -> Llama:
    return Llama(LlamaConfig.from_hf(hf_config(shape))).init_weights(7, std=0.3).to(DEVICE).eval()


@memoised
def hf_llama(shape: Shape) -> transformers.LlamaForCausalLM:
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**hf_config(shape)))
    model.load_state_dict(our_llama(shape).state_dict())
    return model.to(DEVICE).eval()


def hf_config(shape: Shape) -> dict[str, Any]:
    names = ("num_attention_heads", "num_key_value_heads", "head_dim", "hidden_size")
    return {
        **dict(zip(names, HEADS[shape.heads], strict=True)),
        "model_type": "llama",
        "num_hidden_layers": shape.num_layers,
        "intermediate_size": 24,
        "vocab_size": VOCAB_SIZE,
        "max_position_embeddings": 32,
        "tie_word_embeddings": shape.tied,
        "rope_parameters": dict(ROPES[shape.rope]),
    }


WINDOWS = {
    "model_type": "ministral",
    "sliding_window": 4,
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
}


@memoised
def our_windowed_llama() -> Llama:
    config = LlamaConfig.from_hf(hf_config(Shape("GQA", "default", num_layers=3)) | WINDOWS)
    return Llama(config).init_weights(7, std=0.3).to(DEVICE).eval()


@memoised
def hf_windowed_llama() -> transformers.MinistralForCausalLM:
    config = hf_config(Shape("GQA", "default", num_layers=3)) | WINDOWS
    model = transformers.MinistralForCausalLM(transformers.MinistralConfig(**config))
    model.load_state_dict(our_windowed_llama().state_dict())
    return model.to(DEVICE).eval()


def new_cache(name: str, num_layers: int, capacity: int) -> Any:
    if name in OUR_CACHES:
        return make_cache(name, num_layers=num_layers, capacity=capacity)
    if name in (*EVICTING, *OBSERVING):
        return make_cache(name, num_layers=num_layers, budget=capacity)
    return transformers_cache(name, num_layers=num_layers, capacity=capacity)


def formula_bytes(shape: Shape, batch: int, seq_len: int) -> int:
    _, num_kv_heads, head_dim, _ = HEADS[shape.heads]
    layer = {"num_kv_heads": num_kv_heads, "head_dim": head_dim, "bytes_per_element": 4}
    return kv_bytes(num_layers=shape.num_layers, **layer, batch=batch, seq_len=seq_len)


def in_chunks(model: Any, ids: Tensor, chunks: list[int], cache: Any, mask: Any = None) -> Tensor:
    """Feed `ids` in pieces; return the logits of all, (batch, tokens, vocab_size)."""
    pieces, start = [], 0
    for chunk in chunks:
        end = start + chunk
        options = {} if mask is None else {"attention_mask": mask[:, :end]}
        pieces.append(forward(model, ids[:, start:end], cache, **options))
        start = end
    return torch.cat(pieces, dim=1)


@torch.no_grad()
def forward(model: Any, ids: Tensor, cache: Any, **options: Any) -> Tensor:
    if isinstance(model, Llama):
        return model(ids, cache=cache, **options)
    if "attention_mask" in options:  # transformers leaves the counting of positions to the caller
        positions = (options["attention_mask"].cumsum(-1) - 1).clamp(min=0)
        options["position_ids"] = positions[:, -ids.shape[1] :]
    return call_model(model, ids, cache=cache, **options)[0]


def random_ids(rng: random.Random, batch: int, length: int) -> Tensor:
    rows = [[rng.randrange(VOCAB_SIZE) for _ in range(length)] for _ in range(batch)]
    return torch.tensor(rows, device=DEVICE)


@pytest.mark.parametrize("chunks", [[9], [1] * 9, [4, 1, 3, 1], [1, 8]], ids=str)
@pytest.mark.parametrize(
    ("name", "model_of"),
    [
        *product((*CACHES, *EVICTING), (our_llama, hf_llama)),
        *product(OBSERVING, (our_llama,)),
    ],
)
def test_a_cached_run_gives_the_logits_of_the_uncached_run(
    name: str, model_of: Any, chunks: list[int]
) -> None:
    shape = Shape("GQA", "llama3", num_layers=3)
    ids = random_ids(random.Random(5), batch=2, length=9)
    uncached = forward(hf_llama(shape), ids, None)
    cache = new_cache(name, shape.num_layers, capacity=12)
    cached = in_chunks(model_of(shape), ids, chunks, cache)
    torch.testing.assert_close(cached, uncached, rtol=0, atol=TOLERANCE)
    assert cache_nbytes(cache) == formula_bytes(shape, batch=2, seq_len=9)


@pytest.mark.parametrize("chunks", [[9], [1] * 9, [4, 1, 3, 1], [1, 8]], ids=str)
@pytest.mark.parametrize("model_of", [our_windowed_llama, hf_windowed_llama])
@pytest.mark.parametrize("name", [*OUR_CACHES, "dynamic", "windowed"])
def test_a_windowed_model_gives_the_same_whether_or_not_its_cache_drops_what_it_cannot_see(
    name: str, model_of: Any, chunks: list[int]
) -> None:
    ids = random_ids(random.Random(5), batch=2, length=9)
    uncached = forward(hf_windowed_llama(), ids, None)
    cache = {
        "dynamic": lambda: cache_for(hf_windowed_llama().config),
        "windowed": lambda: windowed_cache(our_windowed_llama().config.layer_windows),
    }.get(name, lambda: new_cache(name, 3, 12))()
    cached = in_chunks(model_of(), ids, chunks, cache)
    torch.testing.assert_close(cached, uncached, rtol=0, atol=TOLERANCE)
    kept = (3, 9, 3) if name in ("dynamic", "windowed") else (9, 9, 9)
    layer = Shape("GQA", "default", num_layers=1)
    assert cache_nbytes(cache) == sum(formula_bytes(layer, 2, tokens) for tokens in kept)


class Case(NamedTuple):
    """One random case; row i of the batch starts with `pads[i]` tokens of padding."""

    shape: Shape
    cache: str
    chunks: list[int]
    pads: list[int]
    seed: int


def random_cases() -> Iterator[Case]:
    rng = random.Random(20260801)
    shapes = [Shape(*s) for s in product(HEADS, ROPES, (1, 2, 3), (False, True))]
    for number in range(NUM_CASES):
        length, batch = rng.randint(1, MAX_TOKENS), rng.choice([1, 1, 2, 3])
        cuts = sorted(rng.sample(range(1, length), rng.randint(0, length - 1)))
        pads = [0, *(rng.choice([0, rng.randrange(length)]) for _ in range(batch - 1))]
        rng.shuffle(pads)
        yield Case(
            shapes[number % len(shapes)],
            OUR_CACHES[number % 2] if rng.random() < 0.7 else rng.choice(CACHES),
            [end - start for start, end in zip([0, *cuts], [*cuts, length], strict=True)],
            pads,
            rng.randrange(2**31),
        )


def check(case: Case) -> None:
    """Compare each row with a run of its own, uncached and unpadded, and try one other token."""
    rng, model, batch = random.Random(case.seed), our_llama(case.shape), len(case.pads)
    length = sum(case.chunks)
    ids = random_ids(rng, batch, length)
    mask = torch.ones_like(ids)
    for row, pad in enumerate(case.pads):
        mask[row, :pad] = 0
    mask = mask if any(case.pads) else None
    capacity = length + rng.randrange(3)
    cache = new_cache(case.cache, case.shape.num_layers, capacity)
    logits = in_chunks(model, ids, case.chunks, cache, mask)
    for row, pad in enumerate(case.pads):
        alone = forward(model, ids[row : row + 1, pad:], None)[0]
        torch.testing.assert_close(logits[row, pad:], alone, rtol=0, atol=TOLERANCE)
    assert cache_nbytes(cache) == formula_bytes(case.shape, batch, length)
    changed, j = ids.clone(), rng.randrange(length)
    changed[:, j] = (changed[:, j] + 1) % VOCAB_SIZE
    cache = new_cache(case.cache, case.shape.num_layers, capacity)
    again = in_chunks(model, changed, case.chunks, cache, mask)
    torch.testing.assert_close(again[:, :j], logits[:, :j], rtol=0, atol=1e-6)
    row = case.pads.index(0)
    assert not torch.allclose(again[row, j:], logits[row, j:], rtol=0, atol=TOLERANCE)


def test_1000_random_cases_keep_logits_bytes_and_causality() -> None:
    passed, seen = 0, set()
    for case in random_cases():
        try:
            check(case)
        except Exception as error:
            raise AssertionError(f"case {passed}: {case}") from error
        passed += 1
        seen.update([case.cache, case.shape.heads, case.shape.rope, f"batch {len(case.pads)}"])
        seen.update(["padded"] if any(case.pads) else [])
    assert passed == NUM_CASES == 1000
    assert seen >= {*CACHES, *HEADS, *ROPES, "batch 1", "batch 3", "padded"}
    print(f"{passed} random cases passed")
