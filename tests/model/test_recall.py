"""Recall: counting right answers, with and without a cache, on models that are quick to run."""

import pytest
import torch

from kvlab.errors import InvalidArgument
from kvlab.model.config import LlamaConfig
from kvlab.model.llama import Llama
from kvlab.model.retrieval import CHANCE, VOCAB_SIZE, make_sequences, predicted_answers, recall


def small_config(vocab_size: int = VOCAB_SIZE) -> LlamaConfig:
    """Return the shape of an untrained model that is quick to run."""
    return LlamaConfig(
        num_layers=1,
        num_heads=2,
        num_kv_heads=1,
        head_dim=4,
        hidden_size=8,
        intermediate_size=8,
        vocab_size=vocab_size,
        max_seq_len=512,
    )


def test_an_untrained_model_is_near_chance() -> None:
    model = Llama(small_config()).init_weights(0)
    assert recall(model, seq_len=64, num_facts=8, num_sequences=100) < 3 * CHANCE


def test_recall_refuses_a_model_of_another_vocabulary() -> None:
    with pytest.raises(InvalidArgument, match="vocab_size=100"):
        recall(Llama(small_config(vocab_size=100)), num_sequences=1)


def test_recall_refuses_a_cache_that_is_no_name_and_makes_none() -> None:
    with pytest.raises(InvalidArgument, match="cache=7"):
        recall(Llama(small_config()), seq_len=32, num_facts=2, num_sequences=1, cache=7)


def test_recall_counts_the_right_answers_whatever_the_size_of_a_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def half_right(model: object, batch: object, **kwargs: object) -> torch.Tensor:
        said = torch.from_numpy(batch.answers).clone()
        said[:, ::2] = 0
        return said

    monkeypatch.setattr("kvlab.model.retrieval.predicted_answers", half_right)
    assert recall(None, seq_len=4096, num_facts=4, num_sequences=7) == 0.5


@pytest.mark.parametrize("cache", ["none", "growing", "preallocated"])
def test_answers_with_a_cache_are_those_without(cache: str) -> None:
    model = Llama(small_config()).init_weights(1, std=0.5)
    batch = make_sequences(2, seq_len=40, num_facts=4, seed=9)
    assert torch.equal(
        predicted_answers(model, batch, cache=cache), predicted_answers(model, batch)
    )
