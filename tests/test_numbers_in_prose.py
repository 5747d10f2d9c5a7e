"""Every figure in the chapters' text and in the README is tied to a computed value.

A figure is tied when a code cell of its chapter holds it, or the output of one: there it is
computed or asserted. Any other figure must stand in `TIES`, with what it is computed from.
Left out: single digits, years, and the numbers of chapters, sections, minutes and links.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from engines import LLAMACPP, VLLM_CPU

from kvlab.arithmetic.catalogue import find_model
from kvlab.arithmetic.gpus import find_gpu
from kvlab.model.fetch import WHEEL
from kvlab.model.weights import FOLDER_PINS
from kvlab.serving.limits import Limits

ROOT = Path(__file__).resolve().parents[1]
CHAPTERS = sorted((ROOT / "chapters").glob("[0-9]*.ipynb"))
GUIDE = sorted((ROOT / "chapters" / "instructors").glob("*.md"))
LEFT_OUT = re.compile(
    r"\]\([^)]*\)|https?://\S+|<[^>]*>|`[^`]*`|arXiv[: ]\S+"
    r"|chapters?\s+\d\d(?:(?:,| and| to)\s+\d\d)*|\b\d\d-[a-z]\b|·\s*\d+ minutes"
    r"|\*\*(?:Core|deep dives)\*\* \d+ minutes|section \d+|^#+ \d+\.|\b(?:19|20)\d\d\b"
    r"|^# \d\d |Next:\*\* \d\d",
    re.IGNORECASE | re.MULTILINE,
)
NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?!\w)")


TIES: dict[tuple[str, str], Callable[[], object]] = {
    ("00", "90"): lambda: "a title: the tour of course 00 takes 90 seconds to read",
    ("02", "3000"): lambda: 2000 + 1000 == 3000,  # a slip shown as one: P + N
    ("03", "2560"): lambda: find_model("qwen3-4b").config["hidden_size"] == 2560,
    ("03", "40960"): lambda: find_model("qwen3-4b").config["max_position_embeddings"] == 40960,
    ("10", "256"): lambda: Limits().max_running == 256,
    ("11", "79.65"): lambda: f"{find_gpu('H100').driver_bytes / 2**30:.2f}" == "79.65",
    ("11", "85.5"): lambda: f"{find_gpu('H100').driver_bytes / 1e9:.1f}" == "85.5",
    ("11", "93"): lambda: "tests/chapters/test_11.py recomputes it",
    ("08", "000"): lambda: "the form of an answer: eight bits",
    ("README", "3.11"): lambda: (
        tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
        == ">=3.11"
    ),
    ("README", "93"): lambda: round(WHEEL.size / 1e6) == 93,
    # the checkpoint in float32, and what the folder holds for a moment while it is unpacked
    ("README", "0.8"): lambda: 0.5 < sum(pin.size for pin in FOLDER_PINS) / 1e9 < 0.8,
    ("README", "0.1"): lambda: "0.1.2" in WHEEL.name,
    ("README", "34"): lambda: "34 MB" in LLAMACPP.first,
    ("README", "2.5"): lambda: "2.5 GB" in VLLM_CPU.first,
    ("README", "2.0"): lambda: "Apache-2.0" in (ROOT / "pyproject.toml").read_text(),
    ("README", "4.0"): lambda: "4.0" in (ROOT / "LICENSE-TEXT").read_text(),
    ("instructors/README", "12"): lambda: "minutes; tests/demo/test_instructors.py adds them up",
    ("instructors/README", "14"): lambda: "minutes; tests/demo/test_instructors.py adds them up",
    ("instructors/class", "0.6"): lambda: "tests/tools/test_class_trial.py compares it",
    ("instructors/class", "0.8"): lambda: 0.5 < sum(pin.size for pin in FOLDER_PINS) / 1e9 < 0.8,
}
"""(page, figure) -> what ties it: True, or a sentence where nothing is computed."""


def figures_in(markdown: str) -> Iterator[str]:
    """Yield the figures of a text, without separators, leaving out what is no quantity."""
    for match in NUMBER.finditer(LEFT_OUT.sub(" ", markdown)):
        figure = match.group().rstrip(",").replace(",", "")
        if len(figure) > 1 and figure != "10":
            yield figure


def figures_computed(notebook: dict) -> set[str]:
    """Return every figure in the code of a notebook and in what the code showed."""
    texts = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            texts.append("".join(cell["source"]))
            for output in cell["outputs"]:
                parts = [output.get("text", ""), *output.get("data", {}).values()]
                texts += ["".join(part) if isinstance(part, list) else str(part) for part in parts]
    whole = "\n".join(texts).replace("_", "")
    return {figure.replace(",", "") for figure in re.findall(r"\d[\d,]*(?:\.\d+)?", whole)}


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem[:2])
def test_every_figure_in_a_chapters_text_is_computed_in_it_or_tied(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    known, chapter = figures_computed(notebook), path.stem[:2]
    untied = [
        (figure, "".join(cell["source"])[:60])
        for cell in notebook["cells"]
        if cell["cell_type"] == "markdown"
        for figure in figures_in("".join(cell["source"]))
        if figure not in known and (chapter, figure) not in TIES
    ]
    assert untied == []


def test_every_figure_in_the_readme_is_tied() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    text = re.sub(r"```.*?```|<!-- (chapters|bench).*?/\1 -->", " ", text, flags=re.DOTALL)
    untied = [figure for figure in figures_in(text) if ("README", figure) not in TIES]
    assert untied == []


@pytest.mark.parametrize("path", GUIDE, ids=lambda path: path.stem)
def test_every_figure_for_instructors_is_computed_in_its_chapter_or_tied(path: Path) -> None:
    chapter = [one for one in CHAPTERS if one.stem[:2] == path.stem]
    known = {f for one in chapter for f in figures_computed(json.loads(one.read_text("utf-8")))}
    written = r"```.*?```|<!-- (measured).*?/\1 -->"  # by tools/class_report.py, tested there
    text = re.sub(written, " ", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    ties = {figure for page, figure in TIES if page == f"instructors/{path.stem}"}
    assert [figure for figure in figures_in(text) if figure not in known | ties] == []


@pytest.mark.parametrize("tie", TIES, ids=":".join)
def test_every_tie_holds(tie: tuple[str, str]) -> None:
    said = TIES[tie]()
    assert said is True or (isinstance(said, str) and len(said) > 10)


def test_a_figure_that_nobody_computed_is_found() -> None:
    text = "In chapter 03, section 2, 2023: 1,234.5 tokens [a](https://x.org/77) and `99`, 7 of 10."
    assert list(figures_in(text)) == ["1234.5"]
