"""Quantised caches inside both Llamas, beside transformers' own, and what they do to a batch."""

import ast
import importlib.util
import inspect
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from feeding import feed
from transformers import cache_utils

from kvlab.cache import cache_nbytes, call_model, generate_with, make_cache, rollback, truncate_to
from kvlab.cache.quantized import Fp8Layer, QuantizedLayer
from kvlab.errors import Unsupported

NUM_LAYERS = 3
NAMES = ["fp8", "fp8-e5m2", "int8", "int4", "int2"]
OPTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "by token": {"granularity": "token", "residual_length": 3, "num_sink_tokens": 1},
    "keys by channel": {"key_granularity": "channel", "key_q_group_size": 4, "residual_length": 2},
}
LOSS = {"fp8": 0.7, "fp8-e5m2": 1.5, "int8": 0.3, "int4": 4.0}  # logits here are up to 10


def new(name: str, options: str = "by token", **more: Any) -> Any:
    return make_cache(name, num_layers=NUM_LAYERS, **OPTIONS[options], **more)


def hf_feed(model: Any, chunks: list[Any], cache: Any) -> torch.Tensor:
    return torch.cat([call_model(model, chunk, cache=cache)[0] for chunk in chunks], dim=1)


@pytest.mark.parametrize("chunks", [[9, 1, 1, 1], [4, 5, 3]], ids=str)
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", NAMES)
def test_both_llamas_give_the_same_logits_through_a_quantised_cache(
    name: str, options: str, chunks: list[int], llama: Any, hf_llama: Any, ids: Any
) -> None:
    pieces = list(ids(2, sum(chunks)).split(chunks, dim=1))
    ours, theirs = new(name, options), new(name, options)
    found = feed(llama, pieces, ours)
    torch.testing.assert_close(found, hf_feed(hf_llama, pieces, theirs), rtol=0, atol=1e-4)
    assert cache_nbytes(ours) == cache_nbytes(theirs) < 2 * NUM_LAYERS * 2 * 2 * 8 * 12 * 4 + 1
    if options != "default" and name in LOSS:
        exact = llama(torch.cat(pieces, dim=1))
        assert 1e-4 < (found - exact).abs().max() < LOSS[name]


def test_an_exact_prefill_loses_nothing_and_what_follows_does(llama: Any, ids: Any) -> None:
    prompt, exact = ids(2, 12), llama(ids(2, 12))
    whole = llama(prompt, cache=new("int2"))
    torch.testing.assert_close(whole, exact, rtol=0, atol=1e-4)
    stored = llama(prompt, cache=new("int2", exact_prefill=False))
    assert (stored - exact).abs().max() > 0.5
    followed = feed(llama, [prompt[:, :10], prompt[:, 10:]], new("int2"))
    torch.testing.assert_close(followed[:, :10], exact[:, :10], rtol=0, atol=1e-4)
    assert (followed - exact)[:, 10:].abs().max() > 0.5


