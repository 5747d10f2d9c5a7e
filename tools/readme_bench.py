"""Write the reference run of the bench into README, misses included.

    python tools/readme_bench.py           # write README's table
    python tools/readme_bench.py --check   # only say whether it is up to date

The run is made by `kvlab bench --save data/bench/reference.json`, and rows that take long by
`--only NAME` with the same `--save`; each keeps its own date and machine.
"""

import argparse
import sys
from pathlib import Path

from chapter_pairs import ROOT

sys.path.insert(0, str(ROOT))

from kvlab.bench.machine import machine_words
from kvlab.bench.reference import KeptRun, lines_in_order, load_runs, reference_path
from kvlab.bench.table import markdown, missed_words

README = ROOT / "README.md"
START, END = "<!-- bench: written by tools/readme_bench.py -->", "<!-- /bench -->"
NONE_YET = "No reference run is kept yet."


def section(runs: list[KeptRun]) -> str:
    """Return what stands between the markers: machines, table, and what was missed."""
    lines = lines_in_order(runs)
    if not lines:
        return "\n".join([START, NONE_YET, END])
    machines = [f"- `{run.command}`: {machine_words(dict(run.machine))}." for run in runs]
    missed = missed_words(lines)
    parts = [*machines, "", *markdown(lines)]
    if missed:
        parts += ["", "Missed, or not measured:", "", *missed]
    return "\n".join([START, *parts, END])


def wanted(text: str, runs: list[KeptRun]) -> str:
    """Return README's text with the section of these runs; ends the program without markers."""
    before, found, rest = text.partition(START)
    if not found or END not in rest:
        sys.exit(f"README.md: the markers {START} and {END} are missing")
    return before + section(runs) + rest.partition(END)[2]


def main(arguments: list[str], readme: Path = README) -> int:
    """Write README where it differs, or with `--check` only say so; return 1 when it did."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args(arguments).check
    text = readme.read_text(encoding="utf-8")
    new = wanted(text, load_runs(reference_path()))
    if new == text:
        return 0
    print(f"{readme.name}: {'out of date' if check else 'written'}")
    if not check:
        readme.write_text(new, encoding="utf-8")
    return int(check)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
