"""Ranges and options change safely, in any order and both directions."""

from hypothesis import given
from hypothesis import strategies as st

from kvlab.widgets.controls import observe_once, power_options, powers, set_options, set_range
from kvlab.widgets.controls import slider as make_slider

RANGES = st.tuples(st.integers(-1000, 10**6), st.integers(0, 10**6)).map(
    lambda pair: (pair[0], pair[0] + pair[1])
)


@given(st.lists(RANGES, min_size=1, max_size=6))
def test_any_sequence_of_ranges_is_taken_and_clamps_the_value(ranges):
    control = make_slider("tokens", 5, 1, 10)
    for low, high in ranges:
        set_range(control, low, high)
        assert (control.min, control.max) == (low, high)
        assert low <= control.value <= high


def test_presets_from_small_to_large_to_small_keep_a_value_that_still_fits():
    control = powers("context", 2048, 512, 2048)
    for high in (2048, 2**20, 2048, 2**20):
        set_options(control, power_options(512, high))
        assert control.value == 2048
    set_options(control, power_options(2**15, 2**20))
    assert control.value == 2**15
    set_options(control, power_options(512, 2048))
    assert control.value == 2048


def test_a_choice_of_names_falls_back_to_the_first():
    control = powers("context", 512, 512, 2048)
    set_options(control, ["tiny", "smollm2"])
    assert control.value == "tiny"


def test_new_options_call_back_at_most_once():
    control, calls = powers("context", 512, 512, 2048), []
    observe_once(control, calls.append)
    set_options(control, power_options(2**15, 2**20))
    assert len(calls) <= 1
