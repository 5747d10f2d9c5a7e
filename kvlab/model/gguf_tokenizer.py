"""A byte-level BPE tokenizer in a GGUF file, written as `tokenizer.json`.

The file names its rule for cutting text (`tokenizer.ggml.pre`) but does not hold it. One rule is
known here: `smollm`, where every digit is a piece of its own, then the rule of GPT-2.
"""

from collections.abc import Callable
from typing import Any

from kvlab.errors import Unsupported

_CONTROL = 3  # GGUF's token type for special tokens


def tokenizer_files(value: Callable[[str], Any]) -> dict[str, dict[str, Any]]:
    """Return the contents of `tokenizer.json` and `tokenizer_config.json`.

    `value(key)` reads one metadata value of the GGUF. Raises `Unsupported` for another rule.
    """
    kind, rule = value("tokenizer.ggml.model"), value("tokenizer.ggml.pre")
    if (kind, rule) != ("gpt2", "smollm"):
        raise Unsupported(
            f"tokenizer {kind!r} with rule {rule!r}: kvlab reads 'gpt2' with 'smollm'"
        )
    tokens: list[str] = value("tokenizer.ggml.tokens")
    types: list[int] = value("tokenizer.ggml.token_type")
    special = [number for number, kind in enumerate(types) if kind == _CONTROL]
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_added(number, tokens[number]) for number in special],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [{"type": "Digits", "individual_digits": True}, _byte_level()],
        },
        "post_processor": None,
        "decoder": _byte_level(),
        "model": _bpe(tokens, value("tokenizer.ggml.merges")),
    }
    return {"tokenizer.json": tokenizer, "tokenizer_config.json": _config(value, tokens)}


def _bpe(tokens: list[str], merges: list[str]) -> dict[str, Any]:
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
        "vocab": {token: number for number, token in enumerate(tokens)},
        "merges": [merge.split(" ", 1) for merge in merges],
    }


def _config(value: Callable[[str], Any], tokens: list[str]) -> dict[str, Any]:
    names = {"bos": "bos", "eos": "eos", "pad": "padding", "unk": "unknown"}
    ids = {name: value(f"tokenizer.ggml.{key}_token_id") for name, key in names.items()}
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        "add_prefix_space": False,
        "add_bos_token": bool(value("tokenizer.ggml.add_bos_token")),
        "model_max_length": value("llama.context_length"),
        **{f"{name}_token": tokens[number] for name, number in ids.items() if number is not None},
        "chat_template": value("tokenizer.chat_template"),
    }


def _byte_level() -> dict[str, Any]:
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}


def _added(number: int, content: str) -> dict[str, Any]:
    plain = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": number, "content": content, **plain, "special": True}
