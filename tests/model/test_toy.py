"""The toy says the next letter, through attention alone, with a cache and without."""

import subprocess
import sys
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlab.errors import CacheFull, CacheInUse, InvalidArgument
from kvlab.model.toy import Toy, ToyCache, chunk_mask, softmax
from kvlab.model.toy_weights import LETTERS, letter_ids, toy_weights

HEADS = (1, 2)
any_text = st.text(alphabet=LETTERS, min_size=1, max_size=8)


def letter_after(letter: str) -> str:
    return LETTERS[(LETTERS.index(letter) + 1) % 8]


@pytest.mark.parametrize("num_heads", HEADS)
@given(text=any_text)
def test_the_letter_after_the_last_one_is_predicted_whatever_came_before(
    num_heads: int, text: str
) -> None:
    for step in Toy(num_heads).prefill(ToyCache(num_heads), text):
        assert step.prediction == letter_after(step.letter)


@pytest.mark.parametrize("num_heads", HEADS)
def test_the_alphabet_is_continued_and_wraps_after_h(num_heads: int) -> None:
    steps = Toy(num_heads).prefill(ToyCache(num_heads), LETTERS)
    assert "".join(step.prediction for step in steps) == "BCDEFGHA"
    assert min(step.probabilities.max() for step in steps) > 0.5


def test_one_head_of_8_and_two_heads_of_4_are_cut_from_the_same_numbers() -> None:
    one, two = (Toy(n).prefill(ToyCache(n), "ABCD")[-1] for n in HEADS)
    assert one.k.shape == (1, 8)
    assert two.k.shape == (2, 4)
    for name in ("q", "k", "v"):
        assert np.array_equal(getattr(one, name).ravel(), getattr(two, name).ravel())
    assert not np.allclose(two.weights[0], two.weights[1], atol=0.1)


@pytest.mark.parametrize("num_heads", HEADS)
def test_weights_are_printable_and_neither_flat_nor_all_on_one_key(num_heads: int) -> None:
    seen = []
    for step in Toy(num_heads).prefill(ToyCache(num_heads), "ABCDE")[1:]:
        assert np.allclose(step.weights.sum(-1), 1)
        weights = step.weights[:, step.visible]
        assert (weights > 0.005).all()
        assert (weights < 0.85).all()
        assert step.weights.mean(0).argmax() == step.position
        seen.append(tuple(step.weights.round(2).ravel()))
    assert len(set(seen)) == 4


def test_one_step_worked_by_hand() -> None:
    step = Toy(1).prefill(ToyCache(1), "AB")[1]
    assert step.embedding.tolist() == [0, 1, 0, 0, 1, 1]
    assert step.q.tolist() == [[1, 0.5, 0.5, -0.5, 1, 0.5, 0.5, -0.5]]
    assert step.k.tolist() == [[1.5, 1, 1, -1, 0.5, 1, 1, -1]]
    assert step.v.tolist() == [[0, 0, 1, 0, 0, 0, 1, 0]]
    scores = np.array([1, 5]) / np.sqrt(8)
    share = 1 / (1 + np.exp(scores[0] - scores[1]))  # of B, against A
    assert np.allclose(step.scores, scores)
    assert np.allclose(step.weights, [[1 - share, share]])
    assert np.allclose(step.output, [0, 4 * (1 - share), 4 * share, 0])
    assert step.logits.argmax() == 2
    assert step.prediction == "C"


def test_every_weight_is_a_whole_number_or_a_half() -> None:
    for field in fields(toy_weights()):
        matrix = getattr(toy_weights(), field.name)
        assert np.array_equal(matrix * 2, np.round(matrix * 2))
        assert np.abs(matrix).max() <= 7


@pytest.mark.parametrize("num_heads", HEADS)
@given(text=any_text, data=st.data())
def test_any_chunking_gives_the_steps_of_one_prefill_to_the_bit(
    num_heads: int, text: str, data: st.DataObject
) -> None:
    toy, cache = Toy(num_heads), ToyCache(num_heads)
    cut = data.draw(st.integers(0, len(text)))
    whole = toy.prefill(ToyCache(num_heads), text)
    steps = [toy.forward(letter_ids(part), cache) for part in (text[:cut], text[cut:]) if part]
    for one, other in zip(whole, [step for chunk in steps for step in chunk], strict=True):
        seen = one.position + 1
        assert np.array_equal(one.weights[:, :seen], other.weights[:, :seen])
        assert np.array_equal(one.logits, other.logits)


