"""What has to hold for a chapter that ran as in Colab; each breach is one line.

Looking at a notebook that ran is all it does: running it is `colab_trial`.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from chapter_pairs import tags_of
from lowest_environment import COLAB, TRANSFORMERS
from nbformat import NotebookNode
from run_notebook import WIDGET_VIEW, code_cells

VERSIONS = """\
import importlib, json
names = ("ipywidgets", "ipykernel", "IPython", "plotly", "anywidget", "transformers", "torch")
found = {name: importlib.import_module(name).__version__ for name in names}
import kvlab, resource, sys
found |= {"python": sys.version.split()[0], "kvlab": kvlab.__file__}
found["memory"] = f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9:.1f} GB"
print(json.dumps(found))
"""
SPOKEN = {
    ("@jupyter-widgets/base", "1.2.0"),
    ("@jupyter-widgets/controls", "1.5.0"),
    ("@jupyter-widgets/output", "1.0.0"),
}
"""The models of ipywidgets 7, which is what Colab's page draws."""
WIDGET_STATE = "application/vnd.jupyter.widget-state+json"
PICTURES = ("image/svg+xml", "text/html")
OF_THE_PLACE = re.compile(r"github|colab|\(coming\)|href=")


def versions_of(cell: NotebookNode) -> dict[str, str]:
    """Return what the last cell printed: the versions that this kernel loaded."""
    return json.loads("".join(output.text for output in cell.outputs))


def findings(
    notebook: NotebookNode, stored: NotebookNode, versions: dict[str, str], site: Path
) -> list[str]:
    """Return all breaches of a chapter that ran."""
    found = [*wrong_versions(versions, site), *first_cell(notebook), *spoken(notebook)]
    return [*found, *still(notebook), *said_on_stderr(notebook), *changed(notebook, stored)]


def wrong_versions(versions: dict[str, str], site: Path) -> Iterator[str]:
    """Colab's versions have won inside the kernel, and the course came out of the wheel."""
    wanted = {name: version for name, version in COLAB.items() if name != "ipython"}
    wanted |= {"IPython": COLAB["ipython"], "transformers": TRANSFORMERS}
    for name, version in wanted.items():
        if versions[name] != version:
            yield f"the kernel has {name} {versions[name]}, Colab {version}"
    if not Path(versions["kvlab"]).is_relative_to(site):
        yield f"kvlab was loaded from {versions['kvlab']}, not from the wheel"


def first_cell(notebook: NotebookNode) -> Iterator[str]:
    """The first cell says where models run."""
    text = "".join(output.get("text", "") for output in code_cells(notebook)[0].outputs)
    if not text.startswith("Models run on "):
        yield f"the first cell says {text!r}"


def spoken(notebook: NotebookNode) -> Iterator[str]:
    """Every widget is a model of ipywidgets 7, and every view belongs to one."""
    models = notebook.metadata.get("widgets", {}).get(WIDGET_STATE, {}).get("state", {})
    for model in models.values():
        if (model["model_module"], model["model_module_version"]) not in SPOKEN:
            module = f"{model['model_module']} {model['model_module_version']}"
            yield f"{model['model_name']} speaks {module}, which Colab's page does not"
    for cell in code_cells(notebook):
        for output in cell.outputs:
            view = output.get("data", {}).get(WIDGET_VIEW)
            if view and view["model_id"] not in models:
                yield f"a widget without a model in\n{cell.source}"


def still(notebook: NotebookNode) -> Iterator[str]:
    """Beside each widget stands a picture, for a page that draws no widgets."""
    for cell in code_cells(notebook):
        for output in cell.outputs:
            data = output.get("data", {})
            if WIDGET_VIEW in data and not any(name in data for name in PICTURES):
                yield f"a widget without a picture in\n{cell.source}"


def said_on_stderr(notebook: NotebookNode) -> Iterator[str]:
    """No warning stands where a learner would read it."""
    for cell in code_cells(notebook):
        for output in cell.outputs:
            if output.get("name") == "stderr" and "raises-exception" not in tags_of(cell):
                yield f"on stderr: {output.text[:300]!r}"


def changed(notebook: NotebookNode, stored: NotebookNode) -> Iterator[str]:
    """What does not depend on the machine is what the stored chapter shows."""
    pairs = zip(code_cells(notebook), code_cells(stored), strict=True)
    for number, (cell, before) in enumerate(pairs, start=1):
        if number == 1 or "nbval-ignore-output" in tags_of(cell):
            continue
        for one, other in zip(texts(before), texts(cell), strict=False):
            if one != other and not OF_THE_PLACE.search(one + other):
                yield f"code cell {number} shows {other[:160]!r}, stored {one[:160]!r}"
        if len(texts(before)) != len(texts(cell)):
            yield f"code cell {number} has {len(texts(cell))} outputs, not {len(texts(before))}"


def texts(cell: NotebookNode) -> list[str]:
    """Return what a cell's outputs say, as text."""
    shown = []
    for output in cell.outputs:
        data = output.get("data", {})
        shown.append(output.get("text") or data.get("text/plain") or output.get("evalue", ""))
    return shown
