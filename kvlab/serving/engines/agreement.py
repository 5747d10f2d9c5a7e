"""Sizes that an engine reports, in its metrics or its log, held against the plan's prediction."""

from collections.abc import Iterator

from kvlab.arithmetic.logs.read import read_log
from kvlab.arithmetic.logs.text import log_text
from kvlab.errors import KvlabError
from kvlab.serving.engines.prediction import CellsPrediction, PagedPrediction
from kvlab.serving.engines.readings import Readings
from kvlab.serving.engines.running import Plan
from kvlab.serving.engines.runs import Agreement


def agreements(plan: Plan, readings: Readings | None, printed: str) -> list[Agreement]:
    """Return every size that was reported beside the predicted one; the metrics speak first."""
    pool = plan.predict()
    if isinstance(pool, CellsPrediction):
        return list(_cells(pool, printed))
    return [*_of_metrics(pool, readings), *_of_log(pool, printed)]


def _of_metrics(pool: PagedPrediction, readings: Readings | None) -> Iterator[Agreement]:
    if readings is None:
        return
    pairs = {
        "blocks": (readings.num_blocks, pool.num_blocks),
        "tokens": (readings.tokens, pool.tokens),
        "requests of full length": (readings.concurrency, pool.concurrency),
    }
    for name, (reported, predicted) in pairs.items():
        if reported is not None:
            yield Agreement(f"{name} (metrics)", reported, predicted)


def _of_log(pool: PagedPrediction, printed: str) -> Iterator[Agreement]:
    said = {"kv_tokens": pool.tokens, "max_concurrency": pool.concurrency}
    names = {"kv_tokens": "tokens (log)", "max_concurrency": "requests of full length (log)"}
    for key, predicted in said.items():
        for fact in _facts(printed, key):
            yield Agreement(names[key], float(fact[0]), float(predicted), fact[1])


def _cells(pool: CellsPrediction, printed: str) -> Iterator[Agreement]:
    for value, half in _facts(printed, "cache_bytes"):
        yield Agreement("bytes of the cells (log)", value, pool.total_bytes, half)


def _facts(printed: str, name: str) -> list[tuple[float, float]]:
    """The last value of a name in each run of a log, with half a unit of its last digit."""
    try:
        runs = read_log(log_text(printed))
    except KvlabError:
        return []
    found = [fact for run in runs if (fact := run.last(name)) is not None]
    return [(float(fact.number), fact.half_step) for fact in found[-1:]]
