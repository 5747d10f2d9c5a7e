"""Colab: every chapter's first cell, the stand-in for its kernel, and what the trial would find.

The trial itself runs in `make test-lowest`: it needs the second environment.
"""

import types
from importlib import metadata
from pathlib import Path

import colab_stand_in
import lowest_environment
import nbformat
import pytest
from built_chapters import built_sources
from chapter_pairs import notebook_of
from colab_cell import colab_cell, with_colab
from colab_judge import changed, findings, first_cell, spoken, still, wrong_versions
from colab_stand_in import make_stand_in
from lowest_environment import COLAB, TRANSFORMERS, ensure_lowest, stamp
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook, new_output
from packaging.requirements import Requirement
from run_notebook import WIDGET_VIEW, code_cells

from kvlab.course.address import colab_badge, install_source
from kvlab.doctor import colab
from kvlab.errors import ModelUnavailable

SOURCES = built_sources()
GOOD = {name: version for name, version in COLAB.items() if name != "ipython"}
GOOD |= {"IPython": COLAB["ipython"], "transformers": TRANSFORMERS, "kvlab": "/site/kvlab/a.py"}
STATE = "application/vnd.jupyter.widget-state+json"


@pytest.mark.parametrize("source", SOURCES, ids=lambda s: s.stem[:2])
def test_a_chapter_opens_with_the_cell_for_colab_and_its_badge(source: Path) -> None:
    text = source.read_text(encoding="utf-8")
    assert with_colab(source) == text, "run python tools/colab_cell.py"
    first = code_cells(nbformat.read(notebook_of(source), as_version=4))[0]
    assert first.source == colab_cell(text).rstrip() and first.outputs == []
    assert "install -q --no-deps {source}" in first.source and install_source() in first.source
    assert colab_badge(f"{source.stem}.ipynb") in text


def test_another_address_or_a_lost_line_is_seen(tmp_path: Path) -> None:
    text = SOURCES[3].read_text(encoding="utf-8")
    moved = tmp_path / SOURCES[3].name
    moved.write_text(text.replace("kvlab/kvlab", "somebody/course"), encoding="utf-8")
    assert with_colab(moved) == text != moved.read_text(encoding="utf-8")


def test_gguf_and_pint_pin_nothing_so_that_nothing_is_replaced() -> None:
    lines = [line for name in ("gguf", "pint") for line in metadata.requires(name) or ()]
    needed = [Requirement(line) for line in lines]
    plain = [one for one in needed if not one.marker or one.marker.evaluate({"extra": ""})]
    assert {"numpy", "tqdm"} <= {one.name.lower() for one in plain}
    have = {"numpy": "2.1.3", "tqdm": "4.67.3"}  # Colab's list of 2026-08-19
    for one in plain:
        assert {part.operator for part in one.specifier} <= {">="}, str(one)
        assert one.name not in have or one.specifier.contains(have[one.name])
        assert one.name.lower() not in ("torch", "transformers", "ipywidgets")


