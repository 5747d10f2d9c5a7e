"""The learning curves of the bundled models and of their other seeds. No torch.

Each curve is recall at 512 tokens and 32 facts, probed on the same fresh sequences every so many
steps of a run. `data/tiny_curves.json` holds them; `tools/collect_curves.py` writes that file from
the folders that `kvlab train-tiny` and `kvlab uptrain` leave.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kvlab._paths import data_dir
from kvlab.errors import InvalidArgument, ModelUnavailable

FILE = "tiny_curves.json"
GROUPS = {
    "twins": "first stage of 8 tokens, without filler",
    "twins-slow": "first stage of 16 tokens, half of them filler; all else alike",
    "twins-short": "as twins, but with the number of steps of an uptraining",
    "twins-window": "as twins, with a sliding window in the first layer",
    "uptrain": "began with the pooled KV heads of a twin",
}
"""Runs that are to be compared with each other; within a group, KV heads and seed differ."""

LEFT_CHANCE, LEARNT = 0.1, 0.99
"""Recall above which a run has left chance (1 in 64), and from which on it counts as done."""


@dataclass(frozen=True)
class Curve:
    """One run: what it was, what it recalled on the way, and what it came to.

    group: one of `GROUPS`. model: the folder in `data/` that holds its weights, or "" where only
    the curve was kept. recall: (steps done, recall) at 512 tokens; the first is before any step.
    final: recall at the end by number of tokens, with 32 facts, and as "hard" with 128 facts in
    1,024 tokens. notes: what else the result says, for instance the recall right after pooling.
    """

    group: str
    num_heads: int
    num_kv_heads: int
    seed: int
    steps: int
    sliding_window: int | None
    model: str
    recall: tuple[tuple[int, float], ...]
    final: Mapping[str, float]
    notes: Mapping[str, Any]

    def first_step(self, share: float) -> int | None:
        """Return the first probed step at which recall was `share` or more, None if never.

        >>> load_curves("twins", num_kv_heads=8)[0].first_step(2.0) is None
        True
        """
        return next((step for step, found in self.recall if found >= share), None)


def load_curves(group: str, *, num_kv_heads: int | None = None) -> list[Curve]:
    """Return the curves of a group, or those of one number of KV heads; by KV heads and seed.

    Raises `InvalidArgument` for an unknown group and where there is no such run.
    """
    if group not in GROUPS:
        raise InvalidArgument("group", group, f"must be one of {', '.join(GROUPS)}")
    runs = [curve for curve in _all_curves() if curve.group == group]
    found = [curve for curve in runs if num_kv_heads in (None, curve.num_kv_heads)]
    if not found:
        there = ", ".join(str(n) for n in sorted({curve.num_kv_heads for curve in runs}))
        raise InvalidArgument("num_kv_heads", num_kv_heads, f"the runs have {there} KV heads")
    return found


@cache
def _all_curves() -> tuple[Curve, ...]:
    path = data_dir() / FILE
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))["runs"]
    except FileNotFoundError:
        raise ModelUnavailable(f"{FILE} is not in this installation of kvlab") from None
    return tuple(
        Curve(**{**row, "recall": tuple((step, found) for step, found in row["recall"])})
        for row in rows
    )


def collect_curves(folders: Iterable[Path]) -> dict[str, Any]:
    """Return what `FILE` holds, read from folders of finished runs.

    A folder inside `data/` is a bundled model, and its curve carries its name. Runs of `twins` with
    fewer steps than the longest are `twins-short`.
    """
    runs = [_curve_of(folder) for folder in folders]
    longest = max((run["steps"] for run in runs if run["group"] == "twins"), default=0)
    for run in runs:
        run["group"] += "-short" if run["group"] == "twins" and run["steps"] < longest else ""
    order = list(GROUPS)
    runs.sort(key=lambda run: (order.index(run["group"]), -run["num_kv_heads"], run["seed"]))
    return {"probe": {"seq_len": 512, "num_facts": 32}, "runs": runs}


def _curve_of(folder: Path) -> dict[str, Any]:
    log = json.loads((folder / "training_log.json").read_text(encoding="utf-8"))
    settings, result = log["settings"], log["result"]
    kept = ("num_heads", "num_kv_heads", "seed", "steps", "sliding_window")
    told = ("source", "source_recall", "pooled_recall", "parameters", "stages_passed")
    return {
        "group": settings["recipe"] + ("-window" if settings["sliding_window"] else ""),
        **{key: settings[key] for key in kept},
        "model": folder.name if folder.resolve().parent == data_dir().resolve() else "",
        "recall": [[row["step"], row["probe"]] for row in log["log"] if "probe" in row],
        "final": {**result["recall"], "hard": result["hard"]["recall"]},
        "notes": {key: result[key] for key in told if key in result},
    }
