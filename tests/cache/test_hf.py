"""Our caches inside transformers' Llama, and the one file that knows its names."""

import functools
import logging
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers.utils import logging as hf_logging

from kvlab.cache import call_model, generate_with, hf

OURS = pytest.mark.parametrize("name", ["growing", "preallocated"])
ROOT = Path(__file__).parents[2]
MASK = [[0, 0, 0, 0, 1, 1, 1], [1, 1, 1, 1, 1, 1, 1]]  # two prompts of 3 and 7 tokens

GENERATE_OPTIONS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "sampled": {"do_sample": True, "temperature": 1.5, "seed": 11},
    "beams": {"num_beams": 3},
    "sampled beams": {"num_beams": 2, "do_sample": True, "seed": 5},
    "left padding": {"attention_mask": torch.tensor(MASK)},
    "left padding and beams": {"attention_mask": torch.tensor(MASK), "num_beams": 2},
    "many samples": {"num_return_sequences": 3, "do_sample": True, "seed": 3},
}


def close(a: torch.Tensor, b: torch.Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=0, atol=1e-4)


def test_this_transformers_asks_of_a_layer_what_kvlab_was_written_for() -> None:
    assert hf.layer_protocol_difference() == ""


def test_another_layer_protocol_is_told_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hf, "LAYER_METHODS", hf.LAYER_METHODS - {"update"} | {"get_max_cache"})
    sentence = hf.layer_protocol_difference()
    assert "new: update; gone: get_max_cache" in sentence and "\n" not in sentence


@OURS
@pytest.mark.parametrize("padded", [False, True])
def test_forward_in_pieces_equals_transformers_own_cache(
    name: str, padded: bool, hf_llama: Any, new_cache: Any, ids: Any
) -> None:
    prompt = ids(2, 7)
    mask = torch.tensor(MASK) if padded else torch.ones(2, 7, dtype=torch.long)
    mask = mask.to(prompt.device)
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    ours, theirs = new_cache(name), new_cache("dynamic")
    for start, end in [(0, 5), (5, 6), (6, 7)]:
        options = {"attention_mask": mask[:, :end], "position_ids": positions[:, start:end]}
        piece = prompt[:, start:end]
        logits, same = call_model(hf_llama, piece, cache=ours, **options)
        expected, _ = call_model(hf_llama, piece, cache=theirs, **options)
        close(logits, expected)
        assert same is ours
    uncached, none = call_model(hf_llama, prompt, attention_mask=mask, position_ids=positions)
    close(logits[:, -1], uncached[:, -1])
    assert none is None


@OURS
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_both_attention_kernels_of_transformers_take_our_caches(
    name: str, implementation: str, hf_llama: Any, new_cache: Any, ids: Any
) -> None:
    before = hf_llama.config._attn_implementation
    hf_llama.set_attn_implementation(implementation)
    try:
        cache, prompt = new_cache(name), ids(2, 7)
        pieces = [call_model(hf_llama, p, cache=cache)[0] for p in prompt.split([4, 1, 2], dim=1)]
        close(torch.cat(pieces, dim=1), call_model(hf_llama, prompt)[0])
    finally:
        hf_llama.set_attn_implementation(before)


@OURS
@pytest.mark.parametrize("how", GENERATE_OPTIONS)
def test_generate_writes_the_same_as_with_transformers_own_cache(
    name: str, how: str, hf_llama: Any, new_cache: Any, ids: Any
) -> None:
    prompt, options = ids(2, 7), dict(GENERATE_OPTIONS[how])
    if "attention_mask" in options:
        options["attention_mask"] = options["attention_mask"].to(prompt.device)
    ours, theirs = (
        generate_with(hf_llama, prompt, max_new_tokens=8, cache=new_cache(kind), **options)
        for kind in (name, "dynamic")
    )
    assert torch.equal(ours, theirs)
    assert ours.shape[1] == 15


@OURS
def test_generate_equals_generate_without_any_cache(
    name: str, hf_llama: Any, new_cache: Any, ids: Any
) -> None:
    prompt = ids(1, 6)
    cached = generate_with(hf_llama, prompt, max_new_tokens=10, cache=new_cache(name))
    assert torch.equal(cached, generate_with(hf_llama, prompt, max_new_tokens=10))


