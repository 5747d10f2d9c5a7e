"""The retrieval language: what a sequence promises, how it reads back."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlab.errors import InvalidArgument
from kvlab.model.retrieval import (
    CHANCE,
    VOCAB_SIZE,
    build_tokenizer,
    make_sequences,
    min_seq_len,
    render,
)
from kvlab.model.retrieval_words import (
    BOS_ID,
    FILLER,
    FIRST_FILLER,
    FIRST_NAME,
    FIRST_PLACE,
    NAMES,
    PLACES,
    WHERE_ID,
    WORDS,
)


@st.composite
def requests(draw: st.DrawFn) -> dict[str, int]:
    """Return any valid request for sequences."""
    num_facts = draw(st.integers(1, 40))
    num_questions = draw(st.integers(1, num_facts))
    return {
        "num_sequences": draw(st.integers(1, 3)),
        "seq_len": min_seq_len(num_facts, num_questions) + draw(st.integers(0, 100)),
        "num_facts": num_facts,
        "num_questions": num_questions,
        "num_names": draw(st.integers(num_facts, len(NAMES))),
        "seed": draw(st.integers(0, 2**63 - 1)),
    }


@given(requests())
@settings(max_examples=60, deadline=None)
def test_each_question_has_one_right_answer_and_it_is_stated_before(request_: dict) -> None:
    batch = make_sequences(**request_)
    for row in batch.input_ids.tolist():
        context, questions = row[: batch.context_len], row[batch.context_len :]
        stated = [(a, b) for a, b in pairwise(context) if is_name(a)]
        facts = dict(stated)
        assert len(facts) == len(stated) == request_["num_facts"]
        assert all(b >= FIRST_PLACE for b in facts.values())
        asked = [tuple(questions[i : i + 3]) for i in range(0, len(questions), 3)]
        assert len({name for _, name, _ in asked}) == request_["num_questions"]
        assert all(word == WHERE_ID and facts[name] == place for word, name, place in asked)


def is_name(number: int) -> bool:
    """Tell whether a token id is a name."""
    return FIRST_NAME <= number < FIRST_PLACE


@given(requests())
@settings(max_examples=60, deadline=None)
def test_lengths_and_ids_are_as_asked_and_positions_point_where_they_say(request_: dict) -> None:
    batch = make_sequences(**request_)
    ids = batch.input_ids
    assert ids.shape == (request_["num_sequences"], request_["seq_len"])
    assert ids.dtype == np.int64 and (ids[:, 0] == BOS_ID).all() and (ids < VOCAB_SIZE).all()
    assert (ids[:, 1:] >= WHERE_ID).all()
    names = np.take_along_axis(ids, batch.fact_positions, axis=1)
    places = np.take_along_axis(ids, batch.fact_positions + 1, axis=1)
    assert (names < FIRST_NAME + request_["num_names"]).all()
    assert (np.take_along_axis(places, batch.asked, axis=1) == batch.answers).all()
    asked = np.take_along_axis(names, batch.asked, axis=1)
    assert (asked == ids[:, batch.answer_positions - 1]).all()


@given(requests())
@settings(max_examples=30, deadline=None)
def test_the_tokenizer_reads_the_readable_rendering_back_to_the_same_ids(request_: dict) -> None:
    tokenizer = build_tokenizer()
    for row in make_sequences(**request_).input_ids.tolist():
        assert tokenizer.encode(render(row)).ids == row
        assert tokenizer.encode(tokenizer.decode(row)).ids == row


def test_equal_seeds_give_equal_sequences_and_other_seeds_others() -> None:
    first, again, other = (make_sequences(2, seed=seed).input_ids for seed in (5, 5, 6))
    assert (first == again).all() and (first != other).any()


def test_the_stream_of_random_numbers_has_not_moved() -> None:
    batch = make_sequences(1, seq_len=16, num_facts=2, seed=0)
    assert render(batch.input_ids[0]) == (
        "slow morning it door Aldo: Nairobi. at Maya: Kyiv. Where Aldo? Nairobi. Where Maya? Kyiv."
    )


def test_each_word_is_in_one_group_alone_and_every_group_has_its_size() -> None:
    assert len(WORDS) == len(set(WORDS)) == VOCAB_SIZE == 256
    assert (FIRST_FILLER, len(FILLER), len(NAMES), len(PLACES)) == (4, 60, 128, 64)
    assert len(PLACES) * CHANCE == 1
    tokenizer = build_tokenizer()
    for number, word in enumerate(WORDS):
        assert tokenizer.encode(word, add_special_tokens=False).ids == [number]
        assert tokenizer.encode(word.upper(), add_special_tokens=False).ids[0] in (number, 2)


def test_places_are_drawn_alike_and_independently_of_the_names() -> None:
    batch = make_sequences(400, seed=3)
    counts = np.bincount(batch.answers.ravel() - FIRST_PLACE, minlength=64)
    assert counts.sum() == 12_800 and abs(counts - 200).max() < 70


def test_a_fact_may_stand_anywhere_in_the_context() -> None:
    batch = make_sequences(3_000, seq_len=16, num_facts=2, seed=1)
    assert set(batch.fact_positions.ravel().tolist()) == set(range(1, 9))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"num_sequences": 0}, "num_sequences"),
        ({"seq_len": 160}, "seq_len"),
        ({"seq_len": 512.0}, "seq_len"),
        ({"num_facts": 0}, "num_facts"),
        ({"num_facts": 129, "seq_len": 2048}, "num_facts"),
        ({"num_questions": 33}, "num_questions"),
        ({"num_questions": 0}, "num_questions"),
        ({"num_names": 129}, "num_names"),
        ({"num_names": 31}, "num_facts"),
        ({"seed": -1}, "seed"),
        ({"seed": "x"}, "seed"),
    ],
)
def test_a_request_that_cannot_be_met_is_refused_by_name(change: dict, named: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        make_sequences(**{"num_sequences": 1, **change})
    assert caught.value.argument == named


def test_an_id_outside_the_vocabulary_is_refused_by_the_rendering() -> None:
    with pytest.raises(InvalidArgument, match="ids=256"):
        render([1, 256])
