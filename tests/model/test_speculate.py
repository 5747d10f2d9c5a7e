"""Speculative decoding writes what greedy decoding writes, whoever guesses, and rolls back."""

from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlab.cache import make_cache
from kvlab.course.checks_04_accept import accept as course_accept
from kvlab.errors import CacheFull, InvalidArgument
from kvlab.model.config import LlamaConfig
from kvlab.model.decode import generate
from kvlab.model.llama import Llama
from kvlab.model.speculate import ModelDraft, NGramDraft, accept, first_layers, speculate

PROMPT = [3, 1, 4, 1, 5, 9, 3, 1]
SIZES = {"num_heads": 4, "num_kv_heads": 2, "head_dim": 8}
SIZES |= {"hidden_size": 32, "intermediate_size": 48}


def llama(num_layers: int = 3, seed: int = 0) -> Llama:
    config = LlamaConfig(num_layers=num_layers, vocab_size=17, max_seq_len=64, **SIZES)
    return Llama(config).init_weights(seed, std=0.3).eval()


MODEL = llama()


def greedy(new: int, prompt: Sequence[int] = PROMPT) -> list[int]:
    return [step.token_id for step in generate(MODEL, prompt, max_new_tokens=new)]


class Oracle:
    """Guesses right except at some places, counted from the first emitted token."""

    def __init__(self, wrong: Sequence[int] = ()) -> None:
        self.wrong = set(wrong)

    def propose(self, text: Sequence[int], count: int) -> list[int]:
        done = len(text) - len(PROMPT)
        known = greedy(done + count)[done:]
        return [t + (i + done in self.wrong) - 17 * (t == 16) * (i + done in self.wrong)
                for i, t in enumerate(known)]  # fmt: skip


DRAFTS = {
    "n-gram": lambda: NGramDraft(1),
    "other model": lambda: ModelDraft(llama(1, seed=7)),
    "first layer": lambda: ModelDraft(first_layers(MODEL, 1)),
    "the model itself": lambda: ModelDraft(first_layers(MODEL, 3)),
    "always right": lambda: Oracle(),
    "sometimes wrong": lambda: Oracle([1, 2, 7, 11]),
    "silent": lambda: type("Silent", (), {"propose": lambda self, text, count: []})(),
}


@pytest.mark.parametrize("kind", DRAFTS)
@pytest.mark.parametrize("lookahead", [1, 2, 5])
@pytest.mark.parametrize("new", [1, 2, 13])
def test_what_comes_out_is_greedy(kind: str, lookahead: int, new: int) -> None:
    run = speculate(MODEL, PROMPT, DRAFTS[kind](), max_new_tokens=new, lookahead=lookahead)
    rounds = list(run)
    assert [token for r in rounds for token in r.emitted] == greedy(new)
    assert rounds[-1].rows == len(PROMPT) + new - 1
    assert all(len(r.emitted) == r.accepted + 1 for r in rounds)
    assert all(r.rows_dropped == len(r.proposed) - r.accepted for r in rounds)


def test_right_guesses_save_passes_and_no_guess_saves_none() -> None:
    passes = {
        kind: len(list(speculate(MODEL, PROMPT, DRAFTS[kind](), max_new_tokens=13, lookahead=3)))
        for kind in ("always right", "the model itself", "silent")
    }
    assert passes == {"always right": 4, "the model itself": 4, "silent": 13}


def test_the_cache_ends_as_greedy_decoding_leaves_it() -> None:
    cache, plain = (make_cache("growing", num_layers=3) for _ in range(2))
    draft = Oracle([1, 4, 5])
    rounds = list(speculate(MODEL, PROMPT, draft, max_new_tokens=12, lookahead=4, cache=cache))
    list(generate(MODEL, PROMPT, max_new_tokens=12, cache=plain))
    assert sum(r.rows_dropped for r in rounds) > 0
    for ours, theirs in zip(cache.layers, plain.layers, strict=True):
        torch.testing.assert_close(ours.keys, theirs.keys, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(ours.values, theirs.values, atol=1e-5, rtol=1e-5)


def test_a_preallocated_cache_needs_no_more_room_than_greedy() -> None:
    cache = make_cache("preallocated", num_layers=3, capacity=len(PROMPT) + 9 - 1)
    rounds = list(speculate(MODEL, PROMPT, Oracle(), max_new_tokens=9, lookahead=8, cache=cache))
    assert [token for r in rounds for token in r.emitted] == greedy(9)
    small = make_cache("preallocated", num_layers=3, capacity=len(PROMPT))
    with pytest.raises(CacheFull):
        speculate(MODEL, PROMPT, Oracle(), max_new_tokens=9, cache=small)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.integers(0, 16), max_size=5), min_size=1, max_size=4))
def test_the_draft_cache_holds_the_text_whatever_was_rejected(texts: list[list[int]]) -> None:
    draft, text = ModelDraft(first_layers(MODEL, 2)), list(PROMPT)
    for more in texts:
        guesses = draft.propose(text, 3)
        fresh = ModelDraft(first_layers(MODEL, 2)).propose(text, 3)
        assert guesses == fresh
        assert draft.cache.get_seq_length() == len(draft.seen)
        text += more


@given(st.lists(st.integers(0, 2), max_size=5), st.lists(st.integers(0, 2), min_size=6, max_size=6))
def test_accept_emits_a_prefix_of_what_the_model_chose(
    proposed: list[int], chosen: list[int]
) -> None:
    chosen = chosen[: len(proposed) + 1]
    emitted, dropped = accept(proposed, chosen)
    assert emitted == chosen[: len(emitted)]
    assert len(emitted) + dropped == len(proposed) + 1
    assert (emitted, dropped) == course_accept(proposed, chosen)


def test_a_draft_model_never_holds_its_last_guess() -> None:
    draft = ModelDraft(first_layers(MODEL, 1))
    guesses = draft.propose(PROMPT, 3)
    assert len(guesses) == 3 and draft.seen == PROMPT + guesses[:2]


def test_first_layers_shares_every_weight() -> None:
    draft = first_layers(MODEL, 2)
    theirs = {p.data_ptr() for p in MODEL.parameters()}
    assert {p.data_ptr() for p in draft.parameters()} <= theirs
    whole = first_layers(MODEL, 3)(torch.tensor([PROMPT]))
    torch.testing.assert_close(whole, MODEL(torch.tensor([PROMPT])))


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("num_layers", lambda: first_layers(MODEL, 4)),
        ("lookahead", lambda: speculate(MODEL, PROMPT, Oracle(), max_new_tokens=2, lookahead=0)),
        ("max_new_tokens", lambda: speculate(MODEL, PROMPT, Oracle(), max_new_tokens=0)),
        ("input_ids", lambda: speculate(MODEL, [PROMPT] * 2, Oracle(), max_new_tokens=2)),
    ],
)
def test_bad_arguments_are_named_before_anything_runs(argument: str, call) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidArgument) as caught:
        call()
    assert caught.value.argument == argument
