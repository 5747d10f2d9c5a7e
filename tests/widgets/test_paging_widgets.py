"""The race, the block player and the block-size explorer, driven without a browser."""

from __future__ import annotations

import random

import pytest

from kvlab.paging import BlockManager, EventLog
from kvlab.widgets.allocation_race import (
    POLICIES,
    STREAMS,
    allocation_race,
    first_refusal,
    race_steps,
)
from kvlab.widgets.block_player import MAX_BLOCKS, BlockStory, block_player
from kvlab.widgets.block_size_explorer import SIZES, SPREADS, block_size_explorer

ELEMENTS = 1200  # 10 ms at the 6 to 8 microseconds that one element takes to write


def test_the_race_stops_where_one_piece_each_refuses_first() -> None:
    race = allocation_race()
    assert race.numbers["contiguous: running batch"] == "4"
    assert "refuses E" in race.picture.value
    race.back()
    assert "refuses" not in race.picture.value


@pytest.mark.parametrize("policy", POLICIES.values())
@pytest.mark.parametrize("lengths", STREAMS)
def test_blocks_run_more_at_their_first_refusal_and_all_finish(lengths: str, policy: str) -> None:
    one, paged = race_steps(lengths, policy, 16)
    assert first_refusal(one) < first_refusal(paged)
    running = [len(steps[first_refusal(steps)].running) for steps in (one, paged)]
    assert running[1] >= running[0]
    assert one[-1].finished == paged[-1].finished == 24
    assert all(step.use.external == step.use.reserved == 0 for step in paged)


def test_another_stream_brings_its_own_number_of_steps() -> None:
    race = allocation_race()
    race.controls["lengths"].value = "long prompts, short answers"
    pair = race_steps("long prompts, short answers", "max", 16)
    assert race.controls["step"].max == max(map(len, pair)) - 1
    race.go(10**6)
    assert race.numbers["paged: finished"] == "24 of 24" and race.error.value == ""
    race.reset()
    assert race.numbers["contiguous: running batch"] == "4"


def test_the_buttons_lead_to_the_refusals() -> None:
    race = allocation_race()
    for name, which in (("to a refusal of blocks", 1), ("to the first refusal", 0)):
        race.buttons[name].click()
        steps = race_steps("a few long, many short", "max", 16)[which]
        assert race.controls["step"].value == first_refusal(steps)


@pytest.mark.parametrize("block_size", [1, 4, 16, 256])
def test_no_step_of_the_race_draws_more_than_it_has_time_for(block_size: int) -> None:
    race = allocation_race()
    race.set(block_size=block_size)
    for step in range(0, race.controls["step"].max, 40):
        race.go(step)
        assert race.picture.value.count("<rect") + race.picture.value.count("<text") < ELEMENTS


def busy_story(num_blocks: int, num_events: int) -> EventLog:
    rng, log, alive = random.Random(1), EventLog(), {}
    manager = BlockManager(num_blocks, 16, prefix_caching=False, log=log)
    number = 0
    while len(log.events) < num_events:
        if rng.random() < 0.05 and manager.can_allocate(length := rng.randint(20, 200)):
            manager.allocate(number, length)
            alive[number], number = rng.randint(10, 100), number + 1
        for seq_id in list(alive):
            alive[seq_id] -= 1
            if alive[seq_id] < 0 or not manager.can_append(seq_id):
                manager.free(seq_id)
                del alive[seq_id]
            else:
                manager.append(seq_id)
    return log


@pytest.mark.parametrize("num_blocks", [60, MAX_BLOCKS, 2000])
def test_any_of_ten_thousand_events_is_drawn_with_few_elements(num_blocks: int) -> None:
    log = busy_story(num_blocks, 10_000)
    player = block_player(log.events, num_blocks=num_blocks, block_size=16)
    for step in (0, 1, 4999, 10_000, 5000):
        player.go(step)
        assert player.picture.value.count("<rect") < ELEMENTS
        assert player.numbers["event"].startswith(f"{step:,} of")


def test_the_player_tells_the_state_that_the_manager_had() -> None:
    log = EventLog()
    manager = BlockManager(12, 8, prefix_caching=False, log=log)
    manager.allocate("A", 20)
    for name in "BC":
        manager.fork("A", name)
    player = block_player(log.events, num_blocks=12, block_size=8)
    assert player.numbers["shared"] == "3" and ">3x<" in player.picture.value
    for name in "ABC":
        manager.append(name)
    player = block_player(log.events, num_blocks=12, block_size=8)
    assert (player.numbers["shared"], player.numbers["blocks in use"]) == ("2", "5 of 12")
    assert (
        player.numbers["slots with a token"] == "31 of 40"
    )  # two full shared blocks, three of their own
    player.go(0)
    assert player.frame.event == "nothing has come yet"


def test_a_numbered_sequence_is_told_by_the_letter_of_the_picture() -> None:
    log = EventLog()
    BlockManager(4, 4, log=log).allocate(7, 5)
    story = BlockStory(log.events, num_blocks=4, block_size=4)
    assert story.frame(2).event == "A gets blocks 0, 1"


def test_waste_grows_with_the_block_and_overhead_with_its_number() -> None:
    show = block_size_explorer()
    found = []
    for size in SIZES:
        show.controls["block_size"].value = size
        waste, turns = show.numbers["wasted, counted"], show.numbers["new blocks, 1,000 tokens"]
        found.append((float(waste.rstrip("%")), float(turns.replace(",", ""))))
    assert [w for w, _ in found] == sorted(w for w, _ in found)
    assert [t for _, t in found] == sorted((t for _, t in found), reverse=True)
    assert found[0] == (0, 1000)


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("mean", [16, 8192])
def test_every_distribution_is_drawn(spread: str, mean: int) -> None:
    show = block_size_explorer()
    show.set(spread=spread, mean=mean, block_size=512)
    assert show.error.value == "" and spread in show.picture.value
