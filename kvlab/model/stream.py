"""Turn token ids into text as they arrive, without ever showing half a character."""

from collections.abc import Callable, Sequence

HALF_CHARACTER = "\N{REPLACEMENT CHARACTER}"


class TextStream:
    """Text piece by piece: a character whose bytes span two tokens is held back until complete.

    `decode` turns all ids so far into text, as a tokenizer does.

    >>> stream = TextStream(lambda ids: bytes(ids).decode("utf-8", errors="replace"))
    >>> [stream.push(byte) for byte in "aé".encode()]
    ['a', '', 'é']
    """

    def __init__(self, decode: Callable[[Sequence[int]], str]) -> None:
        self.decode = decode
        self.ids: list[int] = []
        self.shown = ""

    def push(self, token_id: int) -> str:
        """Take one more token; return the text that can be shown now."""
        self.ids.append(token_id)
        text = self.decode(self.ids)
        return "" if text.endswith(HALF_CHARACTER) else self._show(text)

    def close(self) -> str:
        """Return what was held back, when no more tokens come."""
        return self._show(self.decode(self.ids)) if self.ids else ""

    def _show(self, text: str) -> str:
        piece, self.shown = text[len(self.shown) :], text
        return piece
