"""What is asked of a real engine: loads with a question behind each, always the same requests.

Prompts of our own text test sizes and times; the two sets of prompts with facts test quality.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from kvlab._paths import data_dir
from kvlab.errors import ModelUnavailable
from kvlab.serving.engines.models import model_folder, vocab_size_of
from kvlab.serving.engines.real_ids import real_id
from kvlab.serving.request import Request, prompt
from kvlab.serving.workloads import make_requests, poisson_arrivals

THINGS = ("door", "boat", "garden", "bicycle", "library", "kitchen", "window", "bridge")
COLOURS = ("blue", "green", "red", "yellow", "white", "black", "brown", "grey")
PLACES = (
    "The harbour is quiet in the morning, and the boats lie side by side.",
    "Bread is baked twice a day, and the smell fills the whole street.",
    "The tide comes in slowly here, and nobody hurries to move the nets.",
    "A letter takes three days, or five when the mountain road is closed.",
)


def twelve_at_once(model: str = "smollm2") -> list[Request]:
    """Twelve prompts of 512 tokens, each its own, each with an answer of 200 tokens."""
    return [prompt(i, text_ids(model, 200 * i, 512), 200) for i in range(12)]


def one_prompt_again(model: str = "smollm2", times: int = 3) -> list[Request]:
    """The same prompt of 512 tokens, `times` times, for 8 tokens each."""
    return [prompt(i, text_ids(model, 0, 512), 8) for i in range(times)]


def shared_start(model: str = "smollm2", times: int = 4) -> list[Request]:
    """Prompts that share their first 512 tokens and have 40 of their own, for 8 tokens each."""
    start = text_ids(model, 1000, 512)
    return [prompt(i, start + text_ids(model, 300 * i, 40), 8) for i in range(times)]


def growing_prompts(model: str, lengths: Sequence[int], new: int = 24) -> list[Request]:
    """One prompt of each length, for `new` tokens each: to be sent one after the other."""
    return [prompt(i, text_ids(model, 17 * i, n), new) for i, n in enumerate(lengths)]


def waves(model: str = "smollm2", count: int = 16) -> list[Request]:
    """Requests that come and go in waves of 4, 3 seconds apart."""
    made = make_requests(
        count,
        prompt_tokens="uniform:100:400",
        output_tokens="uniform:20:60",
        arrivals=[3.0 * (i // 4) for i in range(count)],
        seed=5,
    )
    return _of_text(model, made)


def arriving(model: str = "smollm2", count: int = 16, rate: float = 0.6) -> list[Request]:
    """Prompts of 64 to 512 tokens that arrive one by one, for 32 to 96 tokens each."""
    made = make_requests(
        count,
        prompt_tokens="uniform:64:512",
        output_tokens="uniform:32:96",
        arrivals=poisson_arrivals(rate, seed=3),
        seed=3,
    )
    return _of_text(model, made)


def text_ids(model: str, start: int, count: int) -> list[int]:
    """Return `count` tokens of our own text from token `start` on, from the beginning at its end.

    A model that does not read English gets made-up text of its own vocabulary.
    """
    whole = _whole_text(model)
    return [whole[i % len(whole)] for i in range(start, start + count)]


def _of_text(model: str, made: Iterable[Request]) -> list[Request]:
    """Give requests known by their lengths a text each."""
    return [
        replace(request, prompt_ids=text_ids(model, 311 * index, request.prompt_tokens))
        for index, request in enumerate(made)
    ]


@lru_cache(maxsize=4)
def _whole_text(model: str) -> tuple[int, ...]:
    if model != "smollm2":
        return tuple(real_id(number, vocab_size_of(model)) for number in range(2764))
    files = sorted((data_dir() / "text").glob("*.txt"))
    text = "\n\n".join(path.read_text(encoding="utf-8") for path in files)
    return tuple(_reader(model).encode(text, add_special_tokens=False).ids)


@lru_cache(maxsize=4)
def _reader(model: str) -> Any:
    """Return a model's tokenizer; it is never fetched for this, a replay needs no network."""
    from tokenizers import Tokenizer

    from kvlab.model.weights import is_available

    if model == "smollm2" and not is_available(model):
        raise ModelUnavailable("SmolLM2 is not here: run kvlab fetch smollm2")
    return Tokenizer.from_file(str(model_folder(model) / "tokenizer.json"))


@lru_cache(maxsize=1)
def code_questions(count: int = 50) -> tuple[tuple[str, str], ...]:
    """Return (prompt, code): a text with two codes in it, and a question about one of them.

    >>> text, code = code_questions()[0]
    >>> code in text, len(code_questions())
    (True, 50)
    """
    draw = random.Random("codes")
    asked = []
    for _ in range(count):
        things = draw.sample([f"{c} {t}" for c in COLOURS for t in THINGS], 2)
        codes = [str(draw.randint(1000, 9999)) for _ in things]
        facts = [f"The code of the {t} is {c}." for t, c in zip(things, codes, strict=True)]
        story = draw.sample(PLACES, 3)
        lines = [story[0], facts[0], story[1], facts[1], story[2]]
        chosen = draw.randrange(2)
        text = " ".join(lines) + f"\nThe code of the {things[chosen]} is"
        asked.append((text, codes[chosen]))
    return tuple(asked)


def code_requests(model: str = "smollm2", count: int = 50) -> list[Request]:
    """The questions about codes as requests, for 12 tokens each."""
    reader = _reader(model)
    texts = [text for text, _ in code_questions()[:count]]
    return [
        prompt(index, reader.encode(text, add_special_tokens=False).ids, 12)
        for index, text in enumerate(texts)
    ]


def code_score(texts: Sequence[str]) -> int:
    """Return how many answers begin with the code that was asked for.

    >>> code_score([" " + code for _, code in code_questions()])
    50
    """
    pairs = zip(texts, code_questions(), strict=False)
    return sum(text.strip().startswith(code) for text, (_, code) in pairs)


def recall_requests(model: str = "tiny", count: int = 200) -> list[Request]:
    """Sequences of the tiny models' language, each cut before its last answer, for 1 token."""
    rows, _ = _recall_rows(count)
    return [prompt(index, row, 1) for index, row in enumerate(rows)]


def recall_score(token_ids: Sequence[Sequence[int]]) -> int:
    """Return how many answers are the fact that was asked for."""
    _, wanted = _recall_rows(max(200, len(token_ids)))
    pairs = zip(token_ids, wanted, strict=False)
    return sum(bool(ids) and ids[0] == right for ids, right in pairs)


@lru_cache(maxsize=2)
def _recall_rows(count: int) -> tuple[list[list[int]], list[int]]:
    from kvlab.model.retrieval_language import make_sequences

    made = make_sequences(count, seq_len=200, num_facts=16, num_questions=1, seed=11)
    rows = [list(map(int, row)) for row in made.input_ids]
    end = int(made.answer_positions[-1])
    return [row[:end] for row in rows], [row[end] for row in rows]
