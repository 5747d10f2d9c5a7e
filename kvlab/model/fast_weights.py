"""The weights that the C reads, and whether they are still those of the model.

One rule for all objects: a model has one copy a path, and every `FastLlama` of that model looks
at it when it is made, at an empty cache and at each pass of more than one token. A weight with
another address, version or dtype makes a new copy. Training, loading and `mul_` raise the version;
writing through `.data` does not, so about 16 numbers of each weight are compared too, where one is
made and in passes that read the model beside the copy (more than `MANY` tokens).

What remains: single steps after a change go on with the old weights until the next such look, and
a change through `.data` of few numbers is not seen. After one, make a new `Llama`, or call
`forget_weights`.
"""

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from kvlab.errors import InvalidArgument, Unsupported
from kvlab.model.fast_native import NativeLlama
from kvlab.model.llama import Llama

NARROW = {"packed": True, "float32": False}
SAMPLED = 16  # numbers of a weight that are compared, about

Mark = tuple[int, int, torch.dtype]


@dataclass(frozen=True)
class _Made:
    """What was made, and how the weights were when it was."""

    marks: list[Mark]
    sample: Tensor
    native: NativeLlama


_made: "WeakKeyDictionary[Llama, dict[str, _Made]]" = WeakKeyDictionary()


def check_llama(llama: object) -> None:
    """Raise `InvalidArgument` where something else than a `Llama` was given."""
    if not isinstance(llama, Llama):
        rule = "must be a Llama, such as load_model('tiny').model"
        raise InvalidArgument("llama", llama, rule)


def why_not(llama: Llama) -> str | None:
    """Return why the C can't read a model's weights; None where all are float32 on the CPU.

    >>> from kvlab.model.load import load_model
    >>> why_not(load_model("tiny", device="cpu", dtype="bfloat16").model)
    'is for float32 on the CPU, and model.embed_tokens.weight is bfloat16 on cpu'
    """
    for name, weight in llama.named_parameters():
        if weight.dtype != torch.float32 or weight.device.type != "cpu":
            kind = f"{str(weight.dtype)[6:]} on {weight.device.type}"
            return f"is for float32 on the CPU, and {name} is {kind}"
    return None


def native_of(llama: Llama, path: str, *, sampled: bool = True) -> NativeLlama:
    """Return the weights for the C, made anew where those of the model are others by now.

    `sampled=False` compares addresses, versions and dtypes alone. Raises `Unsupported` where the
    weights are not all float32 on the CPU, or the C can't be compiled.
    """
    marks, made = _marks(llama), _made.setdefault(llama, {})
    kept = made.get(path)
    if kept is not None and kept.marks == marks:
        same = not sampled or torch.equal(kept.sample, _sample(llama))
        if same:
            return kept.native
    made.pop(path, None)
    reason = why_not(llama)
    if reason is not None:
        raise Unsupported(f"path={path!r}: {reason}")
    native = NativeLlama(llama, narrow=NARROW[path])
    made[path] = _Made(marks, _sample(llama), native)
    return native


def forget_weights(llama: Llama) -> None:
    """Drop what was made of a model's weights; the next look makes it anew."""
    _made.pop(llama, None)


def _marks(llama: Llama) -> list[Mark]:
    return [
        (p.data_ptr(), 0 if p.is_inference() else p._version, p.dtype) for p in llama.parameters()
    ]


def _sample(llama: Llama) -> Tensor:
    """An odd stride meets other columns in each row; bits are compared, so NaN equals NaN."""
    parts = [p.detach().flatten()[:: p.numel() // SAMPLED | 1] for p in llama.parameters()]
    return torch.cat(parts).view(torch.int32)