@OURS
def test_a_draft_model_can_roll_our_cache_back(
    name: str, hf_llama: Any, new_cache: Any, ids: Any
) -> None:
    cache, prompt = new_cache(name, capacity=48), ids(1, 6)
    drafted = generate_with(
        hf_llama, prompt, max_new_tokens=10, cache=cache, prompt_lookup_num_tokens=3
    )
    assert torch.equal(drafted, generate_with(hf_llama, prompt, max_new_tokens=10))
    lengths = {layer.get_seq_length() for layer in cache.layers}
    assert lengths == {drafted.shape[1] - 1}


@OURS
def test_after_6_prompt_and_10_new_tokens_15_are_in_the_cache(
    name: str, hf_llama: Any, new_cache: Any, ids: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, passes, forward = new_cache(name, capacity=15), [], hf_llama.forward

    @functools.wraps(forward)
    def counting(*args: Any, **kwargs: Any) -> Any:
        passes.append(kwargs["input_ids"].shape[1])
        return forward(*args, **kwargs)

    monkeypatch.setattr(hf_llama, "forward", counting)
    written = generate_with(hf_llama, ids(1, 6), max_new_tokens=10, cache=cache)
    assert written.shape[1] == 6 + 10
    assert passes == [6] + [1] * 9  # the prefill emits the first token: 10 passes, 9 of decode
    assert [layer.get_seq_length() for layer in cache.layers] == [15] * 3
    assert cache.nbytes == 15 * 3 * 2 * 2 * 8 * 4


@pytest.fixture
def hf_messages(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], list[str]]]:
    """Return a function that tells what transformers logged, also what it logs but once."""
    hf_logging.enable_propagation()
    hf_logging.warning_once.cache_clear()
    with caplog.at_level(logging.WARNING):
        yield lambda: [record.getMessage() for record in caplog.records]
    hf_logging.disable_propagation()


@OURS
def test_no_warning_about_old_names_is_raised(
    name: str, hf_llama: Any, new_cache: Any, ids: Any, hf_messages: Callable[[], list[str]]
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache = new_cache(name)
        call_model(hf_llama, ids(1, 3), cache=cache)
        cache.reset()
        generate_with(hf_llama, ids(1, 3), max_new_tokens=3, cache=cache)
        generate_with(hf_llama, ids(1, 3), max_new_tokens=3)
    assert hf_messages() == []


def test_what_transformers_reads_from_a_cache_is_ours(new_cache: Any) -> None:
    growing, preallocated = new_cache("growing"), new_cache("preallocated", capacity=9)
    assert (growing.get_max_length(), preallocated.get_max_length()) == (-1, 9)
    for cache in (growing, preallocated):
        assert cache.is_compileable is False and cache.is_sliding == [False] * 3
        assert all(layer.is_croppable for layer in cache.layers)
    assert (growing.capacity, preallocated.capacity) == (None, 9)


# -- one adapter ----------------------------------------------------------------------------


def sources(*folders: str) -> list[Path]:
    kinds = ("*.py", "*.ipynb")
    return [path for folder in folders for kind in kinds for path in (ROOT / folder).rglob(kind)]


def lines_with(pattern: str, paths: list[Path]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in paths
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(pattern, line)
    ]


def test_no_file_uses_names_that_transformers_took_away() -> None:
    gone = r"\.(key_cache|value_cache|_?seen_tokens|get_usable_length)\b|past_key_values\["
    paths = sources("kvlab", "chapters", "tools", "tests")
    assert len(paths) > 20
    assert lines_with(gone, [path for path in paths if path != Path(__file__)]) == []


def test_only_the_adapter_knows_the_cache_names_of_transformers() -> None:
    names = r"\bcache_utils|CacheLayerMixin|DynamicCache|StaticLayer|past_key_values\b|use_cache"
    adapter = [ROOT / "kvlab" / "cache" / name for name in ("hf.py", "hf_caches.py")]
    assert lines_with(names, [path for path in sources("kvlab") if path not in adapter]) == []
