"""The doctor: says what is here and what to do, and never fails itself."""

import builtins
import io
import json
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from kvlab.doctor import Report, Row, doctor, machine, packages

HEAVY = ("torch", "transformers", "plotly", "ipywidgets", "IPython", "matplotlib")


@pytest.fixture
def report() -> Report:
    """Give the report without torch's part: quick."""
    return doctor(import_torch=False)


def _row(report: Report, name: str) -> Row:
    (found,) = [row for row in report.rows if row.name == name]
    return found


def test_it_names_what_a_learner_may_be_asked_for(report: Report) -> None:
    names = {row.name for row in report.rows}
    wanted = {"python", "system", "processor cores", "memory", "disk free", "kvlab's folder"}
    wanted |= {"torch", "transformers", "ipywidgets", "plotly", "jupyterlab", "widgets"}
    assert wanted | {"model smollm2", "model tiny", "C compiler", "network"} <= names


def test_versions_are_those_installed(report: Report) -> None:
    for name in ("torch", "transformers", "plotly", "ipywidgets"):
        assert _row(report, name).value == metadata.version(name)
        assert _row(report, name).ok


def test_it_loads_no_heavy_package_unless_asked() -> None:
    code = (
        "import sys; from kvlab.doctor import doctor; doctor(import_torch=False);"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8")
    assert done.stdout.strip() == "[]", done.stderr


def test_the_device_is_said_with_its_dtype() -> None:
    pytest.importorskip("torch")
    row = _row(doctor(), "device")
    assert row.ok
    assert any(dtype in row.value for dtype in ("float32: ", "bfloat16: "))


def test_it_is_plain_data_for_json(report: Report) -> None:
    content = json.loads(json.dumps(report.to_dict()))
    assert content["rows"][0]["name"] == "python"
    assert content["ok"] is report.ok


def test_whatever_is_wrong_comes_with_advice(report: Report) -> None:
    assert all(row.advice for row in report.rows if row.ok is False)


# ---- broken and missing packages --------------------------------------------------------------


def _with_version(monkeypatch: pytest.MonkeyPatch, name: str, version: Callable[[], Any]) -> None:
    real = metadata.version
    monkeypatch.setattr(
        metadata, "version", lambda asked: version() if asked == name else real(asked)
    )


def _raise(error: BaseException) -> Any:
    raise error


def test_a_missing_package_is_named_with_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    _with_version(monkeypatch, "plotly", lambda: _raise(metadata.PackageNotFoundError("plotly")))
    row = _row(doctor(import_torch=False), "plotly")
    assert (row.value, row.ok) == ("not installed", False)
    assert row.advice.startswith('python -m pip install "plotly>=')


def test_a_version_out_of_range_is_named_with_the_range(monkeypatch: pytest.MonkeyPatch) -> None:
    _with_version(monkeypatch, "ipywidgets", lambda: "9.0.0")
    row = _row(doctor(import_torch=False), "ipywidgets")
    assert row.ok is False
    assert "<9" in row.value
    assert "<9" in row.advice


@pytest.mark.parametrize("damage", [lambda: "not a version!", lambda: _raise(RuntimeError("torn"))])
def test_damaged_metadata_is_a_row(
    damage: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    _with_version(monkeypatch, "torch", damage)
    row = _row(doctor(import_torch=False), "torch")
    assert row.ok is False
    assert row.advice


@pytest.mark.parametrize(
    "error", [ImportError("no torch"), OSError("bad\nlibrary"), RuntimeError()]
)
def test_a_torch_that_does_not_import_is_a_row(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def broken(name: str, *args: Any, **kwargs: Any) -> Any:
        return (
            _raise(error)
            if name.startswith(("torch", "kvlab.model.device"))
            else real(name, *args, **kwargs)
        )

    monkeypatch.setattr(builtins, "__import__", broken)
    row = _row(doctor(), "device")
    assert row.ok is False
    assert type(error).__name__ in row.value
    assert "\n" not in row.value


def test_run_from_a_folder_without_installation_it_still_reports(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        metadata, "requires", lambda name: _raise(metadata.PackageNotFoundError(name))
    )
    assert _row(doctor(import_torch=False), "jupyterlab").name == "jupyterlab"


# ---- kernels and widgets ----------------------------------------------------------------------


def test_a_package_replaced_under_a_running_kernel_asks_for_a_restart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "numpy", SimpleNamespace(__version__="0.0.1"))
    (row,) = packages.restart_needed()
    assert row.ok is False
    assert row.advice.startswith("restart the kernel")
    assert "0.0.1" in row.value


def _in_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))


def _widgets() -> Row:
    (row,) = packages.widgets()
    return row


def test_widgets_are_alive_in_a_kernel_with_both_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _widgets().ok is None  # a terminal
    _in_kernel(monkeypatch)
    assert _widgets().ok is True


def test_halves_of_different_generations_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    _in_kernel(monkeypatch)
    _with_version(monkeypatch, "jupyterlab_widgets", lambda: "1.1.11")
    assert _widgets().ok is False
    assert "1.1.11" in _widgets().value


def test_missing_widgets_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    _with_version(monkeypatch, "ipywidgets", lambda: _raise(metadata.PackageNotFoundError("x")))
    assert "ipywidgets is missing" in _widgets().value


# ---- the machine ------------------------------------------------------------------------------


def test_models_that_are_not_here_are_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KVLAB_HOME", str(tmp_path / "not yet" / "there"))
    found = doctor(import_torch=False)
    assert _row(found, "model smollm2").ok is None
    assert "kvlab fetch smollm2" in _row(found, "model smollm2").advice
    assert not (tmp_path / "not yet").exists()


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KVLAB_HOME", str(tmp_path))
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda path: SimpleNamespace(free=10**6))
    row = _row(doctor(import_torch=False), "disk free")
    assert row.ok is False
    assert "0.8 GB" in row.advice


def test_without_psutil_the_memory_is_still_known(monkeypatch: pytest.MonkeyPatch) -> None:
    before = machine.memory_bytes()
    monkeypatch.setitem(sys.modules, "psutil", None)
    assert before is not None
    if sys.platform != "win32":
        assert machine.memory_bytes() == before


# ---- how it looks -----------------------------------------------------------------------------

AWKWARD = Report((Row("a & b", "<script>[red]x[/red]", False, "say [bold]"), Row("c", "d", True)))


def test_html_is_themed_escaped_and_well_formed() -> None:
    html = AWKWARD._repr_html_()
    assert "var(--jp-ui-font-color1" in html
    assert "<script>" not in html
    assert "#" not in html.replace("&#", "")  # no colour of its own

    tags: list[str] = []

    class Balance(HTMLParser):
        def handle_starttag(self, tag: str, attrs: Any) -> None:
            tags.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert tags.pop() == tag

    Balance().feed(html)
    assert tags == []


def test_a_terminal_shows_the_words_as_they_are() -> None:
    screen = io.StringIO()
    Console(file=screen, width=120).print(AWKWARD)
    assert "<script>[red]x[/red]" in screen.getvalue()
    assert "look" in screen.getvalue()


def test_as_text_it_is_one_line_for_each_row() -> None:
    assert str(AWKWARD).splitlines() == [
        "look  a & b  <script>[red]x[/red]  -> say [bold]",
        "ok    c      d",
    ]
