"""How the catalogue's models share their heads: kinds, bytes and orders."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlab.arithmetic.catalogue import find_model, load_models
from kvlab.arithmetic.head_sharing import (
    KINDS,
    ORDERS,
    catalogue_sharing,
    kv_head_choices,
    ranked,
    sharing_kind,
)
from kvlab.errors import InvalidArgument

ROWS = catalogue_sharing()


def row(name: str):  # type: ignore[no-untyped-def]
    (found,) = [each for each in ROWS if each.name == find_model(name).id]
    return found


def test_every_model_of_the_catalogue_has_its_row() -> None:
    assert [each.name for each in ROWS] == [model.id for model in load_models()]
    assert set(Counter(each.kind for each in ROWS)) == set(KINDS)
    assert all(each.source for each in ROWS)


@pytest.mark.parametrize(
    ("name", "kind", "heads", "kv_heads", "size"),
    [
        ("falcon-7b", "MQA", 71, (1,), 2 * 32 * 1 * 64 * 2),
        ("falcon-40b", "GQA", 128, (8,), 2 * 60 * 8 * 64 * 2),
        ("llama-65b", "MHA", 64, (64,), 2 * 80 * 64 * 128 * 2),
        ("Qwen1.5-72B-Chat", "MHA", 64, (64,), 2 * 80 * 64 * 128 * 2),
        ("llama-3.1-70b", "GQA", 64, (8,), 2 * 80 * 8 * 128 * 2),
        ("deepseek-v2", "latent", 128, (), 60 * (512 + 64) * 2),
        ("gemma-4-26B-A4B", "GQA", 16, (8, 2), 225_280),
    ],
)
def test_a_model_is_what_its_config_says(name, kind, heads, kv_heads, size) -> None:  # type: ignore[no-untyped-def]
    found = row(name)
    assert (found.kind, found.num_heads, found.kv_heads) == (kind, heads, kv_heads)
    assert found.bytes_per_token == size


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("largest_first", [True, False])
def test_an_order_keeps_every_row_and_puts_what_has_no_number_last(
    order: str, largest_first: bool
) -> None:
    rows = ranked(ROWS, order, largest_first=largest_first)
    assert set(rows) == set(ROWS) and len(rows) == len(ROWS)
    if order in ("KV heads", "query heads per KV head"):
        latents = [each.kind == "latent" for each in rows]
        assert latents == sorted(latents)


def test_sorting_by_bytes_puts_the_largest_first() -> None:
    sizes = [each.bytes_per_token for each in ranked(ROWS)]
    assert sizes == sorted(sizes, reverse=True)


def test_kinds_can_be_picked_and_unknown_words_are_named() -> None:
    assert {each.short_name for each in ranked(ROWS, kinds=["MQA"])} == {
        "falcon-7b", "gemma-2b", "gemma-3-1b-it", "starcoderbase-1b",
    }  # fmt: skip
    with pytest.raises(InvalidArgument, match="order"):
        ranked(ROWS, "age")
    with pytest.raises(InvalidArgument, match="kinds"):
        ranked(ROWS, kinds=["XQA"])
    with pytest.raises(InvalidArgument, match=r"num_kv_heads=3.*64"):
        sharing_kind(64, 3)


@given(st.integers(1, 256))
def test_every_choice_divides_the_query_heads_and_ends_at_one(num_heads: int) -> None:
    choices = kv_head_choices(num_heads)
    assert choices[0] == num_heads and choices[-1] == 1
    assert all(num_heads % n == 0 for n in choices)
    assert sorted(num_heads // n for n in choices) == sorted(choices)
