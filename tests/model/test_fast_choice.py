"""The fastest path is measured once, remembered, and measured again when the memory is lost."""

import json
from collections.abc import Callable
from pathlib import Path
from time import sleep

import pytest
import torch
from torch import Tensor

from kvlab.cache import make_cache
from kvlab.model import fast_choice, fast_compile
from kvlab.model.fast_choice import choices_file, choose, remembered, time_in_turn
from kvlab.model.fast_llama import FastLlama
from kvlab.model.fast_prefill import WAYS
from kvlab.model.llama import Llama


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep choices in a folder of this test's own."""
    monkeypatch.setenv("KVLAB_HOME", str(tmp_path))
    return tmp_path


class Way:
    """A way that takes as long as it is told, and counts how often it was gone."""

    def __init__(self, seconds: float, shift: float = 0.0) -> None:
        self.seconds, self.shift, self.calls = seconds, shift, 0

    def __call__(self) -> Tensor:
        self.calls += 1
        sleep(self.seconds)
        return torch.tensor([[[1.0, 2.0 + self.shift]]])


def test_the_fastest_way_is_taken_and_remembered() -> None:
    ways = {"slow": Way(0.02), "quick": Way(0.0)}
    assert choose("here", ways) == "quick"
    assert remembered("here", ways) == "quick"
    assert remembered("there", ways) is None
    assert remembered("here", ["slow"]) is None  # a way that can't be taken any more


def test_a_way_that_computes_something_else_is_never_taken() -> None:
    assert choose("here", {"right": Way(0.02), "wrong": Way(0.0, shift=0.5)}) == "right"


def test_a_second_choice_leaves_the_first_one_kept() -> None:
    choose("one", {"a": Way(0.0)})
    choose("two", {"b": Way(0.0)})
    assert remembered("one", ["a"]) == "a" and remembered("two", ["b"]) == "b"
    assert [p.name for p in choices_file().parent.iterdir()] == ["choices.json"]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"here": 3}', '{"here": {"path": 7}}', "\x00" * 9, "[" * 9999]
)
def test_a_damaged_file_is_measured_over(text: str) -> None:
    choices_file().parent.mkdir(parents=True)
    choices_file().write_text(text, encoding="utf-8")
    ways = {"only": Way(0.0)}
    assert remembered("here", ways) is None
    assert choose("here", ways) == "only"
    assert json.loads(choices_file().read_text(encoding="utf-8"))["here"]["path"] == "only"


def test_where_nothing_can_be_kept_the_choice_still_holds(home: Path) -> None:
    (home / "fast").write_text("a file where the folder should be", encoding="utf-8")
    assert choose("here", {"only": Way(0.0)}) == "only"


def test_ways_take_turns() -> None:
    ways = {"a": Way(0.0), "b": Way(0.0)}
    assert set(time_in_turn(ways, rounds=3)) == {"a", "b"}
    assert (ways["a"].calls, ways["b"].calls) == (3, 3)


def test_a_machine_with_other_threads_chooses_anew(make_llama) -> None:  # type: ignore[no-untyped-def]
    config, cpu, threads = make_llama().config, torch.device("cpu"), torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = fast_choice.choice_key(config, cpu)
        torch.set_num_threads(2)
        assert fast_choice.choice_key(config, cpu) != one
    finally:
        torch.set_num_threads(threads)


@pytest.mark.skipif(fast_compile.find_compiler() is None, reason="needs a C compiler")
def test_a_model_worth_measuring_is_measured_once(make_llama, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    from kvlab.model.fast_decode import FastLlama

    monkeypatch.setattr(fast_choice, "SMALL", 0)
    llama = make_llama()
    first = FastLlama(llama).path
    kept = json.loads(choices_file().read_text(encoding="utf-8"))
    (choice,) = kept.values()
    assert set(choice["ms"]) == {"plain", "packed", "float32"} and choice["path"] == first
    monkeypatch.setattr(fast_choice, "choose", lambda *_: pytest.fail("measured again"))
    assert FastLlama(llama).path == first


@pytest.mark.skipif(fast_compile.find_compiler() is None, reason="needs a C compiler")
def test_the_way_through_a_long_prompt_is_measured_once(
    make_llama: Callable[..., Llama], monkeypatch: pytest.MonkeyPatch
) -> None:
    llama = make_llama(vocab_size=fast_choice.SMALL // 32, max_position_embeddings=256)
    fast, ids = FastLlama(llama, path="float32"), torch.arange(150)[None]
    cache = make_cache("preallocated", num_layers=2, capacity=150)
    found = fast(ids, cache=cache, last_token_only=True)
    assert torch.allclose(found, llama(ids, last_token_only=True), atol=1e-4)
    kept = json.loads(choices_file().read_text(encoding="utf-8"))
    (key,) = (key for key in kept if key.endswith(" float32 prefill"))
    assert kept[key]["path"] == fast.prefill_way and set(kept[key]["ms"]) == set(WAYS)
    words = {"library": "by the library in float32", "native": "by the same C in float32"}
    assert fast.describe().endswith(words[fast.prefill_way])
    monkeypatch.setattr(fast_choice, "choose", lambda *_: pytest.fail("measured again"))
    assert FastLlama(llama, path="float32").describe() == fast.describe()
