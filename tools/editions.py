"""Write the two editions of the chapters for a class: one for students, one for the instructor.

    python tools/editions.py             # editions/student/ and editions/instructor/
    python tools/editions.py 03 11       # these chapters alone
    python tools/editions.py --run       # the instructor's, with every cell run anew

`--colab ADDRESS` names the folder under which you publish the student edition, so that its
"Open in Colab" opens your copy; without it the link is left out.
"""

import argparse
import sys
import time
from pathlib import Path

import nbformat
from built_chapters import choose_built
from chapter_pairs import ROOT, notebook_of
from edition_instructor import instructor_edition
from edition_student import student_edition
from run_notebook import CellFailed, write_atomically

EDITIONS = ROOT / "editions"


def main(arguments: list[str]) -> int:
    """Write the editions; return 0 when every solution passed its check."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="chapters, as 00 or 00_start_here")
    parser.add_argument("--out", type=Path, default=EDITIONS, help="the folder to write into")
    parser.add_argument("--run", action="store_true", help="run the instructor's copy whole")
    parser.add_argument("--colab", help="address of the student folder in Colab")
    options = parser.parse_args(arguments)
    chosen = choose_built(options.names)
    written = [write(source, options.out, options.colab, options.run) for source in chosen]
    print(f"editions: {sum(written)} of {len(chosen)} chapters in {shown(options.out)}")
    return not all(written)


def write(source: Path, out: Path, colab: str | None, whole: bool) -> bool:
    """Write both editions of a chapter; return whether that went well."""
    started, name = time.perf_counter(), f"{source.stem}.ipynb"
    stored = nbformat.read(notebook_of(source), as_version=4)
    link = f"{colab.rstrip('/')}/{name}" if colab else None
    try:
        editions = {
            "student": student_edition(stored, source.stem[:2], link),
            "instructor": instructor_edition(stored, source.stem[:2], whole=whole),
        }
    except (CellFailed, ValueError) as error:
        print(f"{source.stem}: {error}", file=sys.stderr)
        return False
    for edition, notebook in editions.items():
        (out / edition).mkdir(parents=True, exist_ok=True)
        write_atomically(notebook, out / edition / name)
    print(f"{source.stem}: written after {time.perf_counter() - started:.0f} s", flush=True)
    return True


def shown(folder: Path) -> str:
    """Return a folder as seen from the repository, where it lies inside."""
    inside = folder.is_absolute() and folder.is_relative_to(ROOT)
    return str(folder.relative_to(ROOT) if inside else folder)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
