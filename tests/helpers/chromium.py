"""Chromium and axe-core for tests that need a browser; a missing one skips with its reason."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
AXE_VERSION = "4.14.1"
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
]  # fmt: skip


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Give Debian's Chromium, headless."""
    found = os.environ.get("KVLAB_CHROMIUM") or next(
        filter(None, map(shutil.which, CHROMIUM)), None
    )
    if not found:
        pytest.skip("no Chromium here; on Debian or Ubuntu: apt install chromium")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def axe() -> Path:
    """Give axe-core, fetched once with npm and kept under .cache."""
    folder = ROOT / ".cache" / "axe"
    script = folder / "node_modules" / "axe-core" / "axe.min.js"
    if script.exists():
        return script
    npm = shutil.which("npm")
    if not npm:
        pytest.skip("axe-core is not here, and there is no npm to fetch it")
    folder.mkdir(parents=True, exist_ok=True)
    options = ("--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=0")
    command = [npm, "install", *options, f"axe-core@{AXE_VERSION}"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    if not script.exists():
        pytest.skip(f"axe-core could not be fetched: {done.stderr.strip()[-200:]}")
    return script
