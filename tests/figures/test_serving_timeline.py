"""Tracks of a server: what is past is full, what is to come is pale, labels never collide."""

from itertools import combinations

import pytest

from kvlab.errors import InvalidArgument
from kvlab.figures.palette import color_of
from kvlab.figures.serving_timeline import Gauge, Track, said, serving_timeline
from kvlab.figures.serving_tracks import serving_tracks
from kvlab.serving.watch import Look

from .conftest import Drawing

LOOKS = [
    Look(step, step / 10, running=step % 7, waiting=3 * step, block_use=min(1, step / 9))
    for step in range(12)
]


def check_texts(drawing: Drawing) -> None:
    for text in drawing.texts():
        assert text.left >= 0 and text.right <= drawing.width + 0.5, text
        assert text.top >= 0 and text.bottom <= drawing.height, text
    for one, other in combinations(drawing.texts(), 2):
        across, down = one.overlap(other)
        assert across <= 0.5 or down <= 0.5, (one, other)


@pytest.mark.parametrize("now", [0, 5, 11, None])
@pytest.mark.parametrize("times", [True, False])
def test_no_text_leaves_the_sheet_or_meets_another(now: int | None, times: bool) -> None:
    check_texts(Drawing(serving_tracks(LOOKS, now=now, times=times, title="t")))


def test_lines_of_one_track_that_are_equal_still_have_names_apart() -> None:
    gauges = [Gauge("p50", [0.0, 0.0]), Gauge("p95", [0.0, 0.0], "wasted", "dotted")]
    check_texts(Drawing(serving_timeline([0, 1], [Track("seconds", gauges, unit="s")])))


def test_the_label_says_the_values_of_now() -> None:
    label = serving_tracks(LOOKS, now=9, times=False).label
    assert label == "A server at 0.9 seconds: running 2, waiting 27, in use 100 %, so far 0."
    by_step = serving_tracks(LOOKS, now=9, by_step=True, times=False).label
    assert by_step.startswith("A server at 9 steps:")


def test_what_comes_after_now_is_pale() -> None:
    track = [Track("requests", [Gauge("running", [1, 2, 3, 4])])]
    pale = 'stroke-opacity="0.4"'
    assert pale not in serving_timeline([0, 1, 2, 3], track)
    drawn = serving_timeline([0, 1, 2, 3], track, now=1)
    assert drawn.count(pale) == 1 and drawn.count("stroke-dasharray") == 1  # the cursor
    assert color_of("value") in drawn


def test_a_value_stands_at_its_height_and_its_time() -> None:
    drawn = serving_timeline([0, 4], [Track("pool", [Gauge("use", [0, 50])], top=100)], height=60)
    path = next(part for part in drawn.split('d="')[1:] if "H" in part.split('"')[0])
    start, stairs = path.split('"')[0].split("H")
    left, bottom = (float(x) for x in start[1:].split())
    right, level = (float(x) for x in stairs.split("V"))
    assert (bottom - level, right > left) == (30, True)


def test_times_without_a_value_yet_are_left_out() -> None:
    gauge = Gauge("p50", [None, None, 2.0, 1.0])
    drawn = serving_timeline([0, 1, 2, 3], [Track("s", [gauge])], now=1)
    assert "none yet" in drawn and "none yet" in drawn.label


def test_wrong_input_is_named() -> None:
    track = Track("requests", [Gauge("running", [1, 2])])
    for times, tracks, now, said_what in (
        ([], [track], None, "times"),
        ([0, 1], [], None, "times"),
        ([0, 1, 2], [track], None, "values of running"),
        ([0, 1], [track], 2, "now"),
    ):
        with pytest.raises(InvalidArgument, match=said_what):
            serving_timeline(times, tracks, now=now)


def test_numbers_are_short_and_keep_three_digits() -> None:
    assert [said(v, "") for v in (0.0, 0.123456, 12.345, 123456)] == ["0", "0.123", "12.3", "123K"]
