"""Works are measured in turns: counted orders, medians, spreads, and a rested collector."""

import gc

import pytest

from kvlab.bench.timing import Times, interleaved, timed, turned
from kvlab.errors import InvalidArgument


def test_every_work_runs_once_a_round_and_each_round_starts_one_later() -> None:
    order: list[str] = []
    works = {name: lambda name=name: order.append(name) for name in "abc"}
    found = interleaved(works, 4, warmups=0, collect=False)
    assert "".join(order) == "abcbcacababc"
    assert {name: len(times.values) for name, times in found.items()} == {"a": 4, "b": 4, "c": 4}


def test_warm_up_rounds_are_run_and_do_not_count() -> None:
    said = iter([100.0, 100.0, 3.0, 5.0])
    assert interleaved({"a": lambda: next(said)}, 2, warmups=2, collect=False)["a"].values == (
        3.0,
        5.0,
    )


def test_what_a_work_says_counts_and_not_the_time_of_the_call() -> None:
    assert timed(lambda: 42.0, collect=False) == 42.0
    assert 0 <= timed(lambda: None, collect=False) < 10


def test_median_and_spread_are_those_of_the_rounds() -> None:
    times = Times((4.0, 1.0, 2.0, 3.0))
    assert (times.median, times.best, times.spread) == (2.5, 1.0, 1.2)
    assert Times((0.0, 0.0)).spread == 0.0


def test_the_collector_rests_while_a_work_runs_and_comes_back_after_a_fault() -> None:
    seen: list[bool] = []
    timed(lambda: seen.append(gc.isenabled()))
    assert (seen, gc.isenabled()) == ([False], True)
    with pytest.raises(ZeroDivisionError):
        timed(lambda: 1 / 0)
    assert gc.isenabled()


def test_an_order_goes_round() -> None:
    assert [turned(["a", "b"], n) for n in (0, 1, 2)] == [["a", "b"], ["b", "a"], ["a", "b"]]


@pytest.mark.parametrize(("works", "rounds"), [({}, 1), ({"a": lambda: None}, 0)])
def test_nothing_to_measure_is_refused(works: dict, rounds: int) -> None:
    with pytest.raises(InvalidArgument):
        interleaved(works, rounds)
