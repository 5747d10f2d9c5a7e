"""A guess is kept, shown beside the value, and never needed."""

import pytest

from kvlab.course.predictions import GUESSES
from kvlab.widgets import predict as module
from kvlab.widgets.predict import predict, reveal


@pytest.fixture(autouse=True)
def nothing_asked(monkeypatch):
    GUESSES.forget()
    monkeypatch.setattr(module, "_ASKED", {})


def test_a_guess_stands_beside_the_value():
    asked = predict("How many bytes?", unit="KiB", key="bytes")
    asked.controls["guess"].value = "128"
    card = reveal("bytes", "320 KiB", remark="Count KV heads.")
    assert card.label == "How many bytes? Your guess: 128 KiB. Computed: 320 KiB."
    assert asked.numbers == {"guess": "128 KiB", "value": "320 KiB"}


def test_everything_works_without_a_guess():
    predict("How many?", unit="tokens", key="n")
    assert "none made" in reveal("n", 12)
    assert "12 tokens" in reveal("n", 12)
    assert "Computed: 7" in reveal("never asked", 7).label


def test_run_all_does_not_give_the_answer_away_before_the_guess():
    asked = predict("How many?", key="n")
    reveal("n", 12)
    assert asked.numbers["value"] == "not shown yet"
    asked.controls["guess"].value = "10"
    assert asked.numbers["value"] == "12"


def test_running_the_question_again_keeps_the_guess():
    predict("How many?", unit="GiB", key="n").controls["guess"].value = "4"
    again = predict("How many?", unit="GiB", key="n")
    assert again.controls["guess"].value == "4"
    assert again.guess == "4 GiB"


def test_a_unit_that_was_typed_is_kept_and_an_empty_field_takes_the_guess_back():
    asked = predict("How many?", unit="GiB", key="n")
    asked.controls["guess"].value = "500 MB"
    assert asked.guess == "500 MB"
    asked.controls["guess"].value = "  "
    assert asked.guess is None


def test_guesses_under_other_keys_are_left_alone():
    predict("a?", key="a").controls["guess"].value = "1"
    assert predict("b?", key="b").guess is None


def test_markup_in_a_guess_is_shown_and_never_run():
    asked = predict("How many?", key="n")
    for typed in ("<img src=x onerror=alert(1)>" * 50, "7 <img src=x onerror=alert(1)>"):
        asked.controls["guess"].value = typed
        assert "<img" not in asked.picture.value + asked.event.value
        assert len(asked.guess or "") <= 80


def test_the_value_comes_with_how_far_the_guess_was_off():
    asked = predict("How many bytes?", unit="KiB", key="bytes")
    asked.controls["guess"].value = "128"
    assert "That is 2.5 times too low. Count KV heads." in reveal(
        "bytes", "320 KiB (328 kB)", remark="Count KV heads."
    ).replace("\n", " ")


def test_after_the_look_a_guess_is_final_until_the_question_is_asked_again():
    asked = predict("How many?", key="n")
    asked.controls["guess"].value = "10"
    first = reveal("n", 12)
    asked.controls["guess"].value = "12"
    assert asked.guess == "10"
    assert asked.picture.value == str(first)
    assert all(control.disabled for control in asked.controls.values())
    again = predict("How many?", key="n")
    again.controls["guess"].value = "12"
    assert again.guess == "12"


def test_a_guess_in_words_is_asked_for_in_digits_and_not_kept():
    asked = predict("How many?", key="n")
    asked.controls["guess"].value = "three"
    assert asked.guess is None
    assert "in digits" in asked.event.value
    asked.controls["guess"].value = "3"
    assert asked.guess == "3"
    assert asked.event.value == ""


def test_a_saved_page_says_how_to_type_a_guess_and_a_live_one_does_not():
    asked = predict("How many?", key="n")
    assert "run this cell to type a guess" in asked.still()
    assert "run this cell" not in asked.picture.value
    asked.controls["guess"].value = "3"
    assert "run this cell" not in asked.still()


def test_a_measured_value_is_called_measured():
    assert "Result: not shown yet" in predict("How fast?", unit="x", key="n").still().label
    assert "Measured: 3.8 x" in reveal("n", "3.8 x", measured=True).label
    assert "Measured: 2" in reveal("never asked", 2, measured=True).label
