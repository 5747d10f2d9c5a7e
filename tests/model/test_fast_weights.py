"""The fast path computes with the weights of now, and only with weights that it can read."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from kvlab.cache import make_cache
from kvlab.errors import InvalidArgument, Unsupported
from kvlab.model import fast_choice, fast_compile
from kvlab.model.fast_decode import PATHS, FastDecoder, FastLlama
from kvlab.model.fast_llama import fast_model, paged_model
from kvlab.model.fast_weights import forget_weights
from kvlab.model.llama import Llama
from kvlab.model.load import load_model

MakeLlama = Callable[..., Llama]
COMPILED = pytest.mark.skipif(fast_compile.find_compiler() is None, reason="needs a C compiler")
IDS = torch.arange(100)[None] % 61


def of_few_bits(make_llama: MakeLlama) -> Llama:
    """Return a model whose "packed" path is a copy: its weights fit into bfloat16."""
    llama = make_llama(intermediate_size=64)
    for weight in llama.parameters():
        weight.data.copy_(weight.data.bfloat16().float())
    return llama


def answers(model: "Llama | FastLlama", prompt: int) -> Tensor:
    """Return logits of a prompt and of one step behind it, (1, 2, vocab_size)."""
    cache = make_cache("preallocated", num_layers=2, capacity=101)
    with torch.no_grad():
        first = model(IDS[:, :prompt], cache=cache, last_token_only=True)
        return torch.cat([first, model(IDS[:, -1:], cache=cache)], dim=1)


def agree(model: FastLlama, prompt: int) -> bool:
    expected = answers(model.llama, prompt)
    return bool(torch.allclose(answers(model, prompt), expected, atol=1e-4))


def scaled_through_data(llama: Llama) -> None:
    for weight in llama.parameters():
        weight.data.mul_(1.5)


def scaled_in_place(llama: Llama) -> None:
    with torch.no_grad():
        for weight in llama.parameters():
            weight.mul_(1.5)


def another_parameter(llama: Llama) -> None:
    llama.lm_head.weight = torch.nn.Parameter(llama.lm_head.weight.detach() * 2)


CHANGES = [scaled_through_data, scaled_in_place, another_parameter]


@COMPILED
@pytest.mark.parametrize("path", ["packed", "float32"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_new_object_has_the_weights_of_now(
    make_llama: MakeLlama, path: str, change: Callable[[Llama], None]
) -> None:
    llama = of_few_bits(make_llama)
    first = FastLlama(llama, path=path)
    assert FastLlama(llama, path=path).native is first.native  # made once
    change(llama)
    assert agree(FastLlama(llama, path=path), 5)


@COMPILED
@pytest.mark.parametrize("path", ["packed", "float32"])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("prompt", [1, 5, 100])
def test_an_old_object_is_one_model_after_its_next_prompt(
    make_llama: MakeLlama, path: str, change: Callable[[Llama], None], prompt: int
) -> None:
    llama = of_few_bits(make_llama)
    fast = FastLlama(llama, path=path)
    assert agree(fast, prompt)
    change(llama)
    if change is scaled_through_data and prompt < 100:
        forget_weights(llama)  # a short pass does not see this; a long one does
    assert agree(fast, prompt)


@COMPILED
def test_an_old_object_goes_the_lessons_way_where_the_dtype_became_another(
    make_llama: MakeLlama,
) -> None:
    fast = FastLlama(make_llama(), path="packed")
    fast.llama.double()
    assert agree(fast, 1) and fast.path == "plain"


# -- weights that the C can't read ------------------------------------------------------------

MIXED = {
    "embedding": ("model.embed_tokens", torch.bfloat16),
    "a layer": ("model.layers.1", torch.bfloat16),
    "a norm": ("model.norm", torch.float64),
}


@pytest.mark.parametrize(("part", "dtype"), MIXED.values(), ids=MIXED)
def test_one_weight_of_another_dtype_is_refused(
    make_llama: MakeLlama, part: str, dtype: torch.dtype
) -> None:
    llama = make_llama()
    llama.get_submodule(part).to(dtype)
    for path in ("packed", "float32"):
        with pytest.raises(Unsupported, match=rf"float32 on the CPU, and {part}.* is .*float"):
            FastLlama(llama, path=path)
    assert FastLlama(llama).path == "plain"
    assert paged_model(llama) is llama


@COMPILED
@pytest.mark.parametrize("positions", [1, 2, 20])
def test_a_model_of_few_positions_can_be_measured(
    make_llama: MakeLlama, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, positions: int
) -> None:
    monkeypatch.setenv("KVLAB_HOME", str(tmp_path))
    monkeypatch.setattr(fast_choice, "SMALL", 0)
    assert FastLlama(make_llama(max_position_embeddings=positions)).path in PATHS


@COMPILED
def test_where_the_logits_are_no_numbers_the_plain_path_is_taken(
    make_llama: MakeLlama, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KVLAB_HOME", str(tmp_path))
    monkeypatch.setattr(fast_choice, "SMALL", 0)
    llama = make_llama()
    llama.lm_head.weight.data.fill_(float("nan"))
    assert FastLlama(llama).path == "plain"
    assert not fast_choice.choices_file().exists()  # the next model of this size is measured


# -- what is no model, no tokens; copies ------------------------------------------------------


@pytest.mark.parametrize("what", ["None", "name", "loaded", "fast"])
def test_what_is_no_llama_is_named(make_llama: MakeLlama, what: str) -> None:
    given = {
        "None": lambda: None,
        "name": lambda: "tiny",
        "loaded": lambda: load_model("tiny", device="cpu"),
        "fast": lambda: FastLlama(make_llama(), path="plain"),
    }[what]()
    with pytest.raises(InvalidArgument, match=r"llama=.*: must be a Llama, such as load_model"):
        FastDecoder(given, max_seq_len=8)
    if what != "fast":
        with pytest.raises(InvalidArgument, match=r"llama=.*: must be a Llama"):
            fast_model(given, "preallocated")


@pytest.mark.parametrize("ids", [None, [1, 2], torch.tensor(3), torch.tensor([3])], ids=repr)
def test_what_are_no_rows_of_tokens_is_named(make_llama: MakeLlama, ids: object) -> None:
    decoder = FastDecoder(make_llama(), max_seq_len=8, path="plain")
    with pytest.raises(InvalidArgument, match=r"input_ids=.*: must be \(1, tokens\)"):
        decoder.prefill(ids)
    with pytest.raises(InvalidArgument, match=r"token_ids=.*: must be \(1, 1\)"):
        decoder.step(ids)


@COMPILED
@pytest.mark.parametrize("again", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_goes_on_with_weights_and_cache_of_its_own(
    make_llama: MakeLlama, again: Callable[[FastDecoder], FastDecoder]
) -> None:
    decoder = FastDecoder(of_few_bits(make_llama), max_seq_len=20, path="packed")
    decoder.prefill(IDS[:, :9])
    other = again(decoder)
    expected = decoder.step(IDS[:, 9:10])
    scaled_in_place(decoder.llama)
    assert other.native is not decoder.native
    assert torch.equal(other.step(IDS[:, 9:10]), expected)
