"""What the reader says equals the cache that transformers really builds, layer by layer.

Each model is built on the meta device (no weights), runs 16 tokens, and its cache is counted. Two
things differ on purpose, and tests here show them: Falcon's larger models cache their KV heads
expanded to all query heads, and a windowed layer keeps window - 1 tokens between steps.
"""

import warnings
from collections import Counter
from collections.abc import Mapping
from math import prod
from typing import Any

import pytest
import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM, DynamicCache, MistralConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING

from kvlab.arithmetic.catalogue import load_models
from kvlab.arithmetic.reader import read_model
from kvlab.arithmetic.storage import GROWING, STATE, ModelStorage
from kvlab.cache.hf import call_model

TOKENS = 16
EXPANDED = {"tiiuae/falcon-40b": 128, "tiiuae/falcon-180B": 232}  # and their query heads
KNOWN = {
    row.id: row.config
    for row in load_models()
    if row.config["model_type"] in CONFIG_MAPPING_NAMES and row.id not in EXPANDED
}
QUICK = ("smollm2", "gpt2", "gemma-3-1b-it", "starcoderbase-1b", "DeepSeek-V2-Lite", "Qwen3-0.6B")
SPREAD = (
    "Yi-6B", "c4ai-command-r7b-12-2024", "pythia-1b", "MiniMax-M2.5", "Qwen3.5-27B", "bloom-7b1",
    "AI21-Jamba-1.5-Large", "DeepSeek-V3", "opt-350m", "gemma-2-2b", "gemma-4-26B-A4B", "GLM-5",
    "Llama-3.2-90B-Vision", "Llama-4-Scout-17B-16E-Instruct", "Phi-3.5-mini-instruct", "mpt-7b",
    "Mistral-7B-v0.1", "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "gpt-oss-20b", "falcon-7b",
)  # fmt: skip
Layer = tuple[int, int, int]


def real_config(config: Mapping[str, Any]) -> Any:
    """The configuration object of the language model, made from the row's own fields.

    A few language models are known only together with what they are nested in.
    """
    fields = {key: value for key, value in config.items() if key != "model_type"}
    made = AutoConfig.for_model(config["model_type"], **fields)
    text = made.get_text_config(decoder=True)
    return text if type(text) in MODEL_FOR_CAUSAL_LM_MAPPING else made


def real_cache(config: Any) -> Any:
    """Return the cache after 16 tokens; nothing is computed on the meta device."""
    with warnings.catch_warnings(), torch.device("meta"), torch.no_grad():
        warnings.simplefilter("ignore")
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()
        ids = torch.ones(1, TOKENS, dtype=torch.long)
        return call_model(model, ids, cache=DynamicCache(config=config))[1]


def measured(cache: Any) -> Counter[Layer]:
    """Count the layers by (elements a token, elements of state, elements of an indexer's key)."""
    layers: Counter[Layer] = Counter()
    for layer in cache.layers:
        kept = [getattr(layer, name, None) for name in ("keys", "values")]
        elements = sum(t.numel() // TOKENS for t in kept if t is not None and t.numel())
        states = [getattr(layer, f"{name}_states", None) for name in ("conv", "recurrent")]
        tensors = [t for s in states if isinstance(s, dict) for t in s.values() if t is not None]
        index = getattr(layer, "indexer_keys", None)
        width = 0 if index is None else index.shape[-1]
        layers[elements, sum(prod(t.shape) for t in tensors), width] += 1
    return layers


def expected(model: ModelStorage) -> Counter[Layer]:
    """Count the layers of our reading in the same way; a cross layer has seen no source."""
    rows = [[0, 0, 0] for _ in range(model.num_layers)]
    for store in model.layers:
        row = rows[store.index]
        if store.kind in GROWING:
            row[0] += store.elements_per_entry
            row[2] += store.index_elements
        elif store.kind == STATE:
            row[1] += sum(state.elements for state in store.states)
    return Counter((a, b, c) for a, b, c in rows)


def compare(name: str) -> None:
    transformers.logging.set_verbosity_error()
    (found,) = [row for row in load_models() if name in row.names]
    config = real_config(found.config)
    assert measured(real_cache(config)) == expected(read_model(dict(found.config)))


@pytest.mark.parametrize("name", QUICK)
def test_a_few_models_build_the_cache_that_was_read(name: str) -> None:
    compare(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", SPREAD)
def test_a_spread_of_models_builds_the_cache_that_was_read(name: str) -> None:
    compare(name)


NOT_ON_META = "gemma-3n-E2B-it"  # its forward pass reads a number out of a tensor
REST = [
    row.id
    for row in load_models()
    if row.id in KNOWN and not set(row.names) & {*QUICK, *SPREAD, NOT_ON_META}
]


@pytest.mark.slow
@pytest.mark.parametrize("name", REST)
def test_every_other_model_builds_the_cache_that_was_read(name: str) -> None:
    compare(name)


def test_a_model_that_cannot_run_without_weights_has_the_layers_that_were_read() -> None:
    (row,) = [row for row in load_models() if NOT_ON_META in row.names]
    real = Counter(type(x).__name__ for x in DynamicCache(config=real_config(row.config)).layers)
    ours = Counter(layer.kind for layer in read_model(dict(row.config)).layers)
    classes = ("DynamicSlidingWindowLayer", "DynamicLayer", "DummyLayer")
    assert [real[name] for name in classes] == [16, 4, 10]
    assert [ours[kind] for kind in ("windowed", "full", "shared")] == [16, 4, 10]


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPANDED)
def test_a_large_falcon_caches_its_kv_heads_expanded_to_all_query_heads(name: str) -> None:
    (row,) = [row for row in load_models() if row.id == name]
    found, ours = measured(real_cache(real_config(row.config))), read_model(dict(row.config))
    expanded = sum(elements * count for (elements, _, _), count in found.items())
    assert expanded * 8 == ours.elements_per_token * EXPANDED[name]
    assert name != "tiiuae/falcon-180B" or 2 * expanded == 4_751_360


def test_a_windowed_layer_keeps_one_token_less_than_its_window_between_steps() -> None:
    config = MistralConfig(
        num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1, hidden_size=16,
        intermediate_size=8, vocab_size=32, sliding_window=8,
    )  # fmt: skip
    model = AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        ids = torch.zeros(1, 20, dtype=torch.long)
        _, cache = call_model(model, ids, cache=DynamicCache(config=config))
    (store,) = read_model(config.to_dict()).layers
    assert cache.layers[0].keys.shape[-2] == 7
    assert store.entries(20) == 8