def test_prepare_says_where_models_run_and_goes_on_without_smollm2(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unavailable() -> None:
        raise ModelUnavailable("no network")

    monkeypatch.setattr("kvlab.model.weights.ensure_smollm2", unavailable)
    said = colab.prepare()
    assert said.startswith("Models run on ") and "bundled models take its place" in said
    assert "no network" in said and "\n" in said
    assert "SmolLM2" not in colab.prepare(weights=False)


def test_the_stand_in_answers_its_one_install_line_and_refuses_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_stand_in(tmp_path, Path("python"), Path("a.whl"), install_source())
    text = (tmp_path / "ipython/profile_default/startup/00-colab.py").read_text(encoding="utf-8")
    compile(text, "startup", "exec")
    calls: list[list[str]] = []
    space: dict[str, object] = {"calls": calls}
    lines = text.split("def pip", 1)[1].split("\n\n\nget_ipython", 1)[0]
    run = types.SimpleNamespace(run=lambda command, **_: calls.append(command))
    space |= {"subprocess": run, "EXPECTED": install_source(), "SITE": "s", "WHEEL": "a.whl"}
    space |= {"sys": types.SimpleNamespace(executable="python", path=["", "x"])}
    exec(f"def pip{lines}", space)
    pip = space["pip"]
    pip(f"install -q --no-deps {install_source()}")  # type: ignore[operator]
    assert "--no-deps" in calls[0] and calls[0][-1] == "a.whl"
    for line in ("install -q torch", "install -q --no-deps git+https://example.org/x"):
        with pytest.raises(RuntimeError, match="something else"):
            pip(line)  # type: ignore[operator]
    assert colab_stand_in.NAME in str(next(tmp_path.rglob("kernel.json")))


def ran(*outputs: NotebookNode, source: str = "x", tags: tuple[str, ...] = ()) -> NotebookNode:
    first = new_code_cell("setup", outputs=[new_output("stream", text="Models run on cpu.")])
    cell = new_code_cell(source, outputs=list(outputs), metadata={"tags": list(tags)})
    return new_notebook(cells=[first, cell], metadata={"widgets": {STATE: {"state": {}}}})


def shown(**data: object) -> NotebookNode:
    return new_output("display_data", {name.replace("_", "/"): v for name, v in data.items()})


def test_a_chapter_that_ran_well_gives_no_finding() -> None:
    notebook = ran(new_output("stream", text="42\n"))
    assert findings(notebook, notebook, GOOD, Path("/site")) == []


def test_each_breach_is_one_finding() -> None:
    assert len(list(wrong_versions(GOOD | {"ipywidgets": "8.1.9"}, Path("/site")))) == 1
    assert len(list(wrong_versions(GOOD, Path("/elsewhere")))) == 1
    assert len(list(first_cell(new_notebook(cells=[new_code_cell("x")])))) == 1
    view = new_output("display_data", {WIDGET_VIEW: {"model_id": "a"}})
    lonely = ran(view)
    assert len(list(spoken(lonely))) == len(list(still(lonely))) == 1
    state = {"model_name": "Stack", "model_module": "@jupyter-widgets/controls"}
    lonely.metadata["widgets"][STATE]["state"]["a"] = state | {"model_module_version": "2.0.0"}
    assert [line.split()[0] for line in spoken(lonely)] == ["Stack"]
    lonely.metadata["widgets"][STATE]["state"]["a"]["model_module_version"] = "1.5.0"
    view.data["image/svg+xml"] = "<svg/>"
    assert [*spoken(lonely), *still(lonely)] == []


def test_an_output_that_should_be_the_same_and_is_not_is_found() -> None:
    stored, now = (ran(new_output("stream", text=text)) for text in ("42\n", "43\n"))
    assert len(list(changed(now, stored))) == 1
    assert len(list(changed(ran(), stored))) == 1
    tags = ("nbval-ignore-output",)
    loose = (ran(new_output("stream", text=text), tags=tags) for text in ("42\n", "43\n"))
    assert list(changed(*loose)) == []


def test_the_second_environment_is_made_once_and_again_when_a_version_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def create(folder: Path) -> None:
        lowest_environment.python_of(folder).parent.mkdir(parents=True, exist_ok=True)
        lowest_environment.python_of(folder).touch()

    monkeypatch.setattr(lowest_environment, "create", create)
    monkeypatch.setattr(lowest_environment, "see_first", lambda *_: None)
    monkeypatch.setattr(lowest_environment, "call", lambda c, _: made.append(" ".join(map(str, c))))
    for _ in range(2):
        ensure_lowest(tmp_path / "second", tmp_path / "first")
    assert len(made) == 1 and f"transformers=={TRANSFORMERS}" in made[0]
    assert all(f"{name}=={version}" in made[0] for name, version in COLAB.items())
    monkeypatch.setitem(COLAB, "plotly", "5.24.0")
    ensure_lowest(tmp_path / "second", tmp_path / "first")
    assert len(made) == 2
    assert stamp(tmp_path / "none", ["a"]) != stamp(tmp_path / "none", ["b"])
