"""The memory formula: worked numbers, and what it depends on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlab.arithmetic.catalogue import model_shape
from kvlab.arithmetic.memory import kv_bytes, kv_bytes_per_token
from kvlab.errors import InvalidArgument

SIZES = st.integers(1, 200)


@pytest.mark.parametrize(
    ("name", "bytes_per_token"),
    [("smollm2", 23_040), ("llama-3.1-8b", 131_072), ("llama-3.1-70b", 327_680)],
)
def test_known_models_cost_the_known_bytes_per_token_in_16_bit(
    name: str, bytes_per_token: int
) -> None:
    shape = model_shape(name)
    found = kv_bytes_per_token(
        num_layers=shape.num_layers,
        num_kv_heads=shape.num_kv_heads,
        head_dim=shape.head_dim,
        bytes_per_element=2,
    )
    assert found == bytes_per_token


@given(layers=SIZES, heads=SIZES, width=SIZES, element=SIZES, tokens=SIZES, batch=SIZES)
def test_the_formula_counts_vectors_one_by_one(
    layers: int, heads: int, width: int, element: int, tokens: int, batch: int
) -> None:
    sizes = {"num_layers": layers, "num_kv_heads": heads, "head_dim": width}
    vectors = ("key", "value")
    one_vector = width * element
    expected = len(vectors) * layers * heads * one_vector * tokens * batch
    assert kv_bytes(**sizes, bytes_per_element=element, seq_len=tokens, batch=batch) == expected


def test_an_empty_cache_holds_nothing() -> None:
    sizes = {"num_layers": 2, "num_kv_heads": 2, "head_dim": 8, "bytes_per_element": 4}
    assert kv_bytes(**sizes, seq_len=0) == 0


@pytest.mark.parametrize("wrong", ["num_layers", "num_kv_heads", "head_dim", "bytes_per_element"])
def test_a_size_of_zero_is_named(wrong: str) -> None:
    sizes = {"num_layers": 2, "num_kv_heads": 2, "head_dim": 8, "bytes_per_element": 4}
    with pytest.raises(InvalidArgument, match=f"{wrong}=0"):
        kv_bytes_per_token(**(sizes | {wrong: 0}))
