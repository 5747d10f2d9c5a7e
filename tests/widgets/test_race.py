"""The race: own clocks, the same text told, stopped and run again, errors in one line."""

import asyncio
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from kvlab.widgets.race import Race, race

TEXT = "Paris is the capital of France."


def lane(seconds: float, *, text: str = TEXT, fail_at: int = -1, error: type = RuntimeError,
         closed: list | None = None) -> Callable[[], Iterator]:  # fmt: skip
    """Return a start function of a lane that takes `seconds` of its own time for each token."""

    def start() -> Iterator:
        try:
            for index, letter in enumerate(text):
                if index == fail_at:
                    raise error("out of memory")
                yield SimpleNamespace(
                    token_id=ord(letter), seconds=seconds, cache_bytes=64 * index,
                    total_token_forwards=index + 5,
                )  # fmt: skip
        finally:
            if closed is not None:
                closed.append(True)

    return start


def letters(ids: list[int]) -> str:
    return "".join(map(chr, ids))


def make(slow: Callable | None = None, fast: Callable | None = None) -> Race:
    lanes = {"recompute": slow or lane(0.3), "keep": fast or lane(0.1)}
    return race(lanes, decode=letters, max_new_tokens=len(TEXT), prompt="Say: ")


def test_a_race_run_to_its_end_says_that_the_texts_are_the_same():
    done = make().run()
    assert {name: x.text for name, x in done.lanes.items()} == {"recompute": TEXT, "keep": TEXT}
    assert done.verdict().startswith("The same text, token for token.")
    assert "3.0 times less time" in done.verdict()
    assert done.numbers["keep"] == "finished"


def test_each_lane_moves_by_its_own_clock():
    racing = make()
    turns = racing._turns()
    for _ in range(8):
        next(turns)
    slow, fast = racing.lanes["recompute"], racing.lanes["keep"]
    assert slow.num_tokens == 2
    assert fast.num_tokens == 6
    turns.close()
    assert racing.lanes["keep"].state == "stopped"


def test_different_texts_are_not_called_the_same():
    assert make(fast=lane(0.1, text="Rome.")).run().verdict().startswith("The texts differ.")


def test_an_interrupt_stops_the_race_and_it_can_be_run_again():
    closed: list = []
    interrupted = lane(0.3, fail_at=3, error=KeyboardInterrupt)
    racing = make(slow=interrupted, fast=lane(0.1, closed=closed))
    racing.run()
    assert racing.lanes["keep"].state == "stopped"
    assert not racing.running
    assert closed == [True]
    racing.starts["recompute"] = lane(0.3)
    assert racing.run().verdict().startswith("The same text")


def test_the_stop_button_stops_a_race_that_runs_in_the_notebooks_loop():
    async def watch() -> Race:
        racing = make()
        racing.buttons["start"].click()
        assert racing.buttons["start"].disabled
        racing.start()  # a second press does nothing
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        racing.buttons["stop"].click()
        await racing._task
        return racing

    racing = asyncio.run(watch())
    assert 0 < racing.lanes["keep"].num_tokens < len(TEXT)
    assert {x.state for x in racing.lanes.values()} == {"stopped"}
    assert not racing.buttons["start"].disabled
    assert racing.buttons["stop"].disabled


def test_a_race_started_twice_starts_afresh():
    racing = make()
    first = racing.run().picture.value
    assert racing.run().picture.value == first


def test_an_error_in_a_lane_fails_a_test_run():
    with pytest.raises(RuntimeError, match="out of memory"):
        make(slow=lane(0.3, fail_at=2)).run()


def test_in_class_an_error_in_a_lane_is_one_line(monkeypatch):
    monkeypatch.delenv("PYTEST_VERSION", raising=False)
    monkeypatch.delenv("KVLAB_STRICT", raising=False)
    racing = make(slow=lane(0.3, fail_at=2)).run()
    assert "RuntimeError: out of memory" in racing.error.value
    assert racing.lanes["keep"].state == "stopped"
    assert not racing.running


def test_half_a_character_is_never_shown():
    def decode(ids: list[int]) -> str:
        return bytes(ids).decode("utf-8", errors="replace")

    def start() -> Iterator:
        for byte in "aé".encode():
            yield SimpleNamespace(token_id=byte, seconds=0.1, cache_bytes=0, total_token_forwards=1)

    racing = race({"one": start}, decode=decode, max_new_tokens=3)
    seen = [racing.lanes["one"].text for _ in racing._turns()]
    assert seen == ["a", "a", "aé", "aé"]


def test_the_last_state_is_left_for_a_page_without_a_kernel():
    racing = make().run()
    assert TEXT in racing._repr_mimebundle_()["text/html"]
    assert "keep: finished" in racing._repr_mimebundle_()["text/plain"]
