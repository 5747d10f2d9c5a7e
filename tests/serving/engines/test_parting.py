"""Where an engine's answer leaves ours: the first difference only, with the gap in logits."""

import pytest
import torch

from kvlab.errors import InvalidArgument
from kvlab.model.decode import generate
from kvlab.model.load import LoadedModel, load_model
from kvlab.serving.engine import Answer
from kvlab.serving.engines.parting import partings
from kvlab.serving.request import Request, prompt


@pytest.fixture(scope="module")
def tiny() -> LoadedModel:
    return load_model("tiny", device="cpu")


def greedy(loaded: LoadedModel, ids: torch.Tensor, count: int) -> list[int]:
    return [step.token_id for step in generate(loaded.model, ids, max_new_tokens=count)]


@pytest.mark.parametrize("index", [0, 3, 7])
def test_the_first_token_that_is_not_ours_is_found_with_its_gap(
    tiny: LoadedModel, index: int
) -> None:
    ids = tiny.encode("the key of")
    ours = greedy(tiny, ids, 8)
    theirs = [*ours[:index], (ours[index] + 1) % tiny.model.config.vocab_size, *[9] * (7 - index)]
    asked = [prompt(5, ids[0].tolist(), 8)]
    (found,) = partings(tiny.model, asked, {5: Answer(theirs, "length", None)})
    assert found is not None
    assert (found.request_id, found.index, found.ours) == (5, index, ours[index])
    logits = tiny.model(torch.tensor([[*ids[0].tolist(), *ours[:index]]]))[0, -1]
    gap = float(logits[ours[index]] - logits[theirs[index]])
    assert found.theirs == theirs[index] and found.gap == pytest.approx(gap, abs=1e-4)
    assert found.largest == pytest.approx(float(logits.abs().max()), abs=1e-4)


def test_equal_answers_part_nowhere_and_unanswered_requests_are_left_out(
    tiny: LoadedModel,
) -> None:
    ids = tiny.encode("the key of")
    asked = [prompt(n, ids[0].tolist(), 6) for n in range(3)]
    answers = {0: Answer(greedy(tiny, ids, 6), "length", None), 2: Answer([], "aborted", None)}
    assert list(partings(tiny.model, asked, answers)) == [None, None]


def test_a_prompt_known_by_its_length_alone_is_refused(tiny: LoadedModel) -> None:
    asked = [Request(4, prompt_tokens=3, max_new_tokens=2)]
    with pytest.raises(InvalidArgument, match="request 4: prompt_ids=None"):
        list(partings(tiny.model, asked, {4: Answer([1], "length", None)}))
