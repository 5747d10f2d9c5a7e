"""What a row is told: how often to measure, which peers were named, and whether it was asked for.

Models are loaded when the first row wants them and kept for the next one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvlab.errors import KvlabError

if TYPE_CHECKING:
    from kvlab.model.load import LoadedModel

PROMPT, NEW = 512, 128
"""The answer of the decode rows: prompt tokens and new tokens."""


def _nothing(words: str) -> None:
    return None


@dataclass
class Setting:
    """How a run of the bench was asked for.

    rounds: how often each work is measured; None: as often as its row thinks right. named: the
    row was named by --only, so its long part is measured too. peers: folders of peers by name.
    model: whose weights. say: is told what is being measured now.
    """

    rounds: int | None = None
    named: bool = False
    peers: dict[str, Path] = field(default_factory=dict)
    model: str = "smollm2"
    prompt_tokens: int = PROMPT
    new_tokens: int = NEW
    say: Callable[[str], None] = _nothing
    _peer: tuple[int, Any] | None = None

    def times(self, usual: int) -> int:
        """Return the rounds that were asked for, else the usual number of a row."""
        return usual if self.rounds is None else self.rounds

    def loaded(self, dtype: str = "float32") -> LoadedModel:
        """Return the model, on the CPU, in this dtype."""
        from kvlab.model.load import load_model

        return load_model(self.model, device="cpu", dtype=dtype)

    def peer(self, loaded: LoadedModel) -> Any:
        """Return transformers' model with the same weights; only the last one is kept."""
        from kvlab.bench.peer_transformers import load_peer

        if self._peer is None or self._peer[0] != id(loaded):
            self._peer = None
            self._peer = id(loaded), load_peer(loaded)
        return self._peer[1]


def reason(error: BaseException) -> str:
    """Return why something is not there, in one line.

    >>> reason(KvlabError("no such\\nfile"))
    'no such file'
    """
    text = " ".join(str(error).split())[:200]
    return text if isinstance(error, KvlabError) else f"{type(error).__name__}: {text}"
