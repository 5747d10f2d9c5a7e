"""What cached prompt tokens cost: price lists as dated data, and when caching pays. No torch.

A price list is not a law of nature: every number comes from a row with its source and its day.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import date
from functools import lru_cache
from math import isfinite
from pathlib import Path
from typing import Any

from kvlab._paths import data_dir
from kvlab.arithmetic.checks import whole_number
from kvlab.errors import InvalidArgument

MILLION = 10**6
_PRICES = ("base_usd", "write_usd", "read_usd", "storage_usd_per_hour")
_WORDS = ("id", "name", "source", "remark")


@dataclass(frozen=True)
class CachePrice:
    """One row of a price list, in US dollars a million tokens; `storage` by the hour on top.

    `kept_minutes` is the time to live after the last use, None where the row does not say.
    """

    id: str
    name: str
    base_usd: float
    write_usd: float
    read_usd: float
    storage_usd_per_hour: float
    kept_minutes: int | None
    source: str
    as_of: date
    remark: str

    @property
    def write_premium(self) -> float:
        """The price of writing over that of a token that is not cached.

        >>> find_price("anthropic-5-minutes").write_premium
        1.25
        """
        return self.write_usd / self.base_usd

    @property
    def read_discount(self) -> float:
        """The price of reading over that of a token that is not cached.

        >>> find_price("anthropic-5-minutes").read_discount
        0.1
        """
        return self.read_usd / self.base_usd

    def cost(self, tokens: int, uses: int, *, hours: float = 0.0) -> float:
        """Return the dollars of a prefix used `uses` times: written once, read after that.

        `hours` is how long it is kept, for lists that charge for it.

        >>> round(find_price("anthropic-5-minutes").cost(1_000_000, 10), 2)  # 6.25 + 9 x 0.50
        10.75
        """
        millions = whole_number("tokens", tokens, minimum=0) / MILLION
        reads = whole_number("uses", uses) - 1
        if not (hours >= 0 and isfinite(hours)):
            raise InvalidArgument("hours", hours, "must be 0 or more")
        return millions * (
            self.write_usd + reads * self.read_usd + hours * self.storage_usd_per_hour
        )

    def cost_without(self, tokens: int, uses: int) -> float:
        """Return the dollars of the same uses with no cache at all."""
        millions = whole_number("tokens", tokens, minimum=0) / MILLION
        return millions * self.base_usd * whole_number("uses", uses)

    def saving(self, uses: int, *, hours: float = 0.0) -> float:
        """Return the share saved over `uses` uses; below 0 where caching costs more.

        >>> [round(100 * find_price("anthropic-5-minutes").saving(n), 1) for n in (1, 2, 10)]
        [-25.0, 32.5, 78.5]
        """
        return 1 - self.cost(MILLION, uses, hours=hours) / self.cost_without(MILLION, uses)

    def uses_to_pay(self, *, hours_between: float = 0.0) -> int | None:
        """Return from how many uses on caching is cheaper, the first included; None: never.

        `hours_between` is the time from use to use, for lists that charge for keeping.

        >>> find_price("anthropic-5-minutes").uses_to_pay()
        2
        >>> find_price("anthropic-1-hour").uses_to_pay()
        3
        """
        each = self.base_usd - self.read_usd - hours_between * self.storage_usd_per_hour
        extra = self.write_usd - self.base_usd
        if each <= 0:
            return None
        return max(2, int(extra // each) + 2)


def load_prices(path: Path | None = None) -> tuple[CachePrice, ...]:
    """Return every row of the price list, checked; `InvalidArgument` names row and field."""
    return _load(path or data_dir() / "prices.json")


def find_price(price_id: str) -> CachePrice:
    """Return a row by its id; `InvalidArgument` lists the known ones."""
    known = {price.id: price for price in load_prices()}
    if price_id not in known:
        raise InvalidArgument("price_id", price_id, f"must be one of {', '.join(known)}")
    return known[price_id]


@lru_cache(maxsize=4)
def _load(path: Path) -> tuple[CachePrice, ...]:
    rows = json.loads(path.read_text(encoding="utf-8"))["prices"]
    return tuple(_read(row, f"{path.name}, row {number}") for number, row in enumerate(rows, 1))


def _read(row: Mapping[str, Any], where: str) -> CachePrice:
    names = {field.name for field in fields(CachePrice)}
    if set(row) != names:
        odd = sorted(names ^ set(row))
        raise InvalidArgument(where, odd, "each of these fields must be there, and no other")
    for name in _WORDS:
        if not isinstance(row[name], str) or not row[name]:
            raise InvalidArgument(f"{where}, {name}", row[name], "must be text")
    for name in _PRICES:
        value = row[name]
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 10**4:
            raise InvalidArgument(f"{where}, {name}", value, "must be dollars, 0 or more")
    if row["base_usd"] <= 0:
        raise InvalidArgument(f"{where}, base_usd", row["base_usd"], "must be above 0")
    if row["kept_minutes"] is not None:
        whole_number(f"{where}, kept_minutes", row["kept_minutes"])
    return CachePrice(**{**row, "as_of": date.fromisoformat(row["as_of"])})
