"""Prices of cached tokens: what they come to, and rows that are refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from kvlab._paths import data_dir
from kvlab.arithmetic.prices import CachePrice, find_price, load_prices
from kvlab.errors import InvalidArgument


def brute_force_uses(price: CachePrice, hours_between: float = 0.0) -> int | None:
    for uses in range(1, 1000):
        if price.cost(10**6, uses, hours=(uses - 1) * hours_between) < price.cost_without(
            10**6, uses
        ):
            return uses
    return None


@pytest.mark.parametrize("price", load_prices(), ids=lambda price: price.id)
def test_caching_pays_from_the_first_count_at_which_it_is_cheaper(price: CachePrice) -> None:
    for hours_between in (0.0, 0.1, 0.5):
        expected = brute_force_uses(price, hours_between)
        assert price.uses_to_pay(hours_between=hours_between) == expected


def test_one_read_pays_for_a_premium_of_a_quarter_and_two_for_a_double_price() -> None:
    assert [find_price(f"anthropic-{n}").uses_to_pay() for n in ("5-minutes", "1-hour")] == [2, 3]


def test_the_saving_over_k_uses_counts_the_write() -> None:
    price = find_price("anthropic-5-minutes")
    for uses, percent in ((2, 32.5), (5, 67.0), (10, 78.5), (50, 87.7)):
        assert 100 * price.saving(uses) == pytest.approx(percent)
    assert price.saving(1) == pytest.approx(-0.25)


def test_keeping_by_the_hour_can_cost_more_than_reading_again() -> None:
    price = find_price("gemini-explicit")
    assert price.saving(2) > 0 > price.saving(2, hours=1)
    assert price.uses_to_pay(hours_between=1) is None


def test_every_row_has_a_source_and_a_day() -> None:
    for price in load_prices():
        assert price.source.startswith("https://") and price.as_of.year >= 2026


def broken(tmp_path: Path, **changes: Any) -> Path:
    rows = json.loads((data_dir() / "prices.json").read_text(encoding="utf-8"))
    rows["prices"][1] |= changes
    path = tmp_path / "prices.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"base_usd": 0}, "base_usd"),
        ({"read_usd": "cheap"}, "read_usd"),
        ({"source": ""}, "source"),
        ({"kept_minutes": -1}, "kept_minutes"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_bad_row_is_refused_by_row_and_field(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidArgument, match=f"row 2.*{said}"):
        load_prices(broken(tmp_path, **changes))


def test_an_unknown_price_and_a_bad_count_are_refused_by_name() -> None:
    with pytest.raises(InvalidArgument, match="price_id"):
        find_price("free")
    with pytest.raises(InvalidArgument, match="uses"):
        find_price("gemini-explicit").cost(10, 0)
    with pytest.raises(InvalidArgument, match="hours"):
        find_price("gemini-explicit").cost(10, 1, hours=-1)
