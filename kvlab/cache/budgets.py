"""One budget for the whole model, shared out: layers or KV heads that keep more than others."""

from __future__ import annotations

from collections.abc import Sequence

from kvlab.arithmetic.checks import whole_number
from kvlab.errors import InvalidArgument


def split_budget(total: int, shares: Sequence[float], *, minimum: int = 1) -> list[int]:
    """Return whole budgets that sum to `total` exactly and follow `shares`, each `minimum` or more.

    Shares are any numbers of 0 or more, such as the attention that each layer or head spreads.
    What rounding leaves over goes to the largest remainders.

    >>> split_budget(10, [3, 1, 1])
    [6, 2, 2]
    >>> split_budget(10, [1, 0, 0], minimum=2)
    [6, 2, 2]
    """
    whole_number("total", total)
    whole_number("minimum", minimum)
    if not shares or any(not 0 <= share < float("inf") for share in shares) or sum(shares) <= 0:
        raise InvalidArgument("shares", shares, "must be numbers of 0 or more that sum to above 0")
    free = total - minimum * len(shares)
    if free < 0:
        rule = f"must be at least {minimum * len(shares)}: {len(shares)} parts of {minimum}"
        raise InvalidArgument("total", total, rule)
    above = [max(0.0, total * share / sum(shares) - minimum) for share in shares]
    exact = [free * part / sum(above) if sum(above) else free / len(shares) for part in above]
    budgets = [int(part) for part in exact]
    by_remainder = sorted(range(len(shares)), key=lambda i: budgets[i] - exact[i])
    for i in by_remainder[: free - sum(budgets)]:
        budgets[i] += 1
    return [minimum + budget for budget in budgets]


def pyramid_budgets(average: int, num_layers: int, *, first_over_last: float = 3.0) -> list[int]:
    """Return one budget a layer, falling evenly; their mean is `average` tokens.

    Early layers spread their attention wide, late ones look at few tokens: the idea of PyramidKV.
    `make_cache(..., budgets=...)` takes the list.

    >>> pyramid_budgets(100, num_layers=3)
    [150, 100, 50]
    """
    whole_number("average", average)
    whole_number("num_layers", num_layers)
    if not 1 <= first_over_last < float("inf"):
        raise InvalidArgument("first_over_last", first_over_last, "must be 1 or more")
    steps = max(num_layers - 1, 1)
    shares = [first_over_last - (first_over_last - 1) * i / steps for i in range(num_layers)]
    return split_budget(average * num_layers, shares)