@pytest.mark.parametrize("n", [1, 2, 7])
@pytest.mark.parametrize("num_heads", HEADS)
def test_a_prefill_of_n_writes_n_rows_that_are_the_projections(num_heads: int, n: int) -> None:
    cache = ToyCache(num_heads)
    steps = Toy(num_heads).prefill(cache, LETTERS[:n])
    assert cache.length == n
    for row, step in enumerate(steps):
        assert step.rows_written == tuple(range(n))
        key = step.embedding @ toy_weights().w_k
        value = step.embedding @ toy_weights().w_v
        assert np.array_equal(cache.keys[:, row].ravel(), key)
        assert np.array_equal(cache.values[:, row].ravel(), value)
        assert key.any()
        assert value.any()
    assert np.isnan(cache.keys[:, n:]).all()


def test_a_step_reads_the_older_rows_and_writes_one() -> None:
    toy, cache = Toy(), ToyCache()
    toy.prefill(cache, "ABC")
    before = cache.keys[:, :3].copy()
    step = toy.step(cache, "D")
    assert (step.rows_read, step.rows_written) == ((0, 1, 2), (3,))
    assert np.array_equal(cache.keys[:, :3], before)
    assert np.array_equal(cache.keys[:, 3], step.k)


@pytest.mark.parametrize("changed", range(8))
def test_changing_letter_j_changes_nothing_before_j(changed: int) -> None:
    other = LETTERS[:changed] + "A" + LETTERS[changed + 1 :] if changed else "C" + LETTERS[1:]
    pairs = zip(*(Toy(2).prefill(ToyCache(2), text) for text in (LETTERS, other)), strict=True)
    for position, (one, two) in enumerate(pairs):
        assert np.array_equal(one.logits, two.logits) == (position < changed)


def test_the_mask_of_a_chunk_is_the_last_rows_of_the_square() -> None:
    one = chunk_mask(past=4, new=1, num_slots=8)
    assert one.astype(int).tolist() == [[1, 1, 1, 1, 1, 0, 0, 0]]
    three = chunk_mask(past=2, new=3)
    assert three.shape == (3, 5)
    assert three.sum(axis=1).tolist() == [3, 4, 5]
    assert np.array_equal(three, np.tri(5, dtype=bool)[2:])


def test_a_used_cache_is_refused_and_a_reset_one_is_like_new() -> None:
    toy, used = Toy(), ToyCache()
    toy.prefill(used, "ABC")
    with pytest.raises(CacheInUse, match="already holds 3 tokens"):
        toy.prefill(used, "FG")
    used.reset()
    again, fresh = toy.prefill(used, "FG")[-1], toy.prefill(ToyCache(), "FG")[-1]
    assert np.array_equal(again.logits, fresh.logits)
    assert again.keys.shape == fresh.keys.shape


def test_a_ninth_letter_is_refused_and_the_cache_is_kept() -> None:
    toy, cache = Toy(), ToyCache()
    toy.prefill(cache, LETTERS)
    with pytest.raises(CacheFull, match="8 positions"):
        toy.step(cache, "A")
    with pytest.raises(CacheFull, match="8 positions"):
        cache.write(np.zeros((1, 1, 8)), np.zeros((1, 1, 8)))
    assert cache.length == 8


@pytest.mark.parametrize("letters", ["", "abc", "AI", "ABCDEFGHA", 7, None])
def test_what_is_not_one_to_eight_letters_is_refused(letters: object) -> None:
    with pytest.raises(InvalidArgument, match="letters="):
        Toy().prefill(ToyCache(), letters)  # type: ignore[arg-type]


def test_other_wrong_arguments_are_named() -> None:
    with pytest.raises(InvalidArgument, match="num_heads=3"):
        Toy(3)
    with pytest.raises(InvalidArgument, match="positions="):
        Toy().forward([0], ToyCache(), positions=[8])


def test_a_row_that_sees_nothing_gets_zero_weights() -> None:
    assert softmax(np.array([1.0, 2.0]), np.array([False, False])).tolist() == [0, 0]


def test_a_step_cannot_be_changed_and_does_not_follow_the_cache() -> None:
    toy, cache = Toy(), ToyCache()
    step = toy.prefill(cache, "AB")[-1]
    kept = step.keys.copy()
    cache.reset()
    assert np.array_equal(step.keys, kept)
    with pytest.raises(ValueError, match="read-only"):
        step.keys[:] = 0


def test_the_toy_loads_no_torch() -> None:
    code = "import sys, kvlab.model.toy_mistakes; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
