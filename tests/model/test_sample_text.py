"""A prompt of exactly the length asked for, the same each time, and pages of our own prose."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from kvlab.errors import InvalidArgument
from kvlab.model.load import load_model
from kvlab.model.retrieval_words import BOS_ID, VOCAB_SIZE
from kvlab.model.sample_text import prose, prose_ids, sample_ids, speaks_retrieval


def a_model(vocab_size: int = 1_000) -> Any:
    """Return a stand-in that reads any text as the numbers 0 to 65."""
    tokenizer = SimpleNamespace(vocab_size=vocab_size, encode=lambda text: list(range(66)))
    return SimpleNamespace(tokenizer=tokenizer, encode=lambda text: torch.arange(66)[None])


@pytest.mark.parametrize("num_tokens", [1, 8, 64, 66, 67, 500])
def test_it_is_as_long_as_asked_for(num_tokens: int) -> None:
    for model in (a_model(), load_model("tiny", device="cpu")):
        ids = sample_ids(model, num_tokens)
        assert ids.shape == (1, num_tokens)
        assert torch.equal(ids, sample_ids(model, num_tokens))


def test_the_end_of_the_text_is_kept() -> None:
    assert sample_ids(a_model(), 3).tolist() == [[63, 64, 65]]
    assert sample_ids(a_model(), 68)[0, :3].tolist() == [64, 65, 0]


def test_a_model_of_the_retrieval_language_gets_a_sequence_of_it() -> None:
    tiny = load_model("tiny", device="cpu")
    assert speaks_retrieval(tiny)
    assert sample_ids(tiny, 32)[0, 0] == BOS_ID


def test_as_many_words_are_not_yet_the_same_language() -> None:
    assert not speaks_retrieval(a_model(VOCAB_SIZE))


def test_no_token_is_no_prompt() -> None:
    with pytest.raises(InvalidArgument, match="num_tokens"):
        sample_ids(load_model("tiny", device="cpu"), 0)


def test_rows_of_prose_start_at_its_beginning_and_stop_at_its_end() -> None:
    rows = prose_ids(a_model(), num_tokens=16, rows=3)
    assert rows[:, 0].tolist() == [0, 25, 50]
    assert prose_ids(a_model(), num_tokens=66, rows=1).tolist() == [list(range(66))]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"num_tokens": 67}, "num_tokens=67: our prose has 66 tokens"),
        ({"num_tokens": 0}, "num_tokens=0"),
        ({"rows": 0}, "rows=0"),
    ],
)
def test_rows_that_cannot_be_cut_are_refused(changes: dict[str, int], sentence: str) -> None:
    with pytest.raises(InvalidArgument, match=sentence):
        prose_ids(a_model(), **{"num_tokens": 8, "rows": 1, **changes})


def test_our_prose_is_plain_and_long_enough() -> None:
    assert 1_500 <= len(prose().split()) <= 2_500
    assert prose().isascii()
