"""On the real checkpoint the fast path writes the lesson's tokens, with the lesson's logits.

The full version, 20 prompts x 64 tokens, runs with KVLAB_TEST_FULL=1.
"""

import os

import pytest

from kvlab.model import fast_compile
from kvlab.model.decode import generate
from kvlab.model.fast_decode import FastLlama
from kvlab.model.load import LoadedModel, load_model
from kvlab.model.sample_text import sample_ids
from kvlab.model.weights import is_available

pytestmark = [
    pytest.mark.weights,
    pytest.mark.skipif(not is_available("smollm2"), reason="run `kvlab fetch smollm2`"),
    pytest.mark.skipif(fast_compile.find_compiler() is None, reason="needs a C compiler"),
]
PATHS = ["packed", "float32"]
PROMPTS = """
The capital of France is
Once upon a time
The sun rises in the
def add(a, b):
Water boils at
My favourite book is about
In 1969, humans
The best way to learn is
A triangle has
She opened the door and
To bake bread you need
Dear Sir or Madam,
The quick brown fox
Two plus two equals
Music is
The largest planet is
If it rains tomorrow,
Computers work by
He said that the
Our story begins in a small village where
""".strip().splitlines()


@pytest.fixture(scope="module")
def loaded() -> LoadedModel:
    return load_model("smollm2", device="cpu")


def assert_same(loaded: LoadedModel, path: str, prompt: object, new: int) -> None:
    """Hold tokens equal, and each step's logits within 1e-5 x the largest of them."""
    options = {"max_new_tokens": new, "keep_logits": True}
    steps = list(generate(loaded.model, prompt, **options))
    fast = FastLlama(loaded.model, path=path)
    found = list(generate(fast, prompt, cache="preallocated", **options))
    assert [s.token_id for s in found] == [s.token_id for s in steps]
    for ours, theirs in zip(found, steps, strict=True):
        error = (ours.logits - theirs.logits).abs().max() / theirs.logits.abs().max()
        assert float(error) < 1e-5


@pytest.mark.parametrize("path", PATHS)
def test_smollm2_writes_the_same_tokens(loaded: LoadedModel, path: str) -> None:
    for count in (3, 40, 150):
        assert_same(loaded, path, sample_ids(loaded, count), 16)


@pytest.mark.skipif(not os.environ.get("KVLAB_TEST_FULL"), reason="only with KVLAB_TEST_FULL=1")
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("prompt", PROMPTS)
def test_twenty_prompts_and_sixty_four_tokens_are_the_same(
    loaded: LoadedModel, path: str, prompt: str
) -> None:
    assert_same(loaded, path, loaded.encode(prompt), 64)
