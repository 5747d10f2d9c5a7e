"""Take one picture out of every chapter and keep it for README, with the chapter table.

    python tools/readme_pictures.py           # write chapters/pictures/NN.svg and README's table
    python tools/readme_pictures.py --check   # only say whether they are up to date

A chapter's picture is the last state of its first widget that draws, as it stands in the notebook.
"""

import argparse
import json
import re
import sys
from pathlib import Path

from chapter_pairs import ROOT

sys.path.insert(0, str(ROOT))

from kvlab.course.chapters_map import CHAPTERS, Chapter

SVG = re.compile(r"<svg\b.*</svg>", re.DOTALL)
START, END = "<!-- chapters: written by tools/readme_pictures.py -->", "<!-- /chapters -->"


def picture_of(notebook: Path) -> str:
    """Return the SVG of the first widget of a notebook that has one, else of its first picture."""
    found: dict[bool, str] = {}
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        tagged = "widget" in cell["metadata"].get("tags", [])
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            shown = "".join(data.get("image/svg+xml", data.get("text/html", [])))
            if drawn := SVG.search(shown):
                found.setdefault(tagged, drawn.group())
    return found.get(True) or found.get(False) or ""


def notebook_of(chapter: Chapter) -> Path | None:
    """Return the notebook of a chapter, or None where it is still to come."""
    return next((ROOT / "chapters").glob(f"{chapter.number}_*.ipynb"), None)


def row(chapter: Chapter) -> str:
    """Return the line of a chapter in README's table."""
    notebook, picture = notebook_of(chapter), f"chapters/pictures/{chapter.number}.svg"
    minutes = f"{chapter.core_minutes} core"
    minutes += f" + {chapter.deep_minutes} deep" if chapter.deep_minutes else ""
    if notebook is None:
        return f"| {chapter.number} {chapter.title} (coming) | {chapter.question} | {minutes} | |"
    link = f"[{chapter.number} {chapter.title}](chapters/{notebook.name})"
    shown = f'<img src="{picture}" width="320" alt="A picture of chapter {chapter.number}">'
    return f"| {link} | {chapter.question} | {minutes} | {shown} |"


def table() -> str:
    """Return README's chapter table."""
    head = ["| chapter | question | minutes | picture |", "|---|---|---|---|"]
    return "\n".join([START, *head, *map(row, CHAPTERS), END])


def wanted() -> dict[Path, str]:
    """Return every file this tool keeps, with the text it should have."""
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    before, _, rest = text.partition(START)
    files = {readme: before + table() + rest.partition(END)[2]}
    for chapter in CHAPTERS:
        if notebook := notebook_of(chapter):
            target = ROOT / "chapters" / "pictures" / f"{chapter.number}.svg"
            files[target] = picture_of(notebook) + "\n"
    return files


def main(arguments: list[str]) -> int:
    """Write the files that differ, or with `--check` only name them; return 1 when any did."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args(arguments).check
    stale = [
        path
        for path, text in wanted().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path in stale:
        print(f"{path.relative_to(ROOT)}: {'out of date' if check else 'written'}")
        if not check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(wanted()[path], encoding="utf-8")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
