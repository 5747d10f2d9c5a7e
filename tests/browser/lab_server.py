"""A real JupyterLab on a copy of some notebooks, alone on loopback, gone when the test is."""

import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SETTINGS = {
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "notebook-extension/tracker": {"windowingMode": "none"},  # every cell is in the page
    "extensionmanager-extension/plugin": {"enabled": False},
    "docmanager-extension/plugin": {"autosave": False},  # or a slow run saves views of its kernel
}
OPTIONS = (
    "--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1", "--log-level=WARN",
    "--LabApp.expose_app_in_browser=True", "--LabApp.extension_manager=readonly",
    "--ServerApp.port_retries=0",
)  # fmt: skip


@dataclass
class LabServer:
    """Where a lab answers, and the folders that it lives in."""

    base: str
    token: str
    folder: Path

    def address(self, notebook: str) -> str:
        """Return the address at which one notebook opens, in a workspace of its own."""
        return (
            f"{self.base}/lab/workspaces/{secrets.token_hex(4)}/tree/{notebook}?token={self.token}"
        )

    def write_settings(self, name: str, values: dict[str, object]) -> None:
        """Set a plugin's settings; a page opened from now on has them."""
        path = self.folder / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values), encoding="utf-8")

    def set_theme(self, theme: str) -> None:
        """Choose "Light" or "Dark" for pages opened from now on."""
        self.write_settings("apputils-extension/themes", {"theme": f"JupyterLab {theme}"})

    def end_kernels(self) -> None:
        """Shut every kernel down, so that the next page starts afresh and memory is free."""
        ask = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        sessions = f"{self.base}/api/sessions"
        authorized = {"Authorization": f"token {self.token}"}
        request = urllib.request.Request(sessions, headers=authorized)
        for session in json.load(ask.open(request, timeout=30)):
            address = f"{sessions}/{session['id']}"
            ask.open(urllib.request.Request(address, headers=authorized, method="DELETE"))


@contextlib.contextmanager
def running_lab(notebooks: Path, folder: Path) -> Iterator[LabServer]:
    """Give a lab whose root is a copy of the folder `notebooks`; `folder` holds all it writes."""
    shutil.copytree(notebooks, folder / "root", ignore=shutil.ignore_patterns("src", ".*"))
    port = free_port()
    lab = LabServer(f"http://127.0.0.1:{port}", secrets.token_hex(16), folder)
    for name, values in SETTINGS.items():
        lab.write_settings(name, dict(values))
    command = [
        sys.executable, "-m", "jupyterlab", *OPTIONS, f"--port={port}",
        f"--IdentityProvider.token={lab.token}", f"--ServerApp.root_dir={folder / 'root'}",
    ]  # fmt: skip
    log = folder / "lab.log"
    with log.open("w", encoding="utf-8") as out:
        process = subprocess.Popen(
            command, env=own_environment(folder), stdout=out, stderr=out, start_new_session=True
        )
    try:
        wait_until_it_answers(lab, process, log)
        yield lab
    finally:
        end(process)


def own_environment(folder: Path) -> dict[str, str]:
    """Return variables under which a lab touches neither settings nor answers of the learner.

    One thread for each kernel: the browser works beside it, and threads that wait for a core that
    another program holds make a small model many times slower.
    """
    places = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "IPYTHONDIR": "ipython",
        "KVLAB_PROGRESS": "progress.json",  # a button that is pressed here deletes answers
    }
    threads = {"OMP_NUM_THREADS": "1"}
    return os.environ | threads | {name: str(folder / place) for name, place in places.items()}


def free_port() -> int:
    """Return a port of this machine that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until_it_answers(lab: LabServer, process: "subprocess.Popen[bytes]", log: Path) -> None:
    """Return when the lab answers; raise with its log when it ends or keeps silent for a minute."""
    ask = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for _ in range(120):
        with contextlib.suppress(OSError):
            ask.open(f"{lab.base}/api/status?token={lab.token}", timeout=2)
            return
        if process.poll() is not None:
            break
        time.sleep(0.5)
    raise RuntimeError("no lab: " + log.read_text(encoding="utf-8", errors="replace"))


def end(process: "subprocess.Popen[bytes]") -> None:
    """End the lab and its kernels."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(timeout=15)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
