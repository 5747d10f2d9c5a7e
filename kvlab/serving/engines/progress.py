"""What a learner sees while an engine starts or works: one line that is rewritten."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_line(engine: str, is_shown: bool) -> "Iterator[Callable[[float], None]]":
    """Show how long an engine has been starting, in one line that is rewritten."""
    from tqdm.auto import tqdm

    started = time.monotonic()
    form = "{desc}"
    with tqdm(desc=f"{engine} starts", bar_format=form, disable=not is_shown) as bar:
        yield lambda seconds: bar.set_description_str(f"{engine} starts: {seconds:.0f} s")
        took = time.monotonic() - started
        bar.set_description_str(f"{engine} answers after {took:.0f} s")


@contextmanager
def progress_bar(name: str, total: int, is_shown: bool) -> Iterator[Callable[[object], None]]:
    """Show how many of `total` answers are there; what is yielded is called with each."""
    from tqdm.auto import tqdm

    with tqdm(desc=name, total=total, unit="answer", disable=not is_shown) as bar:
        yield lambda _: bar.update(1) and None
