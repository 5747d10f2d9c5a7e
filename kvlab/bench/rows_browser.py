"""The rows that need JupyterLab in a real browser: the whole way of a slider, opening a chapter.

`tools/measure_lab.py` drives Chromium and prints numbers; here they become lines. Where a part is
missing, such as the browser, the line says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any

from kvlab.bench.lines import Line, joined
from kvlab.bench.setting import Setting, reason
from kvlab.bench.tree import ask_tool


def slider_lines(setting: Setting) -> Iterator[Line]:
    """Yield three lines over every slider of every widget: median, worst, bytes a step."""
    setting.say("slider: the whole way, in Chromium")
    works = {
        "median": ("slider: whole way, median of all sliders", "ms"),
        "worst": ("slider: whole way, worst step", "ms"),
        "bytes": ("slider: bytes over the wire, largest step", "bytes"),
    }
    try:
        found = ask_tool("measure_lab.py", "sliders", str(setting.times(12)))
    except Exception as error:
        for work, unit in works.values():
            yield Line(work, unit=unit, note=reason(error))
        return
    yield from _slider_lines(works, found["steps"])


def _slider_lines(
    works: Mapping[str, tuple[str, str]], steps: list[dict[str, Any]]
) -> Iterator[Line]:
    drawn = [step for step in steps if step["ms"] is not None]
    times = [step["ms"] for step in drawn]
    slowest = max(drawn, key=lambda step: step["ms"])
    heaviest = max(steps, key=lambda step: step["bytes"])
    counted = f"{len(steps)} key presses on {len({s['slider'] for s in steps})} sliders"
    lost = f"{len(steps) - len(drawn)} drew nothing" if len(drawn) < len(steps) else ""
    for key, value, words in (
        ("median", median(times), ""),
        ("worst", slowest["ms"], f"worst: {slowest['slider']}"),
        ("bytes", float(heaviest["bytes"]), f"largest: {heaviest['slider']}"),
    ):
        work, unit = works[key]
        yield Line(work, unit=unit, ours=value, note=joined([counted, lost, words]))


def open_rows(setting: Setting) -> Iterator[Line]:
    """Yield the time from asking for a chapter to its first picture, kernel start included."""
    setting.say("open: chapters in JupyterLab")
    try:
        found = ask_tool("measure_lab.py", "open", str(setting.times(2)))
    except Exception as error:
        yield Line("open: slowest chapter to its first picture", unit="s", note=reason(error))
        return
    by_chapter = {name: median(times) for name, times in found["seconds"].items()}
    slowest = max(by_chapter, key=lambda name: by_chapter[name])
    each = ", ".join(f"{name[:2]} {seconds:.1f}" for name, seconds in by_chapter.items())
    for what, value in (
        ("chapter 00 to its first picture", by_chapter[min(by_chapter)]),
        ("slowest chapter to its first picture", by_chapter[slowest]),
    ):
        yield Line(
            f"open: {what}", unit="s", ours=value,
            note=f"kernel start and all cells before it included; seconds of each: {each}",
        )  # fmt: skip


def chapter_rows(setting: Setting) -> Iterator[Line]:
    """Yield the seconds of all chapters together and of the slowest one, executed in turn."""
    setting.say("chapters: all executed")
    try:
        found = ask_tool("measure_chapters.py")
    except Exception as error:
        for what in ("all executed, one after the other", "slowest"):
            yield Line(f"chapters: {what}", unit="s", note=reason(error))
        return
    seconds: dict[str, float] = found["seconds"]
    slowest = max(seconds, key=lambda name: seconds[name])
    each = ", ".join(f"{name[:2]} {taken:.0f}" for name, taken in seconds.items())
    yield Line(
        "chapters: all executed, one after the other", unit="s",
        ours=sum(seconds.values()), note=f"seconds of each: {each}",
    )  # fmt: skip
    yield Line(f"chapters: slowest, {slowest}", unit="s", ours=seconds[slowest])


def fresh_rows(setting: Setting) -> Iterator[Line]:
    """Yield what a fresh machine takes to its first picture, beside the download alone."""
    setting.say("fresh: download, install, first picture (minutes)")
    work = "fresh: more than the download, to the first picture"
    try:
        found = ask_tool("measure_fresh.py", timeout=3600)
    except Exception as error:
        yield Line(work, unit="s", note=reason(error))
        return
    parts = ", ".join(f"{name} {seconds:.0f}" for name, seconds in found["parts"].items())
    note = f"download of the pinned wheels {found['download']:.0f} s; then in seconds: {parts}"
    yield Line(
        work, unit="s", ours=sum(found["parts"].values()), peer=found["download"],
        peer_name="the download alone", note=note,
    )  # fmt: skip
