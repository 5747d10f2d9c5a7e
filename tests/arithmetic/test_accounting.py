"""Payload, reservation and engines side by side: each at least the payload it serves."""

import pytest

from kvlab.arithmetic.accounting import accountings
from kvlab.arithmetic.catalogue import load_models
from kvlab.arithmetic.reader import read_model

MODELS = [row.id for row in load_models()]


@pytest.mark.parametrize("name", MODELS)
def test_an_engine_charges_at_least_the_payload_of_every_known_model(name: str) -> None:
    """But for two savings: convolutions without their newest position, indexer keys in 8 bit."""
    model = read_model(name)
    found = accountings(model, context=5000, batch=2, source_length=100)
    states = [state for layer in model.layers for state in layer.states]
    saved = sum(s.units * (s.elements_per_unit - s.engine_elements_per_unit) for s in states)
    index = sum(layer.index_elements for layer in model.layers) * 5000
    assert found.payload_bytes <= found.reserved_bytes
    for charge in (found.vllm_bytes, found.llama_cpp_bytes):
        assert charge is None or charge >= found.payload_bytes - 2 * 4 * saved - 2 * 2 * index


def test_a_plain_model_differs_only_by_rounding() -> None:
    found = accountings(read_model("llama-3.1-8b"), context=1000)
    assert found.payload_bytes == found.reserved_bytes == 1000 * 131_072
    assert found.vllm_bytes == 1008 * 131_072
    assert found.llama_cpp_bytes == 1024 * 131_072


def test_what_an_engine_cannot_hold_is_said() -> None:
    model = read_model("llama-3.1-8b")
    assert accountings(model, context=9, cache_type="q4_0").vllm_bytes is None
    assert accountings(model, context=9, cache_type="fp8").llama_cpp_bytes is None
    two = accountings(model, context=9, tp=2, pp=2)
    assert two.llama_cpp_bytes is None and "one device" in two.notes[0]
    assert two.vllm_bytes == 16 * 131_072 // 4
