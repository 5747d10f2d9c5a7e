"""Blind marking: what is shuffled, what is counted, what is refused."""

import pytest

from kvlab.course.blind import EQUAL, LEFT, RIGHT, blind_pairs, chance_of_luck, kind_of
from kvlab.errors import InvalidArgument

PROMPTS = [f"question {i}" for i in range(20)]
ANSWERS = {"x": [f"x{i}" for i in range(20)], "y": [f"y{i}" for i in range(20)]}


def test_sides_are_shuffled_and_each_answer_stands_on_the_side_that_its_kind_says() -> None:
    marking = blind_pairs(PROMPTS, ANSWERS, seed=1)
    assert {pair.kinds for pair in marking.pairs} == {("x", "y"), ("y", "x")}
    for pair in marking.pairs:
        assert (pair.left, pair.right) == tuple(f"{kind}{pair.number}" for kind in pair.kinds)


def test_equal_answers_are_not_asked_and_repeats_come_with_their_sides_changed() -> None:
    same = {"x": ["a", "b", "c"], "y": ["a ", "b", "d"]}
    first, again = blind_pairs(PROMPTS[:3], same, seed=3, repeats=5).pairs
    assert first.number == again.number == 2
    assert again.repeated and again.kinds == first.kinds[::-1] and again.left == first.right


def test_a_judge_who_always_prefers_one_setting_never_contradicts_himself() -> None:
    marking = blind_pairs(PROMPTS, ANSWERS, seed=2)
    while marking.current is not None:
        marking.choose(LEFT if marking.current.kinds[0] == "x" else RIGHT)
    assert marking.preferred() in ({"x": 10, "y": 0}, {"y": 0, "x": 10})
    assert marking.contradictions() == (0, 4)


def test_a_judge_who_always_says_left_contradicts_himself_each_time() -> None:
    marking = blind_pairs(PROMPTS, ANSWERS, seed=2)
    while marking.current is not None:
        marking.choose(LEFT)
    assert marking.contradictions() == (4, 4)
    assert kind_of(marking.pairs[0], EQUAL) is None


@pytest.mark.parametrize("wins", range(11))
def test_a_coin_is_as_uneven_as_all_its_tosses_say(wins: int) -> None:
    tosses = [bin(number).count("1") for number in range(2**10)]
    uneven = sum(abs(heads - 5) >= abs(wins - 5) for heads in tosses)
    assert chance_of_luck(wins, 10 - wins) == pytest.approx(uneven / 2**10)


def test_what_does_not_fit_together_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="two settings"):
        blind_pairs(PROMPTS, {"x": ANSWERS["x"]})
    with pytest.raises(InvalidArgument, match="one for each prompt"):
        blind_pairs(PROMPTS[:3], ANSWERS)
    marking = blind_pairs(PROMPTS, ANSWERS, most=1, repeats=0)
    with pytest.raises(InvalidArgument, match="choice='up'"):
        marking.choose("up")
    marking.choose(LEFT)
    with pytest.raises(InvalidArgument, match="all pairs are marked"):
        marking.choose(LEFT)
