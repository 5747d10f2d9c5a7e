"""Write a talk for every chapter: one HTML file each, built from the executed notebooks.

    python tools/slides_build.py           # slides/NN.html and slides/index.html
    python tools/slides_build.py 03 05     # these chapters alone

Open a file in any browser, from the disk: it fetches nothing. What is on the slides is chosen by
`slides_pick`, with a short list for each chapter in `tools/slides/`.
"""

import argparse
import sys
from pathlib import Path

import nbformat
from built_chapters import built_sources, choose_built
from chapter_pairs import ROOT, notebook_of
from slides_page import index_html, page_html
from slides_pick import Slide, pick


def talk(source: Path) -> tuple[str, list[Slide]]:
    """Return a chapter's title and its slides."""
    notebook = nbformat.read(notebook_of(source), as_version=4)
    slides = pick(notebook, source.stem[:2])
    return f"{source.stem[:2]} {slides[0].title}", slides


def main(arguments: list[str]) -> int:
    """Write the pages; return 0 when all could be made."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="chapters, as 00 or 00_start_here")
    parser.add_argument("--out", type=Path, default=ROOT / "slides", help="the folder to write")
    options = parser.parse_args(arguments)
    chosen = choose_built(options.names)
    options.out.mkdir(parents=True, exist_ok=True)
    names: dict[str, tuple[str, int]] = {}
    for source in chosen:
        try:
            name, slides = talk(source)
        except ValueError as error:
            print(f"slides: {error}", file=sys.stderr)
            return 1
        file = f"{source.stem[:2]}.html"
        (options.out / file).write_text(page_html(slides, name), encoding="utf-8")
        names[file] = (name, len(slides))
        print(f"{file}: {len(slides)} slides")
    if len(chosen) == len(built_sources()):
        (options.out / "index.html").write_text(index_html(names), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
