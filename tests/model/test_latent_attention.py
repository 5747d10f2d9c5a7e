"""Latent attention: both ways equal, equal to transformers' DeepSeek, its bytes and its work."""

from functools import cache as memoised
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from kvlab.arithmetic.latent_work import ABSORB, EXPAND, LatentShape, latent_work
from kvlab.arithmetic.reader import read_model
from kvlab.cache import KVCache, call_model, generate_with, transformers_cache
from kvlab.cache.latent import LatentLayer
from kvlab.errors import InvalidArgument, Unsupported
from kvlab.model.decode import generate
from kvlab.model.latent_attention import LatentAttention, LatentModel
from kvlab.model.latent_config import LatentConfig

NUM_LAYERS = 2
TOLERANCE = 1e-5
SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": NUM_LAYERS,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "vocab_size": 61,
    "kv_lora_rank": 16,
    "q_lora_rank": 12,
    "qk_rope_head_dim": 4,
    "qk_nope_head_dim": 8,
    "v_head_dim": 6,
    "first_k_dense_replace": NUM_LAYERS,
    "max_position_embeddings": 64,
    "bos_token_id": None,
    "eos_token_id": None,
}
YARN = {
    "rope_type": "yarn",
    "rope_theta": 1000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 16,
    "mscale": 1.0,
    "mscale_all_dim": 0.7,
}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "V3": ("DeepseekV3", {}),
    "V3, queries in one step": ("DeepseekV3", {"q_lora_rank": None}),
    "V3, a Llama's order of pairs": ("DeepseekV3", {"rope_interleave": False}),
    "V3, yarn": ("DeepseekV3", {"rope_parameters": YARN}),
    "V3, biases": ("DeepseekV3", {"attention_bias": True}),
    "V2": ("DeepseekV2", {}),
}
MASK = torch.tensor([[0, 0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1, 1]])
BOTH_WAYS = pytest.mark.parametrize("absorb", [False, True], ids=[EXPAND, ABSORB])
CHUNKS = pytest.mark.parametrize("chunks", [[9], [1] * 9, [4, 1, 3, 1], [1, 8]], ids=str)


@pytest.fixture(autouse=True)
def no_gradients() -> Any:
    with torch.no_grad():
        yield


@memoised
def hf_config(kind: str) -> Any:
    family, changes = KINDS[kind]
    config = getattr(transformers, f"{family}Config")(**SIZES | changes)
    config._attn_implementation = "eager"
    return config


def ours_and_theirs(kind: str) -> tuple[LatentModel, Any]:
    """Return our model, expanding, and transformers', with the same random weights."""
    ours, theirs = both_models(kind)
    ours.absorb = False
    return ours, theirs


@memoised
def both_models(kind: str) -> tuple[LatentModel, Any]:
    config = hf_config(kind)
    ours = LatentModel(LatentConfig.from_hf(config.to_dict())).init_weights(7, std=0.25).eval()
    theirs = getattr(transformers, f"{KINDS[kind][0]}ForCausalLM")(config).eval()
    theirs.load_state_dict(ours.state_dict())
    return ours, theirs


def latent_cache() -> KVCache:
    return KVCache(LatentLayer() for _ in range(NUM_LAYERS))


def some_ids(batch: int, length: int, seed: int = 1) -> Tensor:
    return torch.randint(1, 61, (batch, length), generator=torch.Generator().manual_seed(seed))


def in_chunks(model: LatentModel, ids: Tensor, chunks: list[int], cache: Any) -> Tensor:
    return torch.cat([model(piece, cache=cache) for piece in ids.split(chunks, dim=1)], dim=1)


