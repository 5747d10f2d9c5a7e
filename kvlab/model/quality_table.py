"""Many caches on one task: the rows of a table, and one curve per eviction policy.

The full cache is run once for all of them. Left out: drawing them.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kvlab.model.load import LoadedModel
from kvlab.model.quality import Bench, MakeCache, Quality

Choice = str | MakeCache | tuple[str, dict[str, Any]]
"""A cache: its name, its name with options, or a function that makes one."""

Progress = Callable[[int, int], None]
"""Called with (forward passes done, forward passes in all)."""

BUDGETS = ("100%", "50%", "25%", "12%")


def quality_table(
    model: str | LoadedModel | Bench,
    caches: Iterable[Choice],
    *,
    progress: Progress | None = None,
    **task: Any,
) -> list[Quality]:
    """Measure every cache on the same task; `task` as for `Bench`, unless `model` is one.

    >>> rows = quality_table("tiny", ["growing"], tokens=64, facts=4, num_sequences=2)
    >>> rows[0].cache, rows[0].cache_bytes == rows[0].full_cache_bytes
    ('growing', True)
    """
    choices = [c if isinstance(c, tuple) else (c, {}) for c in caches]
    bench = model if isinstance(model, Bench) else Bench(model, **task)
    for cache, options in choices:
        bench.rehearse(cache, **options)  # all refusals come before the first wait
    total = bench.passes * (len(choices) + (not bench.has_full))
    watch = _counter(progress, total)
    return [bench.measure(cache, watch=watch, **options) for cache, options in choices]


def budget_curve(
    model: str | LoadedModel | Bench,
    policies: Iterable[str],
    *,
    budgets: Sequence[int | str] = BUDGETS,
    progress: Progress | None = None,
    **task: Any,
) -> dict[str, list[Quality]]:
    """Measure every policy at every budget; return its points in the order of `budgets`.

    A budget is in tokens, or a percentage of the tokens read.
    """
    names = list(policies)
    choices = [(name, {"budget": budget}) for name in names for budget in budgets]
    rows = quality_table(model, choices, progress=progress, **task)
    step = len(budgets)
    return {name: rows[i * step : (i + 1) * step] for i, name in enumerate(names)}


def _counter(progress: Progress | None, total: int) -> Callable[[], None]:
    done = 0

    def watch() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total)

    return watch
