"""One copy of the weights for a class: read-only, mapped by every kernel, copied by none."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kvlab._paths import user_dir
from kvlab.model.weights import FOLDER_PINS, is_available

STUDENT = """
import os, sys
from pathlib import Path
from class_memory import memory_of
from kvlab._paths import user_dir
from kvlab.course.progress import Progress
from kvlab.doctor.machine import storage
from kvlab.model.decode import generate
from kvlab.model.load import load_model

assert not os.access(user_dir(), os.W_OK), "this process may write everywhere"
loaded = load_model("smollm2", device="cpu", dtype="float32")
steps = list(generate(loaded.model, loaded.encode("The capital of France is"), max_new_tokens=2))
print(loaded.decode([step.token_id for step in steps]).strip())
progress = Progress()
assert progress.record("00-a", "right", right=True), progress.note
print(progress.path.is_relative_to(Path.home()), progress.score(["00-a"]))
(row,) = (row for row in storage() if row.name == "kvlab's folder")
print(row.ok, row.value)
weights = memory_of(os.getpid()).weights
print(weights.private_dirty, weights.rss > 400_000_000)
"""


def may_not_write(command: list[str]) -> list[str]:
    """Return the command such that file rights hold for it, even where the tests run as root."""
    if os.geteuid() != 0:
        return command
    if not shutil.which("setpriv"):
        pytest.skip("running as root, and no setpriv to give its rights up")
    return ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *command]


@pytest.mark.weights
@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="needs Linux: /proc/self/smaps")
def test_a_student_uses_a_shared_folder_in_which_only_reading_is_allowed(tmp_path: Path) -> None:
    if not is_available("smollm2"):
        pytest.skip("SmolLM2 is not here")
    shared, home = tmp_path / "shared", tmp_path / "home"
    (shared / "smollm2").mkdir(parents=True)
    home.mkdir()
    for path in (user_dir() / "smollm2").iterdir():
        (shared / "smollm2" / path.name).symlink_to(path)
    before = sorted(path.name for path in shared.rglob("*"))
    assert {pin.name for pin in FOLDER_PINS} < set(before)
    for folder in (shared / "smollm2", shared):
        folder.chmod(0o555)
    own = {"HOME": str(home), "KVLAB_HOME": str(shared), "XDG_CACHE_HOME": ""}
    tools = str(Path(__file__).resolve().parents[2] / "tools")
    environ = {k: v for k, v in os.environ.items() if k != "KVLAB_PROGRESS"}
    try:
        done = subprocess.run(
            may_not_write([sys.executable, "-c", STUDENT]),
            env=environ | own | {"PYTHONPATH": tools},
            capture_output=True,
            text=True,
        )
    finally:
        for folder in (shared, shared / "smollm2"):
            folder.chmod(0o755)
    assert done.returncode == 0, done.stderr
    written, kept, row, memory = done.stdout.splitlines()
    assert written and kept == "True (1, 1)"
    assert row.startswith("True ") and "shared; answers: ~" in row
    assert memory == "0 True", "the mapped weights were copied"
    assert sorted(path.name for path in shared.rglob("*")) == before
