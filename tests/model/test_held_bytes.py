"""The bytes that transformers' caches hold equal the formula, family by family."""

import pytest

from kvlab.arithmetic.payload import CacheTypes, entry_bytes
from kvlab.model.held_bytes import Held, measure_families, measure_family
from kvlab.model.tiny_families import FAMILIES, SOURCE, WINDOW

BY_NAME = {family.name: family for family in FAMILIES}


@pytest.fixture(scope="module")
def measured() -> dict[str, Held]:
    return {held.family.name: held for held in measure_families()}


@pytest.mark.parametrize("name", BY_NAME)
def test_the_bytes_held_are_those_of_the_formula(measured: dict[str, Held], name: str) -> None:
    held = measured[name]
    assert held.held_bytes == held.formula_bytes - held.window_bytes > 0
    assert held.equal


def test_only_models_with_windows_hold_less_than_the_formula(measured: dict[str, Held]) -> None:
    short = {name for name, held in measured.items() if held.window_bytes}
    assert short == {"sliding", "sliding and full", "shared layers"}


def test_a_full_window_holds_one_entry_less_in_each_windowed_layer() -> None:
    held = measure_family(BY_NAME["sliding"])
    (layer, count), *_ = held.storage.counted
    one = entry_bytes(layer, CacheTypes.of("bf16"))
    assert held.held_bytes == count * (WINDOW - 1) * one
    assert held.formula_bytes == count * WINDOW * one


def test_a_window_that_is_not_full_holds_every_token() -> None:
    held = measure_family(BY_NAME["sliding"], prompt_tokens=4, new_tokens=3)
    assert held.positions == 6 < WINDOW
    assert held.window_bytes == 0
    assert held.equal


@pytest.mark.parametrize("name", ["full, GQA", "latent (MLA)", "state and full"])
def test_it_holds_in_fp32_too(name: str) -> None:
    assert measure_family(BY_NAME[name], dtype="fp32").equal


@pytest.mark.parametrize("new_tokens", [1, 2, 9])
def test_it_holds_after_any_number_of_steps(new_tokens: int) -> None:
    assert measure_family(BY_NAME["full, GQA"], new_tokens=new_tokens).equal


def test_each_kind_of_store_is_among_the_families(measured: dict[str, Held]) -> None:
    kinds = {group.kind for held in measured.values() for group in held.storage.groups}
    assert kinds == {"full", "windowed", "latent", "shared", "state", "cross"}


def test_sharing_heads_divides_the_cache_of_the_first_three(measured: dict[str, Held]) -> None:
    sizes = [measured[f"full, {name}"].held_bytes for name in ("MHA", "GQA", "MQA")]
    assert [sizes[0] // size for size in sizes] == [1, 2, 4]


def test_the_source_of_cross_attention_is_counted_once_and_does_not_grow() -> None:
    short, long = (measure_family(BY_NAME["cross-attention"], new_tokens=n) for n in (1, 6))
    assert short.equal and long.equal
    grown = long.held_bytes - short.held_bytes
    assert grown == 5 * 2 * long.storage.elements_per_token
    assert SOURCE == 10
