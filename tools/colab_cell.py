"""The first code cell of every chapter: in Colab it installs the course, elsewhere it does nothing.

    python tools/colab_cell.py           # write the cell and the badge into every chapter
    python tools/colab_cell.py --check   # only name the chapters in which they differ

The address comes from `kvlab/course/address.py`: change it there, then run this. The cell shows
nothing outside Colab, so stored notebooks are changed beside their sources and not run again.
"""

import argparse
import re
import sys
from pathlib import Path

import nbformat
from chapter_pairs import ROOT, notebook_of, read_source, sources
from run_notebook import write_atomically

sys.path.insert(0, str(ROOT))

from kvlab.course.address import colab_badge, install_source

CELL = """\
import sys

if "google.colab" in sys.modules:  # your own machine needs nothing here
    from IPython import get_ipython

    get_ipython().run_line_magic("pip", "install -q gguf pint")
    source = "{source}"
    get_ipython().run_line_magic("pip", f"install -q --no-deps {{source}}")
    from kvlab.doctor.colab import prepare

    print(prepare({arguments}))
"""
USES_SMOLLM2 = re.compile(r'(?:is_available|load_model)\("smollm2"')
OLD = re.compile(r'import sys\n\nif "google\.colab" in sys\.modules:.*?(?=\n\n# %%|\Z)', re.DOTALL)
BADGE = re.compile(r"^# \[Open in Colab\]\(\S*\)$", re.MULTILINE)


def colab_cell(chapter: str) -> str:
    """Return the cell for a chapter's source text; without SmolLM2 in it, none is fetched.

    >>> colab_cell("no model here").splitlines()[-1].strip()
    'print(prepare(weights=False))'
    """
    arguments = "" if USES_SMOLLM2.search(chapter) else "weights=False"
    return CELL.format(source=install_source(), arguments=arguments)


def with_colab(source: Path) -> str:
    """Return the text of a chapter's source with its Colab cell and badge as they should be."""
    text = source.read_text(encoding="utf-8")
    cell, badge = colab_cell(text).rstrip(), f"# {colab_badge(f'{source.stem}.ipynb')}"
    return BADGE.sub(lambda _: badge, OLD.sub(lambda _: cell, text, count=1), count=1)


def update(source: Path) -> None:
    """Write the source, and give the stored notebook the same cells with the outputs it has."""
    source.write_text(with_colab(source), encoding="utf-8")
    if not notebook_of(source).exists():
        return
    stored = nbformat.read(notebook_of(source), as_version=4)
    wanted = read_source(source)
    if [c.cell_type for c in stored.cells] != [c.cell_type for c in wanted.cells]:
        print(f"{source.stem}: its notebook is out of date; build it", file=sys.stderr)
        return
    for cell, new in zip(stored.cells, wanted.cells, strict=True):
        if "google.colab" in new.source or "[Open in Colab]" in new.source:
            cell.source, cell.id = new.source, new.id
    write_atomically(stored, notebook_of(source))


def main(arguments: list[str]) -> int:
    """Write the chapters that differ, or with `--check` only name them; return 1 when any did."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args(arguments).check
    stale = [s for s in sources() if with_colab(s) != s.read_text(encoding="utf-8")]
    for source in stale:
        print(f"{source.stem}: {'out of date' if check else 'written'}")
        if not check:
            update(source)
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