@pytest.mark.parametrize("name", ["fp8", "int8", "int4"])
def test_left_padding_changes_nothing_where_every_token_has_its_own_scale(
    name: str, llama: Any, ids: Any
) -> None:
    prompt, mask = ids(2, 12), torch.ones(2, 12, dtype=torch.long)
    mask[0, :5] = 0
    options = {"granularity": "token", "residual_length": 0}
    cut = [4, 4, 2, 1, 1]
    cache = make_cache(name, num_layers=NUM_LAYERS, **options)
    padded = feed(llama, list(prompt.split(cut, dim=1)), cache, mask.to(prompt.device))
    full = feed(llama, list(prompt.split(cut, dim=1)), make_cache("growing", num_layers=3), mask)
    assert bool(padded.isfinite().all())
    for row, pad in enumerate((5, 0)):
        assert (padded - full)[row, pad:].abs().max() < LOSS[name]
    alone = make_cache(name, num_layers=NUM_LAYERS, **options, exact_prefill=False)
    cache = make_cache(name, num_layers=NUM_LAYERS, **options, exact_prefill=False)
    padded = llama(prompt, cache=cache, attention_mask=mask)
    unpadded = llama(prompt[:1, 5:], cache=alone)
    torch.testing.assert_close(padded[:1, 5:], unpadded, rtol=0, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_our_fp8_by_tensor_is_transformers_fp8_for_the_same_calls(dtype: torch.dtype) -> None:
    """Its scale is frozen by the first call; so is ours. Later numbers stay within its range."""
    if not hasattr(cache_utils, "Fp8QuantizedLayer"):
        pytest.skip("this transformers has no FP8 cache layer; 5.22 and later have")
    ours, theirs = Fp8Layer(), cache_utils.Fp8QuantizedLayer()
    for call, n in enumerate((12, 1, 1, 5, 1)):
        keys, values = (torch.randn(2, 3, n, 16).clamp(-2, 2).to(dtype) for _ in range(2))
        if call == 0:
            keys[0, 0, 0, 0] = values[0, 0, 0, 0] = 3.0
        for mine, other in zip(ours.update(keys, values), theirs.update(keys, values), strict=True):
            torch.testing.assert_close(mine, other, rtol=0, atol=1e-6)
    codes, scale = theirs._quantized_keys
    assert torch.equal(ours.sides[0].codes.rows, codes.view(torch.uint8))
    assert torch.equal(ours.sides[0].fixed[0].flatten(), scale.flatten())


def test_the_fp8_cache_gives_the_logits_of_transformers_fp8_cache(
    llama: Any, hf_llama: Any, ids: Any, new_cache: Any
) -> None:
    pieces = list(ids(2, 14).split([9, 1, 3, 1], dim=1))
    theirs = hf_feed(hf_llama, pieces, new_cache("fp8"))
    found = feed(llama, pieces, make_cache("fp8", num_layers=NUM_LAYERS))
    torch.testing.assert_close(found, theirs, rtol=0, atol=1e-4)


PEERS = {"optimum.quanto": "QuantoQuantizedLayer", "hqq": "HQQQuantizedLayer"}


def is_installed(package: str) -> bool:
    root = package.partition(".")[0]
    return bool(importlib.util.find_spec(root) and importlib.util.find_spec(package))


@pytest.mark.parametrize("nbits", [4, 2])
@pytest.mark.parametrize("package", PEERS)
def test_our_integers_are_about_as_exact_as_those_of_a_quantisation_package(
    package: str, nbits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """transformers' layers over optimum-quanto and HQQ are peers, never needed."""
    if not is_installed(package):
        pytest.skip(f"{package} is not installed: kvlab's own formats need torch alone")
    if package == "optimum.quanto":  # its C++ would be compiled for minutes, to do just this
        extensions = importlib.import_module("optimum.quanto.library.extensions.extension")
        parts = range(0, 8, nbits)
        unpack = lambda t, bits: torch.cat([t >> at & 2**bits - 1 for at in parts])  # noqa: E731
        in_python = SimpleNamespace(unpack=unpack)
        monkeypatch.setattr(extensions.get_extension("quanto_cpp"), "_lib", in_python)
    options = {"nbits": nbits, "q_group_size": 32, "residual_length": 1}
    axes = {"axis_key": 1, "axis_value": 1} if package == "hqq" else {}
    theirs = getattr(cache_utils, PEERS[package])(**options, **axes)
    ours = QuantizedLayer(**{**options, "residual_length": 0}, granularity="group", symmetric=False)
    states, token = torch.randn(1, 2, 64, 64), torch.randn(1, 2, 1, 64)
    errors = []
    for layer in (ours, theirs):
        layer.update(states, states)
        keys, _ = layer.update(token, token)
        errors.append(float((keys[:, :, :64] - states).square().mean().sqrt()))
    assert 0 < errors[0] < 1.15 * errors[1]


def test_generating_and_beam_search_run_through_a_quantised_cache(hf_llama: Any, ids: Any) -> None:
    prompt = ids(2, 7)
    exact = generate_with(hf_llama, prompt, max_new_tokens=6)
    found = generate_with(hf_llama, prompt, max_new_tokens=6, cache=new("int8"))
    assert torch.equal(found[:, :9], exact[:, :9])
    beams = generate_with(hf_llama, prompt, max_new_tokens=6, cache=new("int8"), num_beams=3)
    assert beams.shape == (2, 13)


class StopBetweenLayers:
    """Press stop inside layer 1, after it wrote to the cache."""

    def __init__(self, llama: Any) -> None:
        self.block = llama.model.layers[1].mlp

    def __enter__(self) -> None:
        self.hook = self.block.register_forward_pre_hook(self.stop)

    def __exit__(self, *error: object) -> None:
        self.hook.remove()

    def stop(self, *_: object) -> None:
        raise KeyboardInterrupt


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", NAMES)
def test_an_interrupt_between_layers_leaves_a_quantised_cache_as_it_was(
    name: str, options: str, llama: Any, ids: Any
) -> None:
    cache, undisturbed, prompt, token = new(name, options), new(name, options), ids(1, 9), ids(1, 1)
    for each in (cache, undisturbed):
        llama(prompt, cache=each)
    with pytest.raises(KeyboardInterrupt), rollback(cache), StopBetweenLayers(llama):
        llama(token, cache=cache)
    assert [layer.get_seq_length() for layer in cache.layers] == [9, 9, 9]
    assert torch.equal(llama(token, cache=cache), llama(token, cache=undisturbed))


def test_a_cache_filled_in_inference_mode_can_be_used_outside_of_it(llama: Any, ids: Any) -> None:
    prompt = ids(2, 12)
    for change in (lambda c: c, lambda c: c.clone(), lambda c: c.select_rows(torch.tensor([0, 1]))):
        cache, plain = new("int4"), new("int4")
        with torch.inference_mode():
            llama(prompt[:, :8], cache=cache)
            cache = change(cache) or cache
        llama(prompt[:, :8], cache=plain)
        found = [feed(llama, list(prompt[:, 8:].split(1, dim=1)), each) for each in (cache, plain)]
        torch.testing.assert_close(*found, rtol=0, atol=1e-5)


def test_gradients_are_not_kept_by_what_is_stored(llama: Any, ids: Any) -> None:
    cache = new("int8")
    with torch.enable_grad():
        llama(ids(1, 6), cache=cache)
        llama(ids(1, 1), cache=cache)
    assert not any(part.requires_grad for part in cache.layers[0].held())


def test_shortening_by_name_is_refused_only_where_it_would_leave_a_trace(
    llama: Any, ids: Any
) -> None:
    cache = new("int8")  # 3 exact tokens, 1 sink
    llama(ids(1, 4), cache=cache)
    truncate_to(cache, 3)
    llama(ids(1, 5), cache=cache)
    with pytest.raises(Unsupported, match="cannot be shortened"):
        truncate_to(cache, 7)
    cache.truncate_to(7)  # the cache itself does it: what was quantised stays so
    assert cache.get_seq_length() == 7


def test_kvlabs_own_formats_need_torch_and_no_quantisation_package() -> None:
    """So a missing or changed package breaks no lesson; those layers are peers in one test."""
    folder = Path(inspect.getfile(QuantizedLayer)).parent
    names = [*folder.glob("quantiz*.py"), folder / "packing.py", folder / "float8.py"]
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in names]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    found = {node.module.split(".")[0] for node in nodes if isinstance(node, ast.ImportFrom)}
    found |= {a.name.split(".")[0] for n in nodes if isinstance(n, ast.Import) for a in n.names}
    assert len(names) >= 7 and "torch" in found
    assert found - set(sys.stdlib_module_names) == {"torch", "kvlab"}
