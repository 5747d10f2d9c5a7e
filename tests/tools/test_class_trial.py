"""A class on one machine: what is measured, and that the page for instructors says just that."""

import json
import mmap
import os
import re
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest
from class_memory import Watch, cpu_seconds, fields, free_bytes, memory_of
from class_report import END, PAGE, RECORD, START, Run, gigabytes, kept, page, report, row

linux = pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="Linux: /proc")
RUN = Run(
    date="2026-11-30", machine="2 cores, x86_64", chapter="00", students=2, threads=1,
    wall_seconds=30.4, seconds_each=[29.0, 30.0], cpu_seconds_each=[15.0, 17.0],
    peak_pss=1_600_000_000, pss_each=[600_000_000, 640_000_000],
    private_each=[300_000_000, 310_000_000],
    weights={"rss": 1_076_000_000, "pss": 538_000_000, "private_dirty": 0}, server_pss=84_000_000,
)  # fmt: skip


def test_the_page_shows_the_classes_on_record_and_nothing_else() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python tools/class_report.py"
    runs = kept()
    assert len({(run.chapter, run.students, run.threads) for run in runs}) == len(runs) >= 2
    for run in runs:
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", run.date)
        sizes = (run.seconds_each, run.cpu_seconds_each, run.pss_each, run.private_each)
        assert {len(each) for each in sizes} == {run.students}
        assert sum(run.pss_each) <= 1.05 * run.peak_pss
        assert all(own <= pss for own, pss in zip(run.private_each, run.pss_each, strict=True))


def test_the_weights_are_counted_once_whatever_the_class() -> None:
    for run in kept():
        assert run.weights["private_dirty"] == 0
        assert run.weights["pss"] < 1.05 * run.weights["rss"] / run.students


def test_the_plan_follows_from_what_was_measured() -> None:
    text, runs = PAGE.read_text(encoding="utf-8"), kept()
    assert "2 GB once, then 0.6 GB a student" in text
    assert max(max(run.private_each) + run.server_pss for run in runs) < 0.6e9
    for fewer, more in pairwise(sorted(runs, key=lambda run: run.students)):
        assert more.peak_pss - fewer.peak_pss < 0.6e9 * (more.students - fewer.students)
    for run in runs:
        assert run.peak_pss < 2e9 + 0.6e9 * run.students
        assert 40 < 4 * max(run.cpu_seconds_each) < 90 or run.chapter != "00"  # "near a minute"


def test_a_row_gives_the_middle_of_the_class_in_decimal_gigabytes() -> None:
    cells = [cell.strip() for cell in row(RUN).strip("|").split("|")]
    assert cells == [
        "00", "2", "2026-11-30", "30 s", "16 s", "1.60 GB", "0.62 GB", "0.30 GB", "0.54 GB",
    ]  # fmt: skip
    assert gigabytes(RUN.server_pss) in report([RUN]) and "0.00 GB were copied" in report([RUN])


def test_the_record_is_what_the_tool_writes() -> None:
    stored = json.loads(RECORD.read_text(encoding="utf-8"))
    assert [set(one) for one in stored] == [set(RUN.__dataclass_fields__)] * len(stored)
    text = PAGE.read_text(encoding="utf-8")
    assert text.count(START) == text.count(END) == 1


@linux
def test_private_pages_of_a_process_are_told_from_shared_ones() -> None:
    size = 50_000_000
    before = memory_of(os.getpid())
    more = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    more.write(b"x" * size)  # new pages for certain: a bytearray may get old ones
    after = memory_of(os.getpid())
    assert 45_000_000 < after.private - before.private < 60_000_000
    assert after.private <= after.pss
    assert (after.weights is None) == (before.weights is None)
    more.close()


@linux
def test_a_mapped_file_is_shared_out_and_copied_only_when_written(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"\1" * 20_000_000)
    script = (
        "import mmap, sys, os\n"
        "f = open(sys.argv[1], 'rb')\n"
        "both = mmap.PROT_READ | mmap.PROT_WRITE\n"
        "m = mmap.mmap(f.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=both)\n"
        "sum(m[::4096])\n"
        "if sys.argv[2] == 'write':\n    m[:10_000_000] = b'2' * 10_000_000\n"
        "print('ready', flush=True)\nsys.stdin.read()\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "model.safetensors")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    children = [subprocess.Popen([*command, how], **pipes) for how in ("read", "read", "write")]  # type: ignore[call-overload]
    try:
        for child in children:
            child.stdout.readline()
        found = [memory_of(child.pid).weights for child in children]
    finally:
        for child in children:
            child.communicate(b"", timeout=20)
    assert all(weights.rss >= 19_000_000 for weights in found)
    assert [weights.private_dirty for weights in found[:2]] == [0, 0]
    assert found[0].pss < 11_000_000 and found[2].private_dirty >= 9_000_000


@linux
def test_a_watch_sees_the_peak_and_the_clock_of_a_process() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time\nx = b'y' * 40_000_000\n"
                              "while True: time.sleep(0.01)"])  # fmt: skip
    try:
        with Watch() as watch:
            watch.pids.append(child.pid)
            time.sleep(1.3)
            used = cpu_seconds(child.pid)
        assert watch.peak > 40_000_000 and 0 < used < 5
    finally:
        child.kill()
        child.wait()
    assert free_bytes() > 0


def test_other_lines_of_smaps_are_no_fields() -> None:
    assert fields("Size: 8 kB\nPss_Anon: 3 kB\nPss: 4 kB") == {"Pss": 4096}
