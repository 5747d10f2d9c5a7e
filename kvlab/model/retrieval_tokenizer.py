"""The word-level tokenizer of the retrieval language, and its readable rendering.

Upper case and the marks . , : ? are for people: the tokenizer drops them, so it reads a rendered
sequence back to the very same ids.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from kvlab.errors import InvalidArgument
from kvlab.model.retrieval_words import (
    BOS_ID,
    FIRST_NAME,
    FIRST_PLACE,
    PAD_ID,
    SPECIAL,
    UNK_ID,
    VOCAB_SIZE,
    WHERE_ID,
    WORDS,
)

if TYPE_CHECKING:
    from tokenizers import Tokenizer


def build_tokenizer() -> "Tokenizer":
    """Return the tokenizer; it puts `<s>` first, and gives `<unk>` for a word it does not know.

    >>> build_tokenizer().encode("Anna: Oslo. Where Anna?").tokens
    ['<s>', '<unk>', 'oslo', 'where', '<unk>']
    >>> build_tokenizer().encode("Ana: Oslo. Where Ana?").tokens
    ['<s>', 'ana', 'oslo', 'where', 'ana']
    """
    from tokenizers import AddedToken, Regex, Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.normalizers import Lowercase, Replace
    from tokenizers.normalizers import Sequence as InTurn
    from tokenizers.pre_tokenizers import WhitespaceSplit
    from tokenizers.processors import TemplateProcessing

    unk, bos = SPECIAL[UNK_ID], SPECIAL[BOS_ID]
    tokenizer = Tokenizer(WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token=unk))
    tokenizer.normalizer = InTurn([Lowercase(), Replace(Regex("[.,:?]"), " ")])
    tokenizer.pre_tokenizer = WhitespaceSplit()
    tokenizer.post_processor = TemplateProcessing(f"{bos} $A", f"{bos} $A $B", [(bos, BOS_ID)])
    tokenizer.add_special_tokens([AddedToken(t, normalized=False) for t in SPECIAL[:WHERE_ID]])
    return tokenizer


def save_tokenizer(folder: Path, max_seq_len: int) -> None:
    """Write `tokenizer.json` and `tokenizer_config.json`, as Hugging Face's libraries read them."""
    folder.mkdir(parents=True, exist_ok=True)
    build_tokenizer().save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": SPECIAL[BOS_ID],
        "pad_token": SPECIAL[PAD_ID],
        "unk_token": SPECIAL[UNK_ID],
        "model_max_length": max_seq_len,
        "clean_up_tokenization_spaces": False,
    }
    text = json.dumps(config, indent=2) + "\n"
    (folder / "tokenizer_config.json").write_text(text, encoding="utf-8")


def render(ids: Iterable[int]) -> str:
    """Return ids as text for people: a fact as `Ana: Oslo.`, a question as `Where Ana? Oslo.`

    >>> ids = build_tokenizer().encode("rain ana oslo the where ana oslo").ids
    >>> render(ids)
    'rain Ana: Oslo. the Where Ana? Oslo.'
    """
    numbers = [_checked_id(number) for number in ids]
    pairs = zip(numbers, [PAD_ID, *numbers], strict=False)  # each token, and the one before it
    return " ".join(_shown(number, before) for number, before in pairs if number > BOS_ID)


def _checked_id(number: int) -> int:
    if not 0 <= number < VOCAB_SIZE:
        raise InvalidArgument("ids", number, f"must be from 0 to {VOCAB_SIZE - 1}")
    return int(number)


def _shown(number: int, previous: int) -> str:
    word = WORDS[number]
    if number == WHERE_ID:
        return word.capitalize()
    if number >= FIRST_PLACE:
        return word.capitalize() + "."
    if number >= FIRST_NAME:
        return word.capitalize() + ("?" if previous == WHERE_ID else ":")
    return word
