"""The rows of the bench by name: where each is measured, and whether a plain run takes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from kvlab.bench.lines import Line
from kvlab.bench.setting import Setting
from kvlab.errors import InvalidArgument

RowFunction = Callable[[Setting], Iterator[Line]]


@dataclass(frozen=True)
class Row:
    """One row: "module:function" that yields its lines, and what it compares, in words.

    long: only measured when it is named, because it takes minutes or a browser.
    """

    target: str
    what: str
    long: bool = False

    def function(self) -> RowFunction:
        """Return the function that measures the row; its module is read now."""
        module, name = self.target.split(":")
        return getattr(import_module(f"kvlab.bench.{module}"), name)


ROWS: dict[str, Row] = {
    "decode": Row("rows_decode:rows", "one stream, float32, beside transformers and memory"),
    "decode-lowbit": Row("rows_lowbit:rows", "fewer bits a weight, beside llama.cpp too"),
    "prefill": Row("rows_prefill:rows", "512 tokens read, beside the matrix rate"),
    "batch": Row("rows_batch:rows", "1, 8 and 32 requests, beside transformers and vLLM"),
    "recompute": Row("rows_recompute:rows", "with a cache and without, each beside its limit"),
    "start": Row("rows_start:rows", "import kvlab, kvlab size, beside Python's start"),
    "slider": Row("rows_slider:rows", "a moved control; named, the whole way in a browser"),
    "open": Row("rows_browser:open_rows", "a chapter to its first picture", long=True),
    "chapters": Row("rows_browser:chapter_rows", "every chapter executed", long=True),
    "allocator": Row("rows_allocator:rows", "block manager and scheduler, beside nano-vllm"),
    "simulator": Row("rows_simulator:rows", "100,000 requests", long=True),
    "cache-bits": Row("rows_cache_bits:rows", "quantised caches, beside transformers'"),
    "train-tiny": Row("rows_train:rows", "a training step, beside its arithmetic", long=True),
    "fresh": Row("rows_browser:fresh_rows", "a fresh machine to its first picture", long=True),
}
"""Every row, in the order in which they run."""


def chosen_rows(only: Sequence[str]) -> list[str]:
    """Return the rows to measure: those named, in the order of `ROWS`, or all that are not long.

    Raises `InvalidArgument` for a name that is none, with all names.

    >>> chosen_rows(["start", "decode"])
    ['decode', 'start']
    >>> "chapters" in chosen_rows([]), "decode" in chosen_rows([])
    (False, True)
    """
    for name in only:
        if name not in ROWS:
            raise InvalidArgument("only", name, f"must be one of {', '.join(ROWS)}")
    wanted = set(only)
    return [name for name, row in ROWS.items() if (name in wanted if only else not row.long)]


def named_rows(given: Sequence[str]) -> list[str]:
    """Return the names in texts as "a,b"; raises `InvalidArgument` where there are texts, no name.

    >>> named_rows(["decode,start", "open"]), named_rows([])
    (['decode', 'start', 'open'], [])
    """
    names = [name for text in given for name in text.split(",") if name]
    if given and not names:
        raise InvalidArgument("only", given[0], f"must be one of {', '.join(ROWS)}")
    return names


def parse_peers(given: Sequence[str]) -> dict[str, str]:
    """Return peers by name from NAME=FOLDER texts; raises `InvalidArgument` for others.

    >>> parse_peers(["nano-vllm=."])
    {'nano-vllm': '.'}
    """
    found = {}
    for text in given:
        name, _, folder = text.partition("=")
        if name != "nano-vllm" or not folder:
            raise InvalidArgument("peer", text, "must be nano-vllm=FOLDER")
        if not Path(folder).expanduser().is_dir():
            raise InvalidArgument("peer", text, "must name a folder that is there")
        found[name] = folder
    return found
