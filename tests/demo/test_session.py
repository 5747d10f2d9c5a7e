"""A demo under way without a page: controls, steps, playing, stages, and errors as one line."""

import asyncio

import pytest

from kvlab.demo.registry import DEMOS, find_demo
from kvlab.demo.session import Session
from kvlab.demo.stages import Demo, Preset, Stage, put
from kvlab.errors import InvalidArgument
from kvlab.widgets.base import Explorer, Frame
from kvlab.widgets.controls import slider


@pytest.fixture
def in_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors become lines, as they do outside of tests."""
    monkeypatch.delenv("PYTEST_VERSION", raising=False)


def broken(n: int) -> Frame:
    if n == 3:
        raise ZeroDivisionError("three of them")
    return Frame(f'<div aria-label="{n}">{n}</div>', {"n": f"{n}"}, f"n is {n}")


def small_demo() -> Demo:
    build = lambda: Explorer({"n": slider("n", 1, 0, 4)}, broken, kind="small")  # noqa: E731
    stages = (Stage("one", build, "n", (Preset("two", put(n=2), "n = {n[n]}"),)),)

    class Small(Demo):
        @property
        def stages(self) -> tuple[Stage, ...]:
            return stages

    return Small("small", "00", 1, "a point", "Small", "")


def test_a_change_redraws_and_an_unknown_one_is_refused_by_name() -> None:
    session = Session(find_demo("recompute"))
    before = session.state()
    after = session.change("step", 6)
    assert after["picture"] != before["picture"] and after["version"] > before["version"]
    with pytest.raises(InvalidArgument, match=r"control='zoom': no such control; there are step"):
        session.change("zoom", 1)
    with pytest.raises(InvalidArgument, match="step=99: must be from 0 to 7"):
        session.change("step", 99)
    with pytest.raises(InvalidArgument, match="control=None: no such control"):
        session.change(None, 1)
    assert session.state()["version"] == after["version"]


def test_arrows_step_the_player_and_stop_at_its_ends() -> None:
    session = Session(find_demo("follow-token"))
    seen = [session.step(1)["event"] for _ in range(9)]
    assert len(set(seen)) == 4 and seen[-1].startswith("H is consumed")
    assert session.step(-1)["event"].startswith("G is consumed")
    with pytest.raises(InvalidArgument, match="by=2: must be 1 or -1"):
        session.step(2)


@pytest.mark.parametrize("demo", DEMOS, ids=lambda demo: demo.name)
def test_what_the_arrows_step_is_there(demo: Demo) -> None:
    session = Session(demo)
    first = session.state()
    names = {control["name"] for control in first["controls"]}
    assert set(first["arrows"].split()) <= names
    moved = [session.step(by) for by in (1, -1, -1)]
    assert {state["picture"] for state in moved} != {first["picture"]}
    assert {state["error"] for state in moved} == {""}


def test_an_error_of_the_widget_is_one_line_and_the_picture_stays(in_class: None) -> None:
    session = Session(small_demo())
    session.change("n", 2)
    state = session.change("n", 3)
    assert state["error"] == "This did not work: ZeroDivisionError: three of them"
    assert state["event"] == "n is 2"
    assert session.change("n", 4)["error"] == ""


def test_a_stage_that_cannot_be_built_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvlab.model.weights.is_available", lambda name: name == "tiny")
    session = Session(find_demo("race"))
    state = session.choose(2)
    assert state["error"].startswith("smollm2 is not here: run `kvlab fetch smollm2`")
    assert (state["controls"], state["stage"]) == ([], 2)
    assert session.preset("Live: SmolLM2")["error"] == state["error"]
    assert session.choose(0)["error"] == ""
    with pytest.raises(InvalidArgument, match="stage=3: must be from 0 to 2"):
        session.choose(3)


def test_a_slider_without_a_player_is_played_until_it_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kvlab.demo.motion.SWEEP_SECONDS", 0.01)

    async def play() -> tuple[bool, dict, dict]:
        session = Session(small_demo())
        playing = session.play()["busy"]
        await asyncio.sleep(0.005)
        stopped = session.play()
        await asyncio.sleep(0.05)
        return playing, stopped, session.state()

    playing, stopped, later = asyncio.run(play())
    assert playing and not stopped["busy"]
    assert stopped["event"] == later["event"] == "n is 2"


def test_the_allocators_play_until_one_of_them_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play() -> tuple[list[int], bool]:
        session, seen = Session(find_demo("allocators")), []
        session.widget.interval = 0.0
        session.preset("Play until one refuses")
        for _ in range(2):
            while session.busy:
                await asyncio.sleep(0.001)
            seen.append(session.widget.controls["step"].value)
            session.play()
        session.halt()
        await asyncio.sleep(0)
        return seen, session.busy

    assert asyncio.run(play()) == ([16, 48], False)


def test_a_live_race_is_stopped_between_two_tokens_and_starts_afresh() -> None:
    async def race() -> tuple[set[str], int, str]:
        session = Session(find_demo("race"))
        session.preset("Live: tiny")
        widget = session.widget
        while widget.lanes["keep keys and values"].num_tokens < 3:
            await asyncio.sleep(0)
        assert session.busy
        state = session.change("stop")
        while session.busy:
            await asyncio.sleep(0)
        states = {lane.state for lane in widget.lanes.values()}
        return states, widget.lanes["keep keys and values"].num_tokens, state["error"]

    states, written, error = asyncio.run(race())
    assert states == {"stopped"} and 3 <= written < 200 and error == ""
