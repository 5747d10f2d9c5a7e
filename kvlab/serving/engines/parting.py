"""Where the answer of an engine leaves what our own model would have written, and how near a tie.

One pass over prompt and answer tells at each place which token our model puts first there. Up to
the first difference that is what it would have written itself; later ones say nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kvlab.errors import InvalidArgument

if TYPE_CHECKING:
    from torch import Tensor

    from kvlab.model.llama import Llama
    from kvlab.serving.request import Request


class Answered(Protocol):
    """What an engine wrote for one request."""

    @property
    def token_ids(self) -> Sequence[int]:
        """The tokens of the answer, without the prompt."""


class Parting(NamedTuple):
    """The first token of an answer that is not ours: its index, both tokens, two logits.

    `gap` is by how much our model prefers its own token there, `largest` the largest |logit|.
    """

    request_id: int
    index: int
    ours: int
    theirs: int
    gap: float
    largest: float


def partings(
    model: Llama, requests: Sequence[Request], answers: Mapping[int, Answered]
) -> Iterator[Parting | None]:
    """Yield for each answered request where it leaves our greedy answer; None where nowhere.

    Raises `InvalidArgument` for a request whose prompt is known by its length alone.

    >>> from kvlab.model.load import load_model
    >>> from kvlab.model.decode import generate
    >>> from kvlab.serving.engine import Answer
    >>> from kvlab.serving.request import prompt
    >>> loaded = load_model("tiny", device="cpu")
    >>> ids = loaded.encode("the key of")
    >>> ours = [step.token_id for step in generate(loaded.model, ids, max_new_tokens=4)]
    >>> asked = [prompt(0, ids[0].tolist(), 4)]
    >>> list(partings(loaded.model, asked, {0: Answer(ours, "length", None)}))
    [None]
    """
    for request in requests:
        if request.request_id in answers:
            yield _parting(model, request, list(answers[request.request_id].token_ids))


def _parting(model: Llama, request: Request, answer: list[int]) -> Parting | None:
    import torch

    if request.prompt_ids is None:
        where = f"request {request.request_id}: prompt_ids"
        raise InvalidArgument(where, None, "our model needs the tokens of the prompt")
    if not answer:
        return None
    ids = torch.tensor([[*request.prompt_ids, *answer[:-1]]], device=model.lm_head.weight.device)
    with torch.no_grad():
        logits: Tensor = model(ids)[0, request.prompt_tokens - 1 :].float()
    differs = (logits.argmax(-1).cpu() != torch.tensor(answer)).nonzero()
    if not len(differs):
        return None
    index = int(differs[0])
    row, theirs = logits[index], answer[index]
    gap = float(row.max() - row[theirs])
    return Parting(
        request.request_id, index, int(row.argmax()), theirs, gap, float(row.abs().max())
    )
