"""Caches by name."""

import subprocess
import sys
from typing import Any

import pytest
import torch

import kvlab.cache
from kvlab.cache import CACHE_NAMES, KVCache, check_options, layer_options, make_cache
from kvlab.cache.build import LAYER_KINDS
from kvlab.errors import CacheFull, InvalidArgument

NEEDED = {"capacity": 10, "budget": 8}


def made(name: str, num_layers: int = 2, **options: Any) -> Any:
    """Make a cache with the options that it needs."""
    wanted = {key: NEEDED[key] for key in layer_options(name) if key in NEEDED}
    return make_cache(name, num_layers=num_layers, **{**wanted, **options})


def test_the_names_are_those_of_the_command_line() -> None:
    quantised = ("fp8", "fp8-e5m2", "int8", "int4", "int2")
    evicting = ("window", "sinks", "h2o", "keynorm", "keydiff", "expected", "random")
    exact = ("none", "growing", "preallocated")
    assert (*exact, *quantised, *evicting, "offloaded", "paged") == CACHE_NAMES
    assert make_cache("none", num_layers=2) is None


@pytest.mark.parametrize("name", [name for name in CACHE_NAMES if name != "none"])
def test_every_name_makes_layers_of_its_own_that_store_tokens(name: str) -> None:
    cache, tokens = made(name, num_layers=3), torch.randn(2, 1, 8, 32)
    kind = LAYER_KINDS[name].split(":")[1]
    assert isinstance(cache, KVCache)
    assert [type(layer).__name__ for layer in cache.layers] == [kind] * 3
    assert len({id(layer) for layer in cache.layers}) == 3
    keys, values = cache.layers[0].update(tokens, tokens)
    assert torch.equal(keys, tokens) and torch.equal(values, tokens)  # the first call sees all
    assert [layer.get_seq_length() for layer in cache.layers] == [8, 0, 0]


def test_options_reach_every_layer() -> None:
    layers = make_cache("int4", num_layers=2, granularity="token", residual_length=3).layers
    assert [layer.options.key.granularity for layer in layers] == ["token"] * 2
    assert [layer.options.residual_tokens for layer in layers] == [3, 3]


def test_each_layer_may_have_a_budget_of_its_own() -> None:
    cache = make_cache("sinks", num_layers=2, budgets=[9, 5])
    assert [layer.budget for layer in cache.layers] == [9, 5]


def test_no_two_layers_and_no_two_seeds_draw_alike() -> None:
    seeds = [
        layer.seed
        for seed in (0, 1, 2)
        for layer in make_cache("random", num_layers=3, budget=4, seed=seed).layers
    ]
    assert len(set(seeds)) == 9


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("Growing", {}, "must be one of none, growing, preallocated, .* did you mean growing"),
        ("prealocated", {}, "did you mean preallocated"),
        ("int3", {}, "did you mean int"),
        (
            "parchment",
            {},
            "cache='parchment': must be one of none, growing, preallocated, fp8, .*offloaded",
        ),
        (None, {}, "cache=None: must be one of"),
        ("preallocated", {}, "capacity=None: the preallocated cache needs its size in tokens"),
        ("preallocated", {"capacity": 0}, "capacity=0: must be a whole number of 1 or more"),
        ("growing", {"bits": 4}, "bits=4: the growing cache takes no options"),
        ("growing", {"num_layers": 0}, "num_layers=0: must be a whole number of 1 or more"),
        ("growing", {"num_layers": 10**9}, "num_layers=1000000000: must be 10,000 or fewer"),
        ("none", {"budget": 4}, "budget=4: the none cache takes no options"),
        ("fp8", {"budget": 4}, "budget=4: the fp8 cache takes nbits, granularity, .*value_scale$"),
        ("int4", {"nbits": 8}, "nbits=8: the format is int4 already"),
        ("int4", {"budgets": [4, 4]}, "budget=4: the int4 cache takes"),
        ("window", {}, "budget=None: the window cache needs a budget, the tokens it may keep"),
        ("window", {"budget": 0}, "budget=0: must be a whole number of 1 or more"),
        ("window", {"recent": 2}, "recent=2: the window cache takes budget, positions, inv_freq"),
        ("sinks", {"budget": 3}, "budget=3: must be at least 4: 4 sink tokens"),
        ("sinks", {"budget": 8, "budgets": [8, 8]}, "give either budget or budgets"),
        ("sinks", {"budgets": [8]}, r"budgets=\[8\]: must be 2 numbers of tokens, one a layer"),
        ("sinks", {"budgets": 8}, "budgets=8: must be 2 numbers"),
        ("random", {"budget": 4, "seed": -1}, "seed=-1: must be a whole number of 0 or more"),
        ("offloaded", {"tier": "cloud"}, "tier='cloud': must be one of host, disk"),
        ("offloaded", {"page_cache": "no"}, "page_cache='no': must be True or False"),
        ("h2o", {"budget": 8, "average": "yes"}, "average='yes': must be True or False"),
        ("window", {"budget": 8, "inv_freq": [1.0]}, "inv_freq=.*re-rotating needs"),
        ("fp8", {"key_format": []}, r"key_format=\[\]: must be one of fp8"),
        ("int4", {"value_format": {}}, r"value_format=\{\}: must be one of fp8"),
        ("int8", {"granularity": 5}, "granularity=5: must be one of tensor"),
        ("int8", {"symmetric": "yes"}, "symmetric='yes': must be True or False"),
        ("int8", {"residual_length": 1.5}, "residual_length=1.5: must be a whole number"),
        ("sinks", {"budget": "8"}, "budget='8': must be a whole number"),
        ("sinks", {"budget": 8, "positions": None}, "positions=None: must be one of kept"),
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


def test_checking_options_makes_no_layer_and_leaves_them_as_they_were() -> None:
    given = {"budget": "a share, not yet known in tokens"}
    assert check_options("window", given) == given
    assert check_options("preallocated", {}, capacity=7) == {"capacity": 7}
    assert check_options("growing", {}, capacity=7) == {}


def test_more_memory_than_there_is_is_one_line() -> None:
    cache, token = make_cache("preallocated", num_layers=1, capacity=2**50), torch.zeros(1, 1, 1, 8)
    with pytest.raises(CacheFull, match="no memory for 1,125,899,906,842,624 tokens"):
        cache.update(token, token, 0)
    assert (cache.get_seq_length(), cache.reserved_nbytes) == (0, 0)
    huge = make_cache("preallocated", num_layers=1, capacity=10**30)  # more than torch can count
    for cache in (huge, make_cache("paged", num_layers=1, block_size=10**30)):
        with pytest.raises(CacheFull, match="no memory for"):
            cache.update(token, token, 0)


def test_a_cache_is_read_from_disk_only_when_it_is_asked_for() -> None:
    script = (
        "import sys; from kvlab.cache import make_cache; make_cache('growing', num_layers=1)\n"
        "lossy = ('quantized', 'evicting', 'offloaded')\n"
        "print([name for name in lossy if f'kvlab.cache.{name}' in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_every_public_name_is_where_the_room_says() -> None:
    assert [name for name in kvlab.cache.__all__ if not hasattr(kvlab.cache, name)] == []
