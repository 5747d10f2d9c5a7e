"""Run the percent sources in chapters/src/ and keep the executed notebooks in chapters/.

Two runs give the same bytes: no times, no widget state, ids from the text of a cell, and an
unchanged `timing` cell keeps the output that it had. A chapter whose source did not change is
left alone, unless it is named or `--all` is given.
"""

import argparse
import sys
import time
from pathlib import Path

import nbformat
from chapter_pairs import (
    CHAPTERS,
    announced_but_here,
    differences,
    is_executed,
    notebook_of,
    read_source,
    sources,
)
from notebook_guards import problems
from run_notebook import CellFailed, run_notebook, write_atomically


def main(arguments: list[str]) -> int:
    """Build or check the chapters; return 0 when all is well."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="*", help="chapters to build, as 00 or 00_start_here")
    parser.add_argument("--all", action="store_true", help="build every chapter")
    parser.add_argument("--check", action="store_true", help="only say which pairs disagree")
    parser.add_argument("--new-timings", action="store_true", help="measure timing cells again")
    parser.add_argument("--folder", type=Path, default=CHAPTERS, help="where the chapters lie")
    options = parser.parse_args(arguments)
    chosen = choose(sources(options.folder), options.names, options.all)
    if options.check:
        found = [line for source in chosen for line in differences(source, notebook_of(source))]
        found += [line for source in chosen for line in announced_but_here(notebook_of(source))]
        print("\n".join(found) or "every notebook agrees with its source")
        return bool(found)
    results = [build(source, keep_timings=not options.new_timings) for source in chosen]
    outdated = [s for s in sources(options.folder) if announced_but_here(notebook_of(s))]
    results += [build(source, keep_timings=True) for source in outdated]
    return not all(results)


def choose(every: list[Path], names: list[str], take_all: bool) -> list[Path]:
    """Return the sources to work on; a name is the start of a file's name."""
    unknown = [name for name in names if not any(s.stem.startswith(stem(name)) for s in every)]
    if unknown:
        sys.exit(f"no chapter is called {', '.join(unknown)}")
    if names:
        return [s for s in every if any(s.stem.startswith(stem(name)) for name in names)]
    return every if take_all or "--check" in sys.argv else [s for s in every if is_stale(s)]


def stem(name: str) -> str:
    """Return a chapter's bare name, whether a path, a file or a number was given."""
    return Path(name).stem


def is_stale(source: Path) -> bool:
    """Return whether the notebook of `source` has to be built."""
    notebook = notebook_of(source)
    return bool(differences(source, notebook)) or not is_executed(notebook)


def build(source: Path, *, keep_timings: bool) -> bool:
    """Run one chapter and write its notebook; return whether it went well.

    A failing cell, or an interrupt, leaves the notebook that was there.
    """
    target, started = notebook_of(source), time.perf_counter()
    stored = nbformat.read(target, as_version=4) if target.exists() else None
    notebook = read_source(source)
    print(f"{source.stem}: running {len(notebook.cells)} cells", flush=True)
    try:
        run_notebook(notebook, target.parent, stored if keep_timings else None)
    except CellFailed as error:
        print(f"{source.stem}: {error}", file=sys.stderr)
        return False
    changed = write_atomically(notebook, target)
    outcome = "written" if changed else "unchanged"
    print(f"{source.stem}: {outcome} after {time.perf_counter() - started:.0f} s", flush=True)
    for line in problems(notebook, size=target.stat().st_size):
        print(f"{source.stem}: guard: {line}", file=sys.stderr)
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
