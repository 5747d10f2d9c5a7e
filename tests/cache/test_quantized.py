"""The quantised layer: which tokens are exact, what is stored, and how it goes back."""

from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from kvlab.arithmetic.memory import kv_bytes
from kvlab.arithmetic.quantized_bytes import quantized_bytes
from kvlab.cache import KVCache, make_cache, rollback
from kvlab.cache.build import layer_options
from kvlab.cache.quantized import Int4Layer, Int8Layer, QuantizedLayer
from kvlab.errors import InvalidArgument, KvlabError, Unsupported

FORMATS = ["fp8", "fp8-e5m2", "int8", "int4", "int2"]
BY_TOKEN = {"granularity": "group", "q_group_size": 4, "residual_length": 4, "num_sink_tokens": 1}
BY_CHANNEL = {**BY_TOKEN, "key_granularity": "channel"}
HEADS, HEAD_DIM = 2, 8


def tokens(n: int, *, seed: int = 0, batch: int = 2, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return random states (batch, 2, n, 8); the first ones are the same for every n."""
    generator = torch.Generator().manual_seed(seed)
    every = torch.randn(batch, HEADS, 64, HEAD_DIM, generator=generator) * 3
    return every[:, :, :n].to(dtype)


def one_layer(name: str, **options: Any) -> QuantizedLayer:
    return make_cache(name, num_layers=1, **options).layers[0]


def feed(layer: QuantizedLayer, keys: Tensor, values: Tensor, chunks: list[int]) -> None:
    """Update the layer piece by piece."""
    start = layer.get_seq_length()
    for chunk in chunks:
        layer.update(keys[:, :, start : start + chunk], values[:, :, start : start + chunk])
        start += chunk


def split(total: int, seed: int) -> list[int]:
    generator = torch.Generator().manual_seed(seed)
    chunks = []
    while (left := total - sum(chunks)) > 0:
        chunks.append(min(left, int(torch.randint(1, 8, (), generator=generator))))
    return chunks


# -- which tokens are exact ---------------------------------------------------------------


@pytest.mark.parametrize("length", [3, 4, 5, 9, 17])
@pytest.mark.parametrize("options", [BY_TOKEN, BY_CHANNEL], ids=["by token", "keys by channel"])
@pytest.mark.parametrize("name", FORMATS)
def test_the_last_4_and_the_first_token_are_bit_exact_in_prefill_and_step_by_step(
    name: str, options: dict[str, Any], length: int
) -> None:
    keys, values = tokens(length), tokens(length, seed=1)
    found = []
    for chunks in ([length], [1] * length, [3, length - 3]):
        layer = one_layer(name, **options)
        feed(layer, keys, values, [chunk for chunk in chunks if chunk])
        for exact, read in zip((keys, values), layer.read(), strict=True):
            assert torch.equal(read[:, :, :1], exact[:, :, :1])
            assert torch.equal(read[:, :, -4:], exact[:, :, -4:])
        found.append(layer)
    past = max(0, length - 5)
    by_channel = options is BY_CHANNEL
    assert found[0].num_quantized == (past - past % 4 if by_channel else past, past)
    for layer in found[1:]:  # the same codes, to the bit, whatever the chunks
        assert layer.num_quantized == found[0].num_quantized
        assert all(map(torch.equal, layer.held(), found[0].held()))
    quantised = found[0].read()[1][:, :, 1 : 1 + past]
    if name.startswith("int") and past:
        assert 0 < (quantised - values[:, :, 1 : 1 + past]).abs().max() < 5


@settings(max_examples=40, deadline=None)
@given(
    name=st.sampled_from(FORMATS),
    total=st.integers(1, 40),
    residual=st.integers(0, 9),
    sinks=st.integers(0, 5),
    granularity=st.sampled_from(["token", "channel", "group"]),
    seeds=st.tuples(st.integers(0, 50), st.integers(0, 50)),
)
def test_chunking_never_changes_what_is_stored(
    name: str, total: int, residual: int, sinks: int, granularity: str, seeds: tuple[int, int]
) -> None:
    options: dict[str, Any] = {"residual_length": residual, "num_sink_tokens": sinks}
    options |= {"granularity": granularity}
    if granularity != "token":
        options["q_group_size"] = 4
    keys, values = tokens(total), tokens(total, seed=1)
    layers = []
    for seed in seeds:
        layers.append(one_layer(name, **options))
        feed(layers[-1], keys, values, split(total, seed))
        for exact, read in zip((keys, values), layers[-1].read(), strict=True):
            assert torch.equal(read[:, :, :sinks], exact[:, :, :sinks])
            newest = max(0, total - residual)
            assert torch.equal(read[:, :, newest:], exact[:, :, newest:])
    assert all(map(torch.equal, layers[0].held(), layers[1].held()))


def test_by_channel_the_newest_exact_tokens_are_r_to_r_plus_group_minus_1() -> None:
    layer = one_layer("int4", granularity="channel", q_group_size=4, residual_length=6)
    keys, exact = tokens(40), []
    for n in range(1, 41):
        feed(layer, keys, keys, [1])
        exact.append(n - layer.num_quantized[0])
    assert exact[:6] == [1, 2, 3, 4, 5, 6]
    assert exact[9:] == [(6, 7, 8, 9)[n % 4] for n in range(31)]


def test_nothing_is_quantised_while_all_fits_into_the_exact_tokens() -> None:
    layer = one_layer("int2", residual_length=16, num_sink_tokens=2)
    keys, values = tokens(18), tokens(18, seed=1)
    feed(layer, keys, values, [5, 13])
    assert layer.num_quantized == (0, 0)
    assert torch.equal(layer.read()[0], keys) and torch.equal(layer.read()[1], values)
    assert layer.nbytes == keys.nbytes + values.nbytes


def test_the_call_that_finds_the_cache_empty_sees_its_own_exact_tokens_unless_told_not_to() -> None:
    keys, values = tokens(12), tokens(12, seed=1)
    for exact_prefill in (True, False):
        layer = one_layer("int4", **BY_TOKEN, exact_prefill=exact_prefill)
        seen, _ = layer.update(keys[:, :, :10], values[:, :, :10])
        assert torch.equal(seen, keys[:, :, :10]) == exact_prefill
        seen, _ = layer.update(keys[:, :, 10:], values[:, :, 10:])
        assert torch.equal(seen, layer.read()[0]) and not torch.equal(seen, keys)
        layer.reset()
        seen, _ = layer.update(keys, values)
        assert torch.equal(seen, keys) == exact_prefill


@pytest.mark.parametrize("name", FORMATS)
def test_a_token_is_quantised_once_and_its_codes_never_change_again(name: str) -> None:
    layer = one_layer(name, granularity="token", residual_length=2)
    keys, values = tokens(12), tokens(12, seed=1)
    feed(layer, keys, values, [12])
    first = [side.codes.rows[:, :, :1].clone() for side in layer.sides]
    read = [part[:, :, :1].clone() for part in layer.read()]
    for step in range(100):
        layer.update(tokens(1, seed=step), tokens(1, seed=step + 1))
        now = [side.codes.rows[:, :, :1] for side in layer.sides]
        assert all(map(torch.equal, now, first))
    assert all(map(torch.equal, [part[:, :, :1] for part in layer.read()], read))


def test_appending_writes_behind_the_codes_and_copies_them_only_when_the_room_is_full() -> None:
    layer = one_layer("int8", residual_length=0)
    feed(layer, tokens(8), tokens(8), [8])
    places = []
    for step in range(200):
        layer.update(tokens(1, seed=step), tokens(1, seed=step))
        places.append(layer.sides[0].codes.data.data_ptr())
        assert layer.nbytes <= layer.reserved_nbytes <= 1.6 * layer.nbytes
    moves = sum(a != b for a, b in pairwise(places))
    assert moves <= 8  # 208 tokens from 8, half as much room again each time


# -- bytes --------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    formats=st.tuples(*[st.sampled_from([*FORMATS, "exact"])] * 2),
    granularities=st.tuples(*[st.sampled_from(["tensor", "token", "channel", "group"])] * 2),
    symmetric=st.sampled_from([None, True]),
    lengths=st.tuples(st.integers(0, 6), st.integers(0, 4), st.integers(0, 40)),
    dtype=st.sampled_from([torch.float32, torch.float16, torch.bfloat16]),
)
def test_bytes_held_are_the_formula_to_the_byte(
    formats: tuple[str, str],
    granularities: tuple[str, str],
    symmetric: bool | None,
    lengths: tuple[int, int, int],
    dtype: torch.dtype,
) -> None:
    residual, sinks, total = lengths
    options: dict[str, Any] = {"residual_length": residual, "num_sink_tokens": sinks}
    options |= {"symmetric": symmetric}
    for side, name, granularity in zip(("key", "value"), formats, granularities, strict=True):
        options |= {f"{side}_format": name, f"{side}_granularity": granularity}
        if granularity in ("channel", "group") and name != "exact":
            options[f"{side}_q_group_size"] = 4
    cache = make_cache("int8", num_layers=2, **options)
    for layer_idx in range(2):
        for n in filter(None, (total // 2, total - total // 2)):
            cache.update(tokens(n, dtype=dtype), tokens(n, dtype=dtype), layer_idx)
    shape = {"num_kv_heads": HEADS, "head_dim": HEAD_DIM, "batch": 2, "num_layers": 2}
    expected = quantized_bytes(
        "int8", **shape, tokens=total, bytes_per_element=dtype.itemsize, **options
    )
    assert cache.nbytes == expected <= cache.reserved_nbytes


@pytest.mark.parametrize(
    ("name", "options", "ratio"),
    [
        ("int4", {"q_group_size": 64, "residual_length": 0}, 3.56),
        ("int8", {}, 1.969),
        ("int4", {"q_group_size": 64, "residual_length": 128}, 3.42),
    ],
)
def test_published_ratios_against_16_bit_are_held_by_a_real_layer_of_8192_tokens(
    name: str, options: dict[str, Any], ratio: float
) -> None:
    shape = {"num_kv_heads": 1, "head_dim": 128}
    states = torch.randn(1, 1, 8192, 128).half()
    layer = one_layer(name, **options)
    layer.update(states, states)
    assert layer.nbytes == quantized_bytes(name, **shape, tokens=8192, **options)
    full = kv_bytes(num_layers=1, **shape, bytes_per_element=2, seq_len=8192)
    assert round(full / layer.nbytes, len(str(ratio)) - 2) == ratio


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("name", FORMATS)
def test_scales_are_fp16_in_any_compute_dtype_and_what_is_read_has_the_compute_dtype(
    name: str, dtype: torch.dtype
) -> None:
    layer = one_layer(name, granularity="token", residual_length=2, exact_prefill=False)
    keys, values = layer.update(tokens(9, dtype=dtype), tokens(9, dtype=dtype))
    assert keys.dtype == values.dtype == layer.sides[0].newest.dtype == dtype
    for side in layer.sides:
        assert side.codes.rows.dtype == torch.uint8 and side.scales.rows.dtype == torch.float16
        assert side.zeros is None or side.zeros.rows.dtype == torch.float16


@pytest.mark.parametrize("name", FORMATS)
def test_the_largest_fp16_numbers_do_not_become_infinite(name: str) -> None:
    options = {"residual_length": 0, "exact_prefill": False, "symmetric": True}
    layer = one_layer(name, granularity="token", **options)
    limit = torch.finfo(torch.float16).max
    states = torch.full((1, 1, 2, 4), limit, dtype=torch.float16)
    states[..., 0] = -limit
    keys, _ = layer.update(states, states)
    assert bool(keys.isfinite().all())
    assert torch.allclose(keys.float(), states.float(), rtol=0.01)


def test_keys_and_values_may_have_different_widths_formats_and_groups() -> None:
    layer = one_layer("int4", value_format="int8", key_q_group_size=2, residual_length=0)
    keys, values = tokens(8), torch.randn(2, HEADS, 8, 6)
    layer.update(keys, values)
    assert layer.nbytes == quantized_bytes(
        "int4",
        num_kv_heads=HEADS,
        head_dim=HEAD_DIM,
        value_dim=6,
        batch=2,
        tokens=8,
        value_format="int8",
        key_q_group_size=2,
        residual_length=0,
    )
    assert [part.shape[3] for part in layer.read()] == [8, 6]


# -- going back ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", FORMATS)
def test_shortening_within_the_exact_tokens_is_exact_and_the_layer_goes_on_right(name: str) -> None:
    keys, values = tokens(30), tokens(30, seed=1)
    layer = one_layer(name, **BY_CHANNEL)
    feed(layer, keys, values, [20])
    stored = layer.num_quantized
    layer.truncate_to(18)
    assert layer.num_quantized == stored and layer.get_seq_length() == 18
    for exact, read in zip((keys, values), layer.read(), strict=True):
        assert read.shape[2] == 18
        assert torch.equal(read[:, :, 17:], exact[:, :, 17:18])
    feed(layer, keys, values, [12])
    undisturbed = one_layer(name, **BY_CHANNEL)
    feed(undisturbed, keys, values, [30])
    assert all(map(torch.equal, layer.held(), undisturbed.held()))


def test_going_back_into_a_group_of_tokens_is_refused_and_changes_nothing() -> None:
    cache = make_cache("int4", num_layers=2, **BY_CHANNEL)  # keys: 1 sink, then groups of 4
    for layer in cache.layers:
        feed(layer, tokens(20), tokens(20), [20])
    before = [[part.clone() for part in layer.held()] for layer in cache.layers]
    with pytest.raises(Unsupported, match="n=11: the keys of tokens 9 to 12 share scales; keep 9"):
        cache.truncate_to(11)
    for layer, parts in zip(cache.layers, before, strict=True):
        assert layer.get_seq_length() == 20
        assert all(map(torch.equal, layer.held(), parts))
    cache.truncate_to(13)  # between two groups
    assert cache.layers[0].num_quantized == (12, 12)
    cache.truncate_to(1)  # the sink alone
    assert cache.layers[0].num_quantized == (0, 0)
    assert torch.equal(cache.layers[0].read()[0], tokens(1))


def test_a_token_that_was_quantised_stays_so_when_later_ones_are_dropped() -> None:
    keys = tokens(20)
    layer = one_layer("int8", **BY_TOKEN)
    feed(layer, keys, keys, [20])
    read = layer.read()[0][:, :, :10].clone()
    layer.truncate_to(10)
    assert layer.num_quantized == (9, 9) and torch.equal(layer.read()[0], read)
    assert not layer.is_croppable
    feed(layer, keys, keys, [2])
    assert layer.num_quantized == (9, 9)
    assert torch.equal(layer.read()[0][:, :, 10:], keys[:, :, 10:12])


@pytest.mark.parametrize("name", FORMATS)
def test_without_a_residual_shortening_leaves_no_trace(name: str) -> None:
    options = {"granularity": "token", "residual_length": 0}
    keys, values = tokens(20), tokens(20, seed=1)
    layer, fresh = one_layer(name, **options), one_layer(name, **options)
    feed(layer, keys, values, [20])
    assert layer.is_croppable
    layer.truncate_to(7)
    feed(fresh, keys, values, [7])
    assert all(map(torch.equal, layer.held(), fresh.held()))
    layer.truncate_to(0)
    feed(layer, values, keys, [9])
    fresh.reset()
    feed(fresh, values, keys, [9])
    assert all(map(torch.equal, layer.held(), fresh.held()))


@pytest.mark.parametrize("granularity", ["tensor", "channel"])
@pytest.mark.parametrize("name", FORMATS)
def test_rows_are_reordered_with_their_codes_and_scales(name: str, granularity: str) -> None:
    options = {"granularity": granularity, "residual_length": 3, "num_sink_tokens": 1}
    layer = one_layer(name, **options)
    feed(layer, tokens(40), tokens(40, seed=1), [37])
    before = [part.clone() for part in layer.read()]
    layer.select_rows(torch.tensor([1, 0, 1]))
    for old, new in zip(before, layer.read(), strict=True):
        assert torch.equal(new, old[[1, 0, 1]])
    layer.update(tokens(1, batch=3), tokens(1, batch=3))
    assert layer.get_seq_length() == 38


@pytest.mark.parametrize("name", FORMATS)
def test_a_clone_shares_nothing_and_a_rollback_undoes_everything(name: str) -> None:
    cache = make_cache(name, num_layers=1, **BY_TOKEN)
    feed(cache.layers[0], tokens(14), tokens(14, seed=1), [9, 5])
    before = [part.clone() for part in cache.layers[0].held()]
    twin = cache.clone()
    with pytest.raises(KeyboardInterrupt), rollback(cache):
        cache.truncate_to(3)
        feed(cache.layers[0], tokens(40, seed=5), tokens(40, seed=5), [30])
        cache.select_rows(torch.tensor([1, 1]))
        cache.reset()
        raise KeyboardInterrupt
    assert all(map(torch.equal, cache.layers[0].held(), before))
    assert cache.get_seq_length() == 14
    addresses = [
        {p.untyped_storage().data_ptr() for p in c.layers[0].held()} for c in (cache, twin)
    ]
    assert not addresses[0] & addresses[1]
    feed(cache.layers[0], tokens(40), tokens(40), [20])
    assert all(map(torch.equal, twin.layers[0].held(), before))


def test_a_reset_layer_is_as_new_and_freezes_a_new_scale() -> None:
    layer = one_layer("fp8")
    layer.update(tokens(5), tokens(5))
    layer.reset()
    assert (layer.nbytes, layer.reserved_nbytes, layer.get_seq_length()) == (0, 0, 0)
    fresh = one_layer("fp8")
    for each in (layer, fresh):
        each.update(tokens(3, batch=1) * 9, tokens(3, batch=1) * 9)
    assert all(map(torch.equal, layer.held(), fresh.held()))


def test_a_tensor_keeps_the_scale_of_its_first_tokens_and_clamps_what_is_larger() -> None:
    for name in ("fp8", "int8", "int4"):
        options = {"granularity": "tensor", "symmetric": True, "residual_length": 0}
        layer = one_layer(name, **options, num_sink_tokens=1)
        states = tokens(6)
        states[:, :, 0] = 1000  # a sink: it stays exact and must not set the scale
        feed(layer, states, states, [1, 5])
        largest = states[:, :, 1:].abs().max()
        layer.update(states[:, :, :1], states[:, :, :1])
        read = layer.read()[0]
        assert torch.equal(read[:, :, :1], states[:, :, :1])
        assert torch.allclose(read[:, :, -1], largest.expand(2, HEADS, HEAD_DIM), rtol=0.01)


def test_a_scale_measured_beforehand_is_used_as_it_is() -> None:
    layer = one_layer("fp8", key_scale=1.0, value_scale=0.5)
    states = tokens(4) * 300
    layer.update(states, states)
    keys, values = layer.read()
    assert keys.abs().max() == 448 and values.abs().max() == 224
    assert [float(side.fixed[0]) for side in layer.sides] == [1.0, 0.5]


# -- refusals -----------------------------------------------------------------------------


def test_keys_and_values_that_are_not_finite_are_refused_and_change_nothing() -> None:
    layer = one_layer("int8")
    good, bad = tokens(3), tokens(3)
    bad[1, 0, 2, 5] = float("nan")
    for _ in range(2):
        with pytest.raises(InvalidArgument, match="key_states=nan: must be finite"):
            layer.update(bad, good)
        with pytest.raises(InvalidArgument, match="value_states=nan: must be finite"):
            layer.update(good, bad)
        length = layer.get_seq_length()
        layer.update(good, good)
        assert layer.get_seq_length() == length + 3


def test_whole_numbers_have_no_fp8_and_are_refused_by_name() -> None:
    with pytest.raises(InvalidArgument, match=r"key_states=torch\.int64: must be float16"):
        one_layer("fp8").update(tokens(1).long(), tokens(1).long())


def test_groups_that_do_not_fill_the_channels_are_refused_at_the_first_token() -> None:
    layer = one_layer("int8", q_group_size=3)
    with pytest.raises(InvalidArgument, match="q_group_size=3: must divide the 8 channels of the"):
        layer.update(tokens(2), tokens(2))
    assert layer.get_seq_length() == 0 and not layer.is_initialized


@pytest.mark.parametrize(
    "options",
    [{"nbits": 3}, {"residual_length": -1}, {"granularity": "row"}, {"budget": 4}, {"nbits": 8}],
    ids=str,
)
def test_bad_options_are_refused_by_name_when_the_cache_is_made(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(KvlabError, match=f"{name}="):
        make_cache("int4", num_layers=2, **options)


def test_an_eviction_from_a_quantised_layer_is_refused_never_silent() -> None:
    """No option drops tokens or re-rotates quantised keys; a layer that evicts holds exact ones."""
    for option in ("budget", "positions", "sliding_window"):
        with pytest.raises(InvalidArgument, match=f"{option}=.*the int8 cache takes nbits"):
            make_cache("int8", num_layers=1, **{option: 8})
    layer = one_layer("int8")
    assert not (layer.repositions or layer.picks_tokens)


def test_every_format_shows_its_options_and_a_layer_can_be_made_without_a_name() -> None:
    for name in FORMATS:
        shown = list(layer_options(name))
        assert "format" not in shown
        assert {"granularity", "q_group_size", "residual_length", "num_sink_tokens"} <= set(shown)
    assert Int4Layer(nbits=4).options.key == Int4Layer().options.key
    assert QuantizedLayer(nbits=8).options.key == Int8Layer().options.key
    cache = KVCache([QuantizedLayer(format="fp8"), Int8Layer()])
    assert cache.nbytes == cache.reserved_nbytes == 0
