"""Caches by name."""

from typing import Any

import pytest
import torch

from kvlab.cache import CACHE_NAMES, GrowingLayer, PreallocatedLayer, make_cache
from kvlab.errors import CacheFull, InvalidArgument


def test_every_name_makes_what_it_says() -> None:
    assert CACHE_NAMES == ("none", "growing", "preallocated")
    assert make_cache("none", num_layers=2) is None
    kinds = {"growing": GrowingLayer, "preallocated": PreallocatedLayer}
    for name, kind in kinds.items():
        cache = make_cache(name, num_layers=4, capacity=10)
        assert [type(layer) for layer in cache.layers] == [kind] * 4
        assert len({id(layer) for layer in cache.layers}) == 4


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("Growing", {}, "must be one of none, growing, preallocated; did you mean growing"),
        ("prealocated", {}, "did you mean preallocated"),
        ("paper", {}, "cache='paper': must be one of none, growing, preallocated$"),
        (None, {}, "cache=None: must be one of"),
        ("preallocated", {}, "capacity=None: the preallocated cache needs its size in tokens"),
        ("preallocated", {"capacity": 0}, "capacity=0: must be a whole number of 1 or more"),
        ("growing", {"bits": 4}, "bits=4: the growing cache takes no options"),
        ("growing", {"num_layers": 0}, "num_layers=0: must be a whole number of 1 or more"),
    ],
)
def test_a_cache_that_cannot_be_built_is_refused_by_name(
    name: str, options: dict[str, int], sentence: str
) -> None:
    with pytest.raises(InvalidArgument, match=sentence):
        make_cache(name, **{"num_layers": 2, **options})


@pytest.mark.parametrize("name", [None, [], 3])
def test_a_name_that_is_no_text_is_refused(name: Any) -> None:
    with pytest.raises(InvalidArgument, match="cache="):
        make_cache(name, num_layers=2)


def test_more_memory_than_there_is_is_one_line() -> None:
    cache, token = make_cache("preallocated", num_layers=1, capacity=2**50), torch.zeros(1, 1, 1, 8)
    with pytest.raises(CacheFull, match="no memory for 1,125,899,906,842,624 tokens"):
        cache.update(token, token, 0)
    assert (cache.get_seq_length(), cache.reserved_nbytes) == (0, 0)
