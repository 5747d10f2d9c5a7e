"""Runs with and without a cache agree, their work is counted, and each mistake shows."""

import numpy as np
import pytest

from kvlab.errors import CacheInUse, InvalidArgument
from kvlab.model.toy import ToyCache
from kvlab.model.toy_mistakes import MISTAKES
from kvlab.model.toy_runs import forward_cost, generate, recompute
from kvlab.model.toy_weights import LETTERS

HEADS = (1, 2)


@pytest.mark.parametrize("num_heads", HEADS)
@pytest.mark.parametrize("length", range(1, 9))
def test_cached_and_recomputed_runs_are_equal_to_the_bit(length: int, num_heads: int) -> None:
    prompt, num_new = LETTERS[:length], 9 - length
    cached = generate(prompt, num_new, num_heads=num_heads)
    uncached = generate(prompt, num_new, num_heads=num_heads, cached=False)
    for one, other in zip(cached, uncached, strict=True):
        for name in ("embedding", "q", "keys", "values", "weights", "output", "logits"):
            assert np.array_equal(getattr(one.last, name), getattr(other.last, name)), name
        assert one.last.prediction == other.last.prediction


def test_token_forwards_follow_the_closed_forms() -> None:
    cached = generate("ABC", 5)
    uncached = generate("ABC", 5, cached=False)
    assert sum(forward.cost.tokens_projected for forward in cached) == 3 + 5 - 1
    assert sum(forward.cost.tokens_projected for forward in uncached) == 5 * 3 + 5 * 4 // 2
    assert [forward.phase for forward in cached] == ["prefill", *["decode"] * 4]


def test_the_last_letter_emitted_is_not_in_the_cache() -> None:
    cache = ToyCache()
    emitted = "".join(forward.last.prediction for forward in generate("ABC", 3, cache=cache))
    assert emitted == "DEF"
    assert cache.length == 3 + 3 - 1


@pytest.mark.parametrize("num_heads", HEADS)
def test_costs_equal_what_the_steps_did(num_heads: int) -> None:
    for forward in generate("ABC", 4, num_heads=num_heads):
        read, written, scores = set(), set(), 0
        for step in forward.steps:
            read |= set(step.rows_read)
            written |= set(step.rows_written)
            scores += num_heads * int(step.visible.sum())
        cells = forward.last.k.size + forward.last.v.size
        assert forward.cost.kv_cells_read == cells * len(read)
        assert forward.cost.kv_cells_written == cells * len(written)
        assert forward.cost.tokens_projected == len(forward.steps)
        assert forward.cost.kv_cells_computed == cells * len(forward.steps)
        assert forward.cost.scores_computed == scores


def test_recompute_projects_everything_and_keeps_nothing() -> None:
    forward = recompute("ABCD", num_heads=2)
    assert forward.cost == forward_cost(past=0, new=4, num_heads=2, cached=False)
    assert forward.cost.scores_computed == 2 * (1 + 2 + 3 + 4)
    assert (forward.cost.kv_cells_read, forward.cost.kv_cells_written) == (0, 0)
    assert (forward.last.rows_read, forward.last.rows_written) == ((), ())


def test_a_second_prompt_owes_nothing_to_the_first() -> None:
    cache = ToyCache()
    alone = recompute("FG").last.logits
    generate("ABC", 2, cache=cache)
    assert np.array_equal(recompute("FG").last.logits, alone)
    with pytest.raises(CacheInUse):
        generate("FG", 1, cache=cache)
    cache.reset()
    assert np.array_equal(generate("FG", 1, cache=cache)[-1].last.logits, alone)


@pytest.mark.parametrize("num_new", [0, -1, 7, 2.0, True])
def test_a_number_of_letters_that_cannot_be_emitted_is_refused(num_new: object) -> None:
    with pytest.raises(InvalidArgument, match="num_new="):
        generate("ABC", num_new)  # type: ignore[arg-type]


@pytest.mark.parametrize("num_heads", HEADS)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_mistake_runs_and_predicts_a_wrong_letter(mistake, num_heads: int) -> None:
    shown = mistake(num_heads=num_heads)
    assert shown.right.letter == shown.wrong.letter == "D"
    assert shown.right.prediction == "E"
    assert shown.wrong.prediction != "E"
    assert np.isfinite(shown.wrong.logits).all()
    assert shown.what
    assert "\n" not in shown.what


@pytest.mark.parametrize("num_heads", HEADS)
def test_left_padding_with_positions_equals_the_run_without_padding(num_heads: int) -> None:
    padded = next(m for m in MISTAKES if "padding" in m.__name__)(num_heads=num_heads).right
    alone = recompute("ABCD", num_heads=num_heads).last
    assert np.array_equal(padded.weights[:, 4:], alone.weights)
    assert np.array_equal(padded.logits, alone.logits)
    assert not padded.weights[:, :4].any()
