"""Running a C compiler that nobody here knows: it may be missing, wrong, talkative or stuck.

Whatever it does, what comes back is a file or one readable line. Left out: Windows.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from kvlab.errors import Unsupported

SOURCES = (
    "fast_step.c",
    "fast_layers.h",
    "fast_attention.h",
    "fast_panels.h",
    "fast_products.h",
    "fast_numbers.h",
)
FOLDER = Path(__file__).parent
FLAGS = ("-std=gnu11", "-O3", "-shared", "-fPIC", "-w")
ATTEMPTS = (  # the first that compiles counts; not every clang knows OpenMP, nor every -march
    ("-march=native", "-fopenmp"),
    ("-march=native", "-pthread"),
    ("-fopenmp",),
    ("-pthread",),
)
QUIET, PATIENCE = 2.0, 60.0  # seconds until one says that it compiles, and until one gives up
MOST_WORDS = 300  # characters of what a compiler says


def find_compiler() -> list[str] | None:
    """Return the command of a C compiler, or None where there is none.

    Raises `Unsupported` where `CC` can't be read as a command.
    """
    if os.name != "posix":
        return None
    try:
        named = shlex.split(os.environ.get("CC", ""))
    except ValueError as error:
        said = f"fast path: CC={os.environ['CC']!r} can't be read as a command ({error})"
        raise Unsupported(said) from None
    for command in (named, ["cc"], ["gcc"], ["clang"]):
        if command and shutil.which(command[0]):
            return command
    return None


def compile_to(made: Path) -> None:
    """Write the compiled C of the fast path to a file that nobody reads yet.

    Raises `Unsupported` with one line where there is no compiler, where it fails, and where it
    takes longer than a minute: then it and all that it started are ended.
    """
    compiler = find_compiler()
    if compiler is None:
        raise Unsupported("fast path: there is no C compiler here (cc, gcc or clang)")
    said = ""
    for attempt in ATTEMPTS:
        command = [*compiler, *FLAGS, *attempt, str(FOLDER / SOURCES[0]), "-o", str(made), "-lm"]
        try:
            code, said = _run(command)
        except OSError as error:
            code, said = 1, f"error: {error}"
        if code == 0 and made.is_file():
            return
        if code == 0:
            said = "error: it says that all is well, and wrote no file"
    raise Unsupported(f"fast path: {compiler[0]} does not compile it ({first_error(said)})")


def first_error(said: str) -> str:
    """Return the line that tells most of what a compiler said, short enough to be read.

    >>> first_error("In file a.c:\\na.c:3: error: no such thing\\ncompilation ended.")
    'a.c:3: error: no such thing'
    """
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    telling = [line for line in lines if "error" in line.lower()] or lines[-1:]
    line = telling[0] if telling else "it said nothing"
    line = "".join(letter if letter.isprintable() else " " for letter in line)
    return line if len(line) <= MOST_WORDS else f"{line[:MOST_WORDS]}..."


def _run(command: list[str]) -> tuple[int, str]:
    """Return exit code and words. In a session of its own, so that its children end with it."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    with process:
        try:
            return _wait(process, command[0])
        except subprocess.TimeoutExpired:
            line = f"fast path: {command[0]} did not compile it in {PATIENCE:g} seconds"
            _end(process)
            raise Unsupported(line) from None
        except BaseException:  # Ctrl-C too: a session of its own does not hear it
            _end(process)
            raise


def _end(process: "subprocess.Popen[str]") -> None:
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)


def _wait(process: "subprocess.Popen[str]", name: str) -> tuple[int, str]:
    """Wait for it, and say so once it takes long enough for somebody to wonder."""
    try:
        said = process.communicate(timeout=min(QUIET, PATIENCE))[1]
    except subprocess.TimeoutExpired:
        line = f"kvlab: {name} compiles the fast path, once for this machine"
        print(line, file=sys.stderr, flush=True)
        said = process.communicate(timeout=max(PATIENCE - QUIET, 0.0))[1]
    return process.returncode, said
