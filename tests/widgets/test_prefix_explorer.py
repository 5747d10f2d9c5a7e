"""The prefix explorer: every event and layout draws, and says what was shared."""

import pytest

from kvlab.widgets.prefix_explorer import (
    DATED,
    LAYOUTS,
    SALTED,
    STABLE,
    prefix_explorer,
    prefix_frame,
    story,
)


def test_the_example_shares_twelve_of_sixteen_tokens() -> None:
    show = prefix_explorer()
    assert show.numbers["this request"] == "12 tokens shared, 4 computed"


def test_a_date_at_the_top_shares_nothing_at_any_event() -> None:
    for step in range(len(story(DATED)) + 1):
        frame = prefix_frame(step, DATED, 4, 16)
        assert frame.readout["this request"].startswith("0 tokens shared")


def test_with_salts_only_the_same_tenant_shares() -> None:
    said = [prefix_frame(step, SALTED, 4, 24).readout["this request"] for step in (1, 2, 4, 6)]
    assert [words.split()[0] for words in said] == ["0", "0", "12", "12"]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("num_blocks", [6, 8, 24])
def test_every_event_draws_for_small_and_large_pools(layout: str, num_blocks: int) -> None:
    show = prefix_explorer(layout=layout, num_blocks=num_blocks, start=0)
    for block_size in (4, 8, 16):
        show.set(block_size=block_size, step=0)
        for step in range(len(story(layout)) + 1):
            show.go(step)
            assert "kvlab" in show.picture.value and not show.error.value


def test_back_to_the_example_shows_the_example_again() -> None:
    show = prefix_explorer()
    before = show.picture.value
    show.set(layout=DATED, step=6)
    assert show.picture.value != before
    show.reset()
    assert show.picture.value == before and show.values["layout"] == STABLE
