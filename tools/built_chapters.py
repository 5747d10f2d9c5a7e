"""The chapters whose notebooks are built: what editions, talks and trials are made from."""

import sys
from pathlib import Path

from build_chapters import choose
from chapter_pairs import notebook_of, sources


def built_sources() -> list[Path]:
    """Return the sources of all chapters that have a notebook, in reading order."""
    return [source for source in sources() if notebook_of(source).exists()]


def choose_built(names: list[str]) -> list[Path]:
    """Return the sources that `names` name, or all; ends the program at an unknown name.

    A chapter without a notebook is named on stderr and left out.
    """
    chosen = choose(sources(), names, take_all=True)
    for source in chosen:
        if not notebook_of(source).exists():
            print(f"{source.stem}: its notebook is not built yet; left out", file=sys.stderr)
    return [source for source in chosen if notebook_of(source).exists()]
