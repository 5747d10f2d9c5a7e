"""One memory, shared: the parts add up, and the crossing is where the parts are equal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlab.arithmetic.memory_split import split_memory
from kvlab.arithmetic.reader import read_model
from kvlab.errors import InvalidArgument

LLAMA = read_model("llama-3.1-8b")
WEIGHTS = 2 * 8_030_261_248


@given(
    users=st.integers(1, 500),
    context=st.integers(1, 10**6),
    capacity=st.integers(1, 10**12),
    overhead=st.integers(0, 10**10),
)
def test_the_parts_add_up_and_what_fits_fits(users, context, capacity, overhead):
    split = split_memory(
        LLAMA,
        context=context,
        users=users,
        weights_bytes=WEIGHTS,
        capacity_bytes=capacity,
        overhead_bytes=overhead,
    )
    parts = split.weights_bytes + split.overhead_bytes + split.cache_bytes + split.free_bytes
    assert parts == capacity
    assert (split.free_bytes >= 0) == (users <= split.users_that_fit) or capacity < WEIGHTS


def test_the_caches_pass_the_weights_at_3_74_users_of_32k():
    split = split_memory(
        LLAMA, context=32_768, users=4, weights_bytes=WEIGHTS, capacity_bytes=80 * 10**9
    )
    assert split.users_at_weights == pytest.approx(3.739381790161133, rel=1e-12)
    assert split.cache_bytes > WEIGHTS


def test_a_windowed_model_counts_its_window_only():
    mistral = read_model("mistral-7b-v0.1")
    sizes = [
        split_memory(mistral, context=n, users=1, weights_bytes=0, capacity_bytes=1).request_bytes
        for n in (4096, 100_000)
    ]
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize("field", ["context", "users", "capacity_bytes"])
def test_zero_is_named(field):
    sizes = {"context": 1, "users": 1, "weights_bytes": 0, "capacity_bytes": 1} | {field: 0}
    with pytest.raises(InvalidArgument, match=field):
        split_memory(LLAMA, **sizes)