@pytest.mark.parametrize("kind", KINDS)
@CHUNKS
def test_expanding_and_absorbing_give_the_same_attention(kind: str, chunks: list[int]) -> None:
    model, _ = ours_and_theirs(kind)
    attention = model.model.layers[0].self_attn
    hidden, outputs = torch.randn(2, 9, 32), []
    for absorb in (False, True):
        attention.absorb, cache = absorb, KVCache([LatentLayer()])
        pieces, start = [], 0
        for piece in hidden.split(chunks, dim=1):
            end = start + piece.shape[1]
            turn = model.rope.cos_sin(torch.arange(start, end)[None], hidden.dtype)
            pieces.append(attention(piece, turn, None, cache))
            start = end
        outputs.append(torch.cat(pieces, dim=1))
    assert outputs[0].abs().max() > 0.5
    torch.testing.assert_close(*outputs, rtol=0, atol=TOLERANCE)
    whole = attention(hidden, model.rope.cos_sin(torch.arange(9)[None], hidden.dtype), None, None)
    torch.testing.assert_close(outputs[1], whole, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("kind", KINDS)
@BOTH_WAYS
def test_attention_equals_that_of_transformers(kind: str, absorb: bool) -> None:
    model, theirs = ours_and_theirs(kind)
    ours, other = model.model.layers[1].self_attn, theirs.model.layers[1].self_attn
    hidden, positions = torch.randn(2, 9, 32), torch.arange(9)[None]
    causal = torch.full((9, 9), float("-inf")).triu(1)[None, None]
    expected = other(
        hidden_states=hidden,
        attention_mask=causal,
        position_embeddings=theirs.model.rotary_emb(hidden, positions),
    )[0]
    ours.absorb = absorb
    found = ours(hidden, model.rope.cos_sin(positions, hidden.dtype), None, None)
    assert expected.abs().max() > 0.5
    torch.testing.assert_close(found, expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("kind", KINDS)
@BOTH_WAYS
@CHUNKS
def test_the_model_gives_the_logits_of_transformers(
    kind: str, absorb: bool, chunks: list[int]
) -> None:
    (ours, theirs), ids, cache = ours_and_theirs(kind), some_ids(2, 9), latent_cache()
    ours.absorb = absorb
    logits = in_chunks(ours, ids, chunks, cache)
    torch.testing.assert_close(logits, call_model(theirs, ids)[0], rtol=0, atol=1e-4)
    assert cache.nbytes == NUM_LAYERS * (16 + 4) * 4 * 2 * 9
    assert cache.nbytes == 4 * 2 * 9 * read_model(hf_config(kind).to_dict()).elements_per_token


@pytest.mark.parametrize("kind", ["V3", "V2"])
def test_our_layer_holds_in_transformers_model_what_it_holds_in_ours(kind: str) -> None:
    (ours, theirs), ids = ours_and_theirs(kind), some_ids(2, 9)
    here, there = latent_cache(), latent_cache()
    skip_unless_latent(theirs)
    in_chunks(ours, ids, [4, 5], here)
    logits = torch.cat([call_model(theirs, p, cache=there)[0] for p in ids.split([4, 5], 1)], 1)
    torch.testing.assert_close(logits, call_model(theirs, ids)[0], rtol=0, atol=1e-4)
    assert there.nbytes == here.nbytes
    for layer, other in zip(here.layers, there.layers, strict=True):
        torch.testing.assert_close(layer.latent, other.latent, rtol=0, atol=TOLERANCE)
        ordered = (layer.rope_key.sort(-1)[0], other.rope_key.sort(-1)[0])  # V2 keeps its pairs
        torch.testing.assert_close(*ordered, rtol=0, atol=TOLERANCE)
    prompt = some_ids(1, 5)
    written, expected = (
        generate_with(theirs, prompt, max_new_tokens=6, cache=cache)
        for cache in (latent_cache(), None)
    )
    assert torch.equal(written, expected)


def skip_unless_latent(theirs: Any) -> None:
    """Skip where this transformers hands over expanded heads; the newest hand over the latent."""
    cache = transformers_cache("dynamic", num_layers=NUM_LAYERS)
    call_model(theirs, some_ids(1, 2), cache=cache)
    if cache.layers[0].keys.shape[1] != 1:
        pytest.skip("this transformers keeps the expanded heads of a DeepSeek model")


@BOTH_WAYS
def test_a_padded_batch_decodes_as_each_row_alone(absorb: bool) -> None:
    (model, _), ids = ours_and_theirs("V3"), some_ids(2, 7)
    model.absorb = absorb
    together = list(
        generate(model, ids, max_new_tokens=6, cache=latent_cache(), attention_mask=MASK)
    )
    for row, start in ((0, 3), (1, 0)):
        alone = generate(model, ids[row : row + 1, start:], max_new_tokens=6, cache=latent_cache())
        assert [s.token_ids[row] for s in together] == [s.token_id for s in alone]


def test_text_is_the_same_both_ways_with_and_without_a_cache_and_after_a_change_of_mind() -> None:
    (model, theirs), prompt = ours_and_theirs("V3"), some_ids(1, 5)
    texts = []
    for absorb, cache in ((False, latent_cache()), (True, latent_cache()), (True, None)):
        model.absorb = absorb
        steps = generate(model, prompt, max_new_tokens=8, cache=cache or "none")
        texts.append([step.token_id for step in steps])
    cache = latent_cache()
    model.absorb = False
    changing = []
    for step in generate(model, prompt, max_new_tokens=8, cache=cache):
        changing.append(step.token_id)
        model.absorb = not model.absorb
    assert texts[0] == texts[1] == texts[2] == changing
    assert changing == generate_with(theirs, prompt, max_new_tokens=8)[0, 5:].tolist()


@BOTH_WAYS
def test_the_work_measured_is_the_work_of_the_formula(absorb: bool) -> None:
    (model, _), batch, past, q_len = ours_and_theirs("V3"), 2, 11, 3
    attention, cache = model.model.layers[0].self_attn, KVCache([LatentLayer()])
    turn = model.rope.cos_sin(torch.arange(past + q_len)[None], torch.float32)
    attention(torch.randn(batch, past, 32), tuple(t[:, :, :past] for t in turn), None, cache)
    attention.absorb = absorb
    with FlopCounterMode(display=False) as counted:
        new = torch.randn(batch, q_len, 32)
        attention(new, tuple(t[:, :, past:] for t in turn), None, cache)
    work = latent_work(
        LatentShape.from_config(SIZES),
        ABSORB if absorb else EXPAND,
        q_len=q_len,
        kv_len=past + q_len,
        batch=batch,
    )
    assert counted.get_total_flops() == work.total


def test_a_mistake_in_the_scale_is_seen() -> None:
    (model, theirs), ids = ours_and_theirs("V3, yarn"), some_ids(1, 9)
    attentions = [block.self_attn for block in model.model.layers]
    right = attentions[0].scale
    assert right > 12**-0.5  # yarn raises it
    for attention in attentions:
        attention.scale = 12**-0.5
    wrong = model(ids)
    for attention in attentions:
        attention.scale = right
    assert (wrong - call_model(theirs, ids)[0]).abs().max() > 1e-3


def test_weights_are_shown_to_a_cache_that_asks() -> None:
    class Watching(LatentLayer):
        wants_weights = True
        seen: tuple[int, ...] = ()

        def observe(self, attention_weights: Tensor) -> None:
            self.seen = tuple(attention_weights.shape)
            torch.testing.assert_close(attention_weights.sum(-1), torch.ones(2, 4, 5))

    cache = KVCache(Watching() for _ in range(NUM_LAYERS))
    ours_and_theirs("V3")[0](some_ids(2, 5), cache=cache)
    assert [layer.seen for layer in cache.layers] == [(2, 4, 5, 5)] * NUM_LAYERS


@pytest.mark.parametrize(
    ("changes", "error", "sentence"),
    [
        ({"model_type": "llama"}, InvalidArgument, "model_type='llama': must be one of deepseek"),
        ({"first_k_dense_replace": 1}, Unsupported, "first_k_dense_replace=1: the layers after it"),
        ({"kv_lora_rank": None}, InvalidArgument, "kv_lora_rank=None: is missing"),
        ({"qk_rope_head_dim": 5}, InvalidArgument, "qk_rope_head_dim=5: must be even"),
        ({"v_head_dim": 0}, InvalidArgument, "v_head_dim=0: must be a whole number of 1 or more"),
    ],
)
def test_configs_that_cannot_be_computed_are_refused_by_name(
    changes: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        LatentConfig.from_hf(SIZES | {"model_type": "deepseek_v3"} | changes)


def test_attention_alone_has_the_parameters_of_the_real_layer() -> None:
    from kvlab.arithmetic.catalogue import find_model

    fields = dict(find_model("deepseek-v3").config) | {"first_k_dense_replace": 61}
    with torch.device("meta"):
        attention = LatentAttention(LatentConfig.from_hf(fields), layer_idx=0)
        theirs = transformers.models.deepseek_v3.modeling_deepseek_v3.DeepseekV3Attention(
            transformers.DeepseekV3Config(**fields), layer_idx=0
        )
    shapes = {name: tuple(w.shape) for name, w in attention.named_parameters()}
    assert shapes == {name: tuple(w.shape) for name, w in theirs.named_parameters()}
    assert attention.scale == pytest.approx(theirs.scaling)
