"""Every number and name in the prose of chapter 01, checked against the functions."""

import re
from pathlib import Path

import numpy as np

from kvlab.arithmetic.catalogue import model_shape
from kvlab.arithmetic.flops import token_forwards_cached
from kvlab.model.toy import Toy, ToyCache, letter_ids
from kvlab.model.toy_mistakes import MISTAKES
from kvlab.model.toy_runs import generate, recompute

SOURCE = Path(__file__).resolve().parents[2] / "chapters" / "src" / "01_follow_one_token.py"
TEXT = SOURCE.read_text(encoding="utf-8")
PROSE = "\n".join(line[2:] for line in TEXT.splitlines() if line.startswith("# "))


def test_a_token_vector_is_four_numbers_of_the_letter_one_of_the_position_and_a_one() -> None:
    w = Toy().w
    (d,) = letter_ids("D")
    x = w.letters[d] + w.positions[3]
    assert np.count_nonzero(w.letters[:, :4]) == 8 and not w.letters[:, 4:].any()
    assert (x[4], x[5]) == (3, 1)
    assert np.array_equal(w.letters[:4, :4], np.eye(4))  # A to D put +1 into one place
    assert np.array_equal(w.letters[4:, :4], -np.eye(4))  # E to H put -1


def test_the_query_of_d_meets_three_old_keys_and_its_own() -> None:
    cache = ToyCache()
    Toy().prefill(cache, "ABC")
    step = Toy().step(cache, "D")
    assert (len(step.scores[0]), step.rows_read, step.rows_written) == (4, (0, 1, 2), (3,))
    assert step.prediction == "E"


def test_one_key_has_weight_one_and_h_meets_eight() -> None:
    cache = ToyCache()
    steps = [Toy().step(cache, letter) for letter in "ABCDEFGH"]
    assert steps[0].weights.tolist() == [[1.0]]
    assert (steps[-1].keys.shape[1], steps[-1].rows_written) == (8, (7,))


def test_three_prompt_letters_and_four_emitted_leave_six_positions() -> None:
    cache = ToyCache()
    run = generate("ABC", 4, cache=cache)
    assert cache.length == token_forwards_cached(3, 4) == 3 + 4 - 1 == 6
    assert run[-1].last.prediction == "G"


def test_old_queries_predict_letters_that_are_known_already() -> None:
    assert [step.prediction for step in recompute("ABCD").steps] == list("BCDE")
    assert set(vars(ToyCache())) == {"keys", "values", "length"}


def test_one_head_of_eight_or_two_of_four_are_the_same_cells() -> None:
    one, two = ToyCache(1), ToyCache(2)
    Toy(1).prefill(one, "ABCD")
    Toy(2).prefill(two, "ABCD")
    assert (one.keys.shape[0], one.keys.shape[2]) == (1, 8)
    assert (two.keys.shape[0], two.keys.shape[2]) == (2, 4)
    joined = two.keys[:, :4].transpose(1, 0, 2).reshape(4, 8)
    assert np.array_equal(joined, one.keys[0, :4])


def test_the_mistakes_break_where_the_text_says() -> None:
    made = [make() for make in MISTAKES[:3]]
    assert [mistake.first_wrong for mistake in made] == ["embedding", "visible", "keys"]
    assert all(mistake.right.prediction != mistake.wrong.prediction for mistake in made)
    padded = made[2]
    assert np.array_equal(padded.right.k, padded.wrong.k)  # the new token itself is right


def test_the_sizes_in_the_exercise_are_those_of_smollm2() -> None:
    shape = model_shape("smollm2")
    said = f"has {shape.num_layers} layers, {shape.num_heads} query heads, {shape.num_kv_heads} "
    said += f"KV heads, head_dim {shape.head_dim} and hidden size {shape.hidden_size}"
    assert said in PROSE


def test_the_places_that_can_be_linked_to_are_these_six() -> None:
    anchors = set(re.findall(r'<a id="([a-z-]+)"></a>', PROSE))
    assert anchors == {
        "one-step", "emitted-is-not-cached", "shapes", "old-queries", "causal-mask",
        "same-word-another-context",
    }  # fmt: skip
