import pytest

from kvlab.course.predictions import Guesses, compare, remember


@pytest.mark.parametrize(
    ("guess", "value", "unit", "text"),
    [
        ("10 GiB", 30 * 2**30, "B", "3 times too low"),
        ("1,000", 100, "", "10 times too high"),
        ("2.5 GiB", 2684354560, "B", "exact"),
        ("2.6 GB", 2684354560, "B", "close"),
        ("8x", 833.4, "x", "104 times too low"),
        ("120", 100, "tokens", "a little too high"),
        ("3 tokens", 30, "tokens", "10 times too low"),
        ("320", 320, "KiB", "exact"),
        ("160 KiB", 320, "KiB", "2 times too low"),
        ("9.4 billion parameters", 9_395_240_960, "parameters", "close"),
        ("1 ms", 4, "ms", "4 times too low"),
        ("five", 5, "", "cannot be set beside"),
        ("5 ms", 5, "B", "cannot be set beside"),
        ("-5", 5, "", "cannot be set beside"),
        ("5", 0, "", "cannot be set beside"),
        ("nan", 5, "", "cannot be set beside"),
    ],
)
def test_a_guess_is_set_beside_the_value_in_words(guess, value, unit, text):
    guesses = Guesses()
    guesses.remember("key", guess)
    compared = guesses.compare("key", value, unit)
    assert text in compared.text
    assert guess in compared.text
    assert (compared.ratio is None) == ("cannot" in text)


def test_without_a_guess_everything_still_works():
    guesses = Guesses()
    assert guesses.compare("never", 5).text == "No guess was made."
    assert guesses.remember("key", "  ") == ""
    assert guesses.remember("key", None) == ""
    assert guesses.guess("key") is None


def test_a_later_guess_replaces_and_an_empty_one_forgets():
    assert remember("replace", 3) == "3"
    assert remember("replace", "4") == "4"
    assert compare("replace", 4).ratio == 1
    remember("replace", "")
    assert compare("replace", 4).ratio is None
    assert len(Guesses().remember("long", "9" * 10_000)) == 80
