"""Open chapter 00 for N students at once on this machine: memory, processor time and wait of each.

    python tools/class_trial.py 3            # three students, results printed
    python tools/class_trial.py 20 --keep    # and kept for chapters/instructors/class.md

Each student is a kernel that runs the whole chapter. Linux only: memory is read from /proc as PSS,
in which a page that several processes share counts once in all, an equal part for each. It leaves
out what a hub puts around a kernel; one JupyterLab server is measured beside them.
"""

import argparse
import asyncio
import datetime
import json
import os
import platform
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import nbformat
from built_chapters import built_sources
from chapter_pairs import ROOT, notebook_of
from class_memory import Memory, Watch, cpu_seconds, free_bytes, memory_of, server_memory
from class_report import RECORD, Run, report
from run_notebook import client_for

CHAPTER = "00"
ROOM = 700 * 2**20  # bytes a kernel may come to need; fewer students are started than would fill it
QUIET = {"TQDM_DISABLE": "1", "OMP_WAIT_POLICY": "PASSIVE"}


def main(arguments: list[str]) -> int:
    """Run the class; return 0 when every notebook ran to its end."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("students", type=int, nargs="?", default=3)
    parser.add_argument("--chapter", default=CHAPTER, help="another chapter, as 05")
    parser.add_argument("--threads", type=int, default=1, help="processor threads of each kernel")
    parser.add_argument("--keep", action="store_true", help=f"add the result to {RECORD.name}")
    options = parser.parse_args(arguments)
    if not Path("/proc/self/smaps_rollup").exists():
        print("class_trial: this system tells no PSS; it needs Linux", file=sys.stderr)
        return 1
    if options.students * ROOM > free_bytes():
        need, free = options.students * ROOM / 1e9, free_bytes() / 1e9
        print(f"class_trial: wants {need:.0f} GB and {free:.0f} GB are free", file=sys.stderr)
        return 1
    run = asyncio.run(hold_class(options.students, options.chapter, options.threads))
    if options.keep:
        runs = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else []
        same = [run.chapter, run.students, run.threads]
        runs = [r for r in runs if [r["chapter"], r["students"], r["threads"]] != same]
        RECORD.write_text(json.dumps([*runs, asdict(run)], indent=1) + "\n", encoding="utf-8")
    print(report([run]))
    return 0


async def hold_class(students: int, chapter: str, threads: int) -> Run:
    """Let all students run the chapter at once; return what it took."""
    source = next(s for s in built_sources() if s.stem.startswith(chapter))
    started = time.perf_counter()
    everybody_done = asyncio.Event()
    with tempfile.TemporaryDirectory() as homes, Watch() as watch:
        seats = [
            Seat(source, Path(homes, str(number)), threads, watch, everybody_done)
            for number in range(students)
        ]
        sitting = [asyncio.create_task(seat.sit()) for seat in seats]
        await asyncio.gather(*(seat.finished() for seat in seats))
        wall = time.perf_counter() - started
        after = [memory_of(seat.pid) for seat in seats]
        used = [cpu_seconds(seat.pid) for seat in seats]
        everybody_done.set()
        await asyncio.gather(*sitting)
    server = await asyncio.to_thread(server_memory)
    return Run(
        date=datetime.date.today().isoformat(),
        machine=f"{os.cpu_count()} cores, {platform.machine()}",
        chapter=chapter,
        students=students,
        threads=threads,
        wall_seconds=round(wall, 1),
        seconds_each=[round(seat.seconds, 1) for seat in seats],
        cpu_seconds_each=[round(seconds, 1) for seconds in used],
        peak_pss=watch.peak,
        pss_each=[memory.pss for memory in after],
        private_each=[memory.private for memory in after],
        weights=Memory.sum_of([memory.weights for memory in after if memory.weights]),
        server_pss=server,
    )


class Seat:
    """One student: a kernel that runs the chapter, then stays until everybody is done."""

    def __init__(
        self, source: Path, home: Path, threads: int, watch: Watch, done: asyncio.Event
    ) -> None:
        self.notebook = nbformat.read(notebook_of(source), as_version=4)
        self.home, self.threads, self.watch, self.everybody_done = home, threads, watch, done
        self.pid, self.seconds = 0, 0.0
        self._ran = asyncio.Event()
        self._failed: BaseException | None = None

    async def sit(self) -> None:
        """Run every cell, and keep the kernel until the class is over."""
        self.home.mkdir()
        started = time.perf_counter()
        client = client_for(self.notebook, ROOT / "chapters")
        own = {"KVLAB_PROGRESS": str(self.home / "progress.json")}
        own["OMP_NUM_THREADS"] = str(self.threads)
        async with client.async_setup_kernel(env=os.environ | QUIET | own):
            self.pid = client.km.provisioner.pid
            self.watch.pids.append(self.pid)
            try:
                for index, cell in enumerate(self.notebook.cells):
                    await client.async_execute_cell(cell, index)
            except BaseException as error:  # told to the class, which then ends
                self._failed = error
            self.seconds = time.perf_counter() - started
            self._ran.set()
            await self.everybody_done.wait()
            self.watch.pids.remove(self.pid)

    async def finished(self) -> None:
        """Wait until the chapter has run; raise what stopped it."""
        await self._ran.wait()
        if self._failed is not None:
            self.everybody_done.set()
            raise self._failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
