"""The measured classes as a table, and the page for instructors that shows them.

python tools/class_report.py           # write the table into chapters/instructors/class.md
python tools/class_report.py --check   # only say whether it is up to date
"""

import argparse
import json
import statistics
import sys
from dataclasses import dataclass

from chapter_pairs import ROOT

PAGE = ROOT / "chapters" / "instructors" / "class.md"
RECORD = ROOT / "chapters" / "instructors" / "class.json"
START, END = "<!-- measured: written by tools/class_report.py -->", "<!-- /measured -->"
HEAD = (
    "| chapter | students | date | all took | processor time each | memory in all, at most "
    "| each, at the end | of it private | weights, counted once |\n"
    "|---|---|---|---|---|---|---|---|---|"
)


@dataclass
class Run:
    """One class: a chapter run by so many students at once; seconds and bytes."""

    date: str
    machine: str
    chapter: str
    students: int
    threads: int
    wall_seconds: float
    seconds_each: list[float]
    cpu_seconds_each: list[float]
    peak_pss: int
    pss_each: list[int]
    private_each: list[int]
    weights: dict[str, int]
    server_pss: int


def gigabytes(size: float) -> str:
    """Return bytes in GB with two decimals.

    >>> gigabytes(1_234_567_890)
    '1.23 GB'
    """
    return f"{size / 1e9:.2f} GB"


def row(run: Run) -> str:
    """Return a class as a row of the table."""
    middle = statistics.median
    cells = (
        run.chapter,
        f"{run.students}",
        run.date,
        f"{run.wall_seconds:.0f} s",
        f"{middle(run.cpu_seconds_each):.0f} s",
        gigabytes(run.peak_pss),
        gigabytes(middle(run.pss_each)),
        gigabytes(middle(run.private_each)),
        gigabytes(run.weights.get("pss", 0)),
    )
    return f"| {' | '.join(cells)} |"


def report(runs: list[Run]) -> str:
    """Return the table of some classes, with what was measured beside them below."""
    by_size = sorted(runs, key=lambda run: (run.chapter, run.students))
    copied = sum(run.weights.get("private_dirty", 0) for run in runs)
    server = max(run.server_pss for run in runs)
    machines = sorted({f"{run.machine}, {run.threads} thread a kernel" for run in runs})
    below = (
        f"{'; '.join(machines)}. Of the mapped weights {gigabytes(copied)} were copied into a "
        f"kernel's own memory. One JupyterLab server without a kernel: {gigabytes(server)}."
    )
    return "\n".join([HEAD, *map(row, by_size), "", below])


def kept() -> list[Run]:
    """Return the classes on record."""
    return [Run(**one) for one in json.loads(RECORD.read_text(encoding="utf-8"))]


def page() -> str:
    """Return the page as it should be."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(START)
    return f"{before}{START}\n{report(kept())}\n{END}{rest.partition(END)[2]}"


def main(arguments: list[str]) -> int:
    """Write the page where it differs; with `--check` only say so and return 1."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args(arguments).check
    if PAGE.read_text(encoding="utf-8") == page():
        return 0
    print(f"{PAGE.relative_to(ROOT)}: {'out of date' if check else 'written'}")
    if not check:
        PAGE.write_text(page(), encoding="utf-8")
    return int(check)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
