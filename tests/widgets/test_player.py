"""The step player goes both ways, stays in range, and plays only when asked."""

import asyncio

import pytest

from kvlab.widgets.base import Frame
from kvlab.widgets.follow_token import event, follow_token, toy_steps
from kvlab.widgets.player import StepPlayer
from kvlab.widgets.recompute_or_remember import recompute_or_remember


def player(num_steps: int = 4, **options: object) -> StepPlayer:
    def draw(step: int) -> Frame:
        return Frame(f"<b>{step}</b>", {"step": str(step)}, f"step {step}")

    return StepPlayer(draw, num_steps, kind="demo", **options)


def test_anyone_can_go_back():
    made = player(start=2)
    made.buttons["back"].click()
    assert made.numbers["step"] == "1"
    made.buttons["forward"].click()
    made.buttons["forward"].click()
    assert made.numbers["step"] == "3"


def test_the_ends_hold():
    made = player()
    made.back()
    assert made.controls["step"].value == 0
    for _ in range(9):
        made.forward()
    assert made.controls["step"].value == 3


def test_playing_goes_to_the_last_step_and_starts_over_from_there():
    async def watch() -> list[int]:
        made = player(start=1, interval_seconds=0.001)
        seen: list[int] = []
        made.controls["step"].observe(lambda c: seen.append(c["new"]), names="value")
        assert not made.playing
        made.toggle()
        assert made.playing
        await made._task
        made.toggle()
        await made._task
        return seen

    assert asyncio.run(watch()) == [2, 3, 0, 1, 2, 3]


def test_a_second_press_pauses():
    async def watch() -> int:
        made = player(interval_seconds=0.001)
        made.toggle()
        made.toggle()
        await asyncio.sleep(0.02)
        assert "play" in made.buttons["play"].description
        return made.controls["step"].value

    assert asyncio.run(watch()) == 0


def test_without_a_kernel_play_shows_one_step_more():
    made = player()
    made.buttons["play"].click()
    assert made.controls["step"].value == 1


@pytest.mark.parametrize("heads", [1, 2])
def test_following_every_token_tells_what_the_toy_did(heads):
    made = follow_token(heads)
    for step in toy_steps("ABCDEFGH", heads):
        made.controls["step"].value = step.position
        assert made.frame.event == event(step)
        assert f"predicts {step.prediction}" in made.picture.value
        assert made.numbers["without a cache"].split()[0] == str(step.position + 1)


def test_the_head_switch_shows_how_one_head_is_cut_in_two():
    made = follow_token()
    name = "keys in the cache (heads, positions, head_dim)"
    assert made.numbers[name] == "(1, 4, 8)"
    made.controls["heads"].value = 2
    assert made.numbers[name] == "(2, 4, 4)"


def test_one_slider_moves_both_columns():
    made = recompute_or_remember()
    made.controls["step"].value = 7
    assert made.numbers["recompute: vectors computed"] == "24 (21 again)"
    assert made.numbers["remember: vectors computed"] == "3"
    assert made.numbers["remember: vectors read from the cache"] == "14"
