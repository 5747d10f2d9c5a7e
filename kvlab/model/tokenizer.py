"""Text to token ids and back, by the `tokenizers` library and a folder's `tokenizer.json`.

Nothing of the folder is run: a tokenizer that needs its own code, or has no `tokenizer.json`, is
refused.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kvlab.arithmetic.checks import whole_number
from kvlab.errors import InvalidArgument, NotVerified, Unsupported


class Tokenizer:
    """A tokenizer: `encode`, `decode`, and the ids after which a model has finished."""

    def __init__(self, folder: str | Path) -> None:
        from tokenizers import Tokenizer as Backend

        path = Path(folder) / "tokenizer.json"
        if not path.is_file():
            raise Unsupported(f"{folder}: holds no tokenizer.json, the only tokenizer kvlab reads")
        try:
            self.backend = Backend.from_file(str(path))
        except Exception as error:  # the library raises plain Exception
            raise NotVerified(f"{path}: not a readable tokenizer ({error})") from None
        self.stop_ids = _stop_ids(Path(folder))

    @property
    def vocab_size(self) -> int:
        """Return the number of tokens, special ones included."""
        return self.backend.get_vocab_size()

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`; special tokens written in it count as such.

        A text that already begins with the start token does not get a second one. A character
        that the vocabulary lacks is dropped, as the model's own tokenizer does.
        """
        if not isinstance(text, str):
            raise InvalidArgument("text", text, "must be a string")
        try:
            ids = self.backend.encode(text).ids
            as_written = self.backend.encode(text, add_special_tokens=False).ids
        except Exception as error:  # a lone surrogate, which no UTF-8 can hold
            raise InvalidArgument("text", text, f"can't be tokenized ({error})") from None
        twice = bool(as_written) and ids[:2] == [as_written[0]] * 2 and ids[1:] == as_written
        return as_written if twice else ids

    def decode(self, ids: Iterable[int], *, skip_special: bool = True) -> str:
        """Return the text of the ids; a character whose bytes are not all there shows as U+FFFD."""
        numbers = [int(number) for number in ids]
        bad = [number for number in numbers if not 0 <= number < self.vocab_size]
        if bad:
            raise InvalidArgument("ids", bad[0], f"must be from 0 to {self.vocab_size - 1}")
        return self.backend.decode(numbers, skip_special_tokens=skip_special)


def _stop_ids(folder: Path) -> tuple[int, ...]:
    """Read `eos_token_id` from `generation_config.json`, else `config.json`; one id or many."""
    for name in ("generation_config.json", "config.json"):
        found = read_json(folder / name).get("eos_token_id") if (folder / name).is_file() else None
        if found is not None:
            several = found if isinstance(found, list) else [found]
            return tuple(whole_number("eos_token_id", one, minimum=0) for one in several)
    return ()


def read_json(path: Path) -> dict[str, Any]:
    """Return the one JSON object in a file; raises `InvalidArgument` naming the file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidArgument("file", path.name, f"is not in {path.parent}") from None
    except (OSError, ValueError, RecursionError) as error:
        rule = f"in {path.parent} is not a JSON file ({error})"
        raise InvalidArgument("file", path.name, rule) from None
    if not isinstance(content, dict):
        raise InvalidArgument("file", path.name, f"in {path.parent} must hold one JSON object")
    return content
