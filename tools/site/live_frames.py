"""Frames of a picture that is stepped through: drawn beforehand, stored once for what they share.

A frame is a list of pieces of SVG. A piece is a pattern and the numbers in it, kept once however
many frames show it; a frame is told by what changes from the one before.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kvlab.widgets.base import Frame
from tools.site.cells import Part, note
from tools.site.markup import tag, text

_PIECE = re.compile(r"<text\b[^>]*>[^<]*</text>|<[^<]*")
_STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)
_UID = re.compile(r"-kv[0-9a-f]{10}(?![0-9a-f])")
_NUMBER = re.compile(r"(?<![#\w.])\d+(?:\.\d+)?(?![\w.])")
HOLE, OWN = "\u0001", "\u0002"
"""Where a number goes in a pattern; where the player puts its own name in an id."""


@dataclass(frozen=True)
class Choice:
    """One row of frames under a name, the step it starts at, and steps one may jump to."""

    name: str
    file: str
    frames: Sequence[Frame]
    start: int = 0
    jumps: Sequence[tuple[str, int]] = ()


def pieces(markup: str) -> list[str]:
    """Return the pieces of an SVG without its style; the ids of its patterns are left open.

    >>> pieces('<svg><rect x="1"/><text>a</text></svg>')
    ['<svg>', '<rect x="1"/>', '<text>a</text>', '</svg>']
    """
    return _PIECE.findall(_UID.sub(f"-{OWN}", _STYLE.sub("", markup)))


def packed(pictures: Iterable[str]) -> dict[str, Any]:
    """Return pictures as patterns, pieces and changes from one to the next.

    >>> packed(['<a x="1"/>', '<a x="2"/>'])["changes"]
    [[[0, 0, [0]]], [[0, 1, [1]]]]
    """
    patterns: dict[str, int] = {}
    table: dict[tuple[int, str], int] = {}
    changes, before = [], []
    for markup in pictures:
        now = []
        for piece in pieces(markup):
            pattern = patterns.setdefault(_NUMBER.sub(HOLE, piece), len(patterns))
            numbers = " ".join(_NUMBER.findall(piece))
            now.append(table.setdefault((pattern, numbers), len(table)))
        changes.append(difference(before, now))
        before = now
    return {"patterns": list(patterns), "pieces": [list(p) for p in table], "changes": changes}


def difference(before: Sequence[int], now: Sequence[int]) -> list[list[Any]]:
    """Return what turns one row into the next: rows of (start, end, what comes in their place).

    >>> difference([1, 2, 3], [1, 5, 3]), difference([1, 2], [1, 2, 4])
    ([[1, 2, [5]]], [[2, 2, [4]]])
    """
    if len(before) == len(now):
        return [[i, i + 1, [b]] for i, (a, b) in enumerate(zip(before, now, strict=True)) if a != b]
    made = [[0, 1, [now[0]]]] if before and before[0] != now[0] else []
    first, shared = min(len(before), 1), min(len(before), len(now))
    while first < shared and before[first] == now[first]:
        first += 1
    last = 0
    while last < shared - first and before[-1 - last] == now[-1 - last]:
        last += 1
    return [*made, [first, len(before) - last, list(now[first : len(now) - last])]]


def unpacked(data: dict[str, Any]) -> list[str]:
    """Return the pictures again, as the script does; for the tests.

    >>> unpacked(packed(['<a x="1"/><b/>', '<a x="2"/><b/>']))
    ['<a x="1"/><b/>', '<a x="2"/><b/>']
    """
    table = []
    for pattern, numbers in data["pieces"]:
        between = data["patterns"][pattern].split(HOLE)
        values = [*numbers.split(" "), ""] if numbers else [""]
        table.append("".join(a + b for a, b in zip(between, values, strict=True)))
    shown, now = [], []
    for change in data["changes"]:
        for start, end, fresh in reversed(change):
            now = [*now[:start], *fresh, *now[end:]]
        shown.append("".join(table[i] for i in now))
    return shown


def frames_script(choice: Choice) -> str:
    """Return the script that holds the frames of one choice, under its file's name."""
    data = packed(str(frame.picture) for frame in choice.frames)
    data["events"] = [frame.event for frame in choice.frames]
    held = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    return f"kvlab.frames[{json.dumps(choice.file)}]={held};\n"


def player(
    name: str, choices: Sequence[Choice], *, about: str, seconds: float, choose: str = ""
) -> tuple[Part, dict[str, str]]:
    """Return a player and its data files; `seconds` lie between steps when it plays.

    Without a script the page shows the first choice's picture at its start.
    """
    files = {f"frames/{choice.file}.js": frames_script(choice) for choice in choices}
    first = choices[0]
    shown = first.frames[first.start]
    stage = tag("figure", _STYLE.sub("", str(shown.picture)), class_="pic wide stage")
    event = tag("p", text(shown.event), class_="event")
    select = _select(name, choices, choose) if len(choices) > 1 else ""
    jumps = "".join(tag("button", text(label), type="button", class_="js-jump", data_step=step)
                    for label, step in first.jumps)  # fmt: skip
    steps = f"{name}-step"
    label = tag("label", "step", for_=steps)
    slider = tag("input", type="range", id=steps, min=0, max=len(first.frames) - 1,
                 value=first.start)  # fmt: skip
    moves = "".join(
        tag("button", words, type="button", class_=f"js-{key}")
        for key, words in (("back", "\u2190 back"), ("play", "\u25b6 play"),
                           ("forward", "forward \u2192"))
    )  # fmt: skip
    along = tag("span", label + slider, class_="along")
    controls = tag("div", select + moves + along + jumps, class_="controls js")
    static = tag("p", "This picture moves when scripts are on.", class_="note nojs")
    body = controls + static + stage + event
    html = tag("div", body, class_="player", data_name=name, data_file=first.file,
               data_seconds=seconds,
               role="group", aria_label=about)  # fmt: skip
    return Part(html, {"frames"}, (f"frames/{first.file}.js",)), files


def _select(name: str, choices: Sequence[Choice], choose: str) -> str:
    options = "".join(
        tag("option", text(c.name), value=c.file, data_start=c.start,
            data_jumps=json.dumps([step for _, step in c.jumps]))
        for c in choices
    )  # fmt: skip
    label = tag("label", text(choose), for_=f"{name}-choice")
    return label + tag("select", options, id=f"{name}-choice")


def with_note(part: Part, words: str) -> Part:
    """Return a part with a line about itself below."""
    return Part(part.html + note(words), part.needs, part.data)
