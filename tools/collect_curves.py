"""Write data/tiny_curves.json from the folders of finished training runs.

    python tools/collect_curves.py data/tiny-mha data/tiny-gqa ... other-seeds/*

The folders are those that `kvlab train-tiny --recipe twins` and `kvlab uptrain` leave.
"""

import json
import sys
from pathlib import Path
from typing import Any

from kvlab._paths import data_dir
from kvlab.model.train_curves import FILE, collect_curves


def to_text(curves: dict[str, Any]) -> str:
    """Return the file's text, one run to a line, so that a changed run is a changed line."""
    rows = ",\n    ".join(json.dumps(run) for run in curves["runs"])
    head = json.dumps({"probe": curves["probe"]})
    return head.removesuffix("}") + f',\n  "runs": [\n    {rows}\n  ]\n}}\n'


def main(folders: list[str]) -> None:
    """Write the file and say how many runs it holds."""
    curves = collect_curves(Path(folder) for folder in folders)
    path = data_dir() / FILE
    path.write_text(to_text(curves), encoding="utf-8", newline="\n")
    print(f"{path}: {len(curves['runs'])} runs")


if __name__ == "__main__":
    main(sys.argv[1:])
