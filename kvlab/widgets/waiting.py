"""A progress bar for what takes longer than two seconds, the same in a notebook and a terminal."""

import os
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def with_progress(steps: Iterable[T], *, total: int, doing: str) -> Iterator[T]:
    """Yield every step and move a bar; interrupting it leaves nothing behind.

    With `TQDM_DISABLE` set, as when a chapter is stored, no bar is shown.

    >>> list(with_progress("abc", total=3, doing="reading"))
    ['a', 'b', 'c']
    """
    if os.environ.get("TQDM_DISABLE", "0") not in ("", "0"):
        yield from steps
        return
    from tqdm.auto import tqdm

    with tqdm(steps, total=total, desc=doing) as bar:
        yield from bar
