"""Outlier channels: found where they were put, and where real models have them."""

from typing import Any

import numpy as np
import pytest
import torch

from kvlab.cache import make_cache
from kvlab.cache.quantized_tensor import dequantize, quantize
from kvlab.errors import InvalidArgument
from kvlab.model.key_outliers import KeyOutliers, key_outliers
from kvlab.model.load import load_model
from kvlab.model.phases import prefill
from kvlab.model.sample_text import prose_ids
from kvlab.model.weights import is_available


def test_a_channel_that_was_made_large_is_found_in_its_layer_and_head(make_llama: Any) -> None:
    model = make_llama()
    rows = model.model.layers[1].self_attn.k_proj.weight  # KV head 1 starts at row 8
    with torch.no_grad():
        rows[8 + 3] *= 60  # RoPE turns channel 3 together with channel 3 + head_dim / 2
    found = key_outliers(model, torch.arange(12)[None] + 1)
    assert found.largest.shape == (2, 2, 8)
    assert [(x.layer, x.kv_head) for x in found.above(5)] == [(2, 1)] * len(found.above(5))
    assert found.above(5)[0].channel in (3, 7)
    assert np.unravel_index(found.ratio.argmax(), found.ratio.shape)[:2] == (1, 1)
    values = key_outliers(model, torch.arange(12)[None] + 1, part="values")
    assert not values.above(5)


def test_the_numbers_are_those_of_the_cache(make_llama: Any) -> None:
    model, ids = make_llama(), torch.arange(10)[None].repeat(2, 1) + 1
    ids[1] += 20
    cache = make_cache("growing", num_layers=2)
    prefill(model, ids, cache)
    for part, side in (("keys", 0), ("values", 1)):
        found = key_outliers(model, ids, part=part)
        for layer_idx, layer in enumerate(cache.layers):
            expected = layer.held()[side].abs().amax(dim=(0, 2)).numpy()
            assert np.array_equal(found.largest[layer_idx], expected.astype(np.float64))
    assert np.array_equal(found.median, np.median(found.largest, axis=2))
    assert np.allclose(found.worst, found.largest.max(2) / found.median)


def test_a_head_of_zeros_has_no_outlier() -> None:
    assert KeyOutliers(np.zeros((1, 1, 4))).above(1.5) == []


def test_only_keys_and_values_can_be_asked_for(make_llama: Any) -> None:
    with pytest.raises(InvalidArgument, match="part='queries': must be keys or values"):
        key_outliers(make_llama(), [1, 2], part="queries")


@pytest.mark.weights
@pytest.mark.skipif(not is_available("smollm2"), reason="SmolLM2 is not here")
def test_smollm2s_keys_have_outlier_channels_and_its_values_hardly_any() -> None:
    loaded = load_model("smollm2", device="cpu")
    ids = prose_ids(loaded, num_tokens=128, rows=1)
    keys = key_outliers(loaded.model, ids)
    values = key_outliers(loaded.model, ids, part="values")
    assert np.median(keys.worst) > 3.5 > 2.2 > np.median(values.worst)
    assert (keys.worst > 4).mean() > 0.4 > 0.1 > (values.worst > 4).mean()
    by = {"tensor": [], "token": [], "channel": []}  # what the outliers cost in 4 bits
    cache = make_cache("growing", num_layers=30)
    prefill(loaded.model, ids, cache)
    for layer in cache.layers:
        exact = layer.held()[0].float()
        for granularity, errors in by.items():
            group = {"q_group_size": 64} if granularity == "channel" else {}
            back = dequantize(*quantize(exact, "int4", granularity=granularity, **group))
            errors.append(float((back - exact).norm() / exact.norm()))
    mean = {granularity: float(np.mean(errors)) for granularity, errors in by.items()}
    assert mean["channel"] < 0.5 * mean["token"] and mean["token"] < mean["tensor"]
