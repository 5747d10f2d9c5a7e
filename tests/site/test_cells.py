"""Code cells of the chapters: what becomes of widgets, guesses, quizzes and claims on a page."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kvlab.course.bank import load_questions
from kvlab.figures.cards import VERDICTS
from tools.site.cells import NEEDS_KERNEL, Part, code_cell
from tools.site.guesses import marked_reveals
from tools.site.markup import plain
from tools.site.outputs import Collected
from tools.site.places import CHAPTERS
from tools.site.question_data import question_data, variants
from tools.site.source import asked_questions, calls_of, last_call

NOTEBOOKS = sorted(CHAPTERS.glob("[0-9]*.ipynb"))


def cell(source: str, *outputs: dict[str, Any], tags: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"source": source, "outputs": list(outputs), "metadata": {"tags": list(tags)}}


def shown(data: dict[str, Any]) -> dict[str, Any]:
    return {"output_type": "execute_result", "data": data, "metadata": {}}


def code_cells(notebook: Path) -> list[dict[str, Any]]:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return [c for c in cells if c["cell_type"] == "code"]


def test_a_cell_that_needs_a_kernel_says_so() -> None:
    for name in NEEDS_KERNEL:
        part = code_cell(cell(f"{name}()", shown({"text/html": "x"})), Collected(), {})
        assert 'class="note"' in part.html and "{" not in plain(part.html)


def test_a_widgets_last_state_is_shown_and_said_to_be_one() -> None:
    drawn = shown({"image/svg+xml": "<svg width='9'></svg>"})
    part = code_cell(cell("planner()", drawn, tags=("widget",)), Collected(), {})
    assert "<svg" in part.html and "The last state" in part.html
    live = code_cell(cell("planner()", drawn), Collected(), {"planner": Part("LIVE", {"x"})})
    assert live.html.startswith("LIVE") and live.needs == {"x"}


def test_calls_are_read_and_never_run() -> None:
    assert last_call("raise SystemExit") is None and last_call("def broken(") is None
    assert calls_of('if x:\n    reveal("k", 1 / 0)', "reveal")[0].arguments == ("k",)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem[:2])
def test_the_first_question_of_a_quiz_is_the_one_that_the_notebook_shows(notebook: Path) -> None:
    for found in code_cells(notebook):
        source = "".join(found["source"])
        call = last_call(source)
        if call and call.name == "quiz":
            ids = asked_questions(source, notebook.stem[:2])
            stored = "".join(found["outputs"][0]["data"]["text/plain"])
            bank = {q.id: q for q in load_questions()}
            first = variants(bank[ids[0]], int(str(call.option("seed", 0))))[0]
            assert stored == f"Question 1 of {len(ids)}. {first.text}"


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem[:2])
def test_every_value_that_answers_a_guess_is_joined_to_it(notebook: Path) -> None:
    asked, joined = set(), set()
    for found in code_cells(notebook):
        source = "".join(found["source"])
        asked |= {str(call.option("key")) for call in calls_of(source, "predict")}
        cards = str([o for o in found["outputs"] if "data" in o]).count("Your guess: none made. ")
        marked = str(marked_reveals(source, found["outputs"]))
        keys = re.findall(r'class="reveal" data-key="([^"]+)"', marked)
        assert len(keys) == marked.count('class="js-guess"') == cards // 2  # its label, its words
        joined |= set(keys)
    assert joined <= asked and len(joined) >= len(asked) // 2


def test_of_two_values_in_a_cell_the_one_that_is_shown_is_joined() -> None:
    card = "<div class='kvlab-prediction'><div style=\"a\">none made</div></div>"
    output = shown({"text/html": card, "text/plain": "Q? Your guess: none made. Computed: 3 x."})
    source = 'reveal("a", 1)\nreveal("b", 2)'
    (made,) = marked_reveals(source, [output])
    assert 'data-key="b"' in made["data"]["text/html"]
    assert 'data-value="3 x"' in made["data"]["text/html"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem[:2])
def test_every_claim_asks_for_a_verdict(notebook: Path) -> None:
    for found in code_cells(notebook):
        call = last_call("".join(found["source"]))
        if call and call.name == "claim_quiz":
            html = code_cell(found, Collected(), {}).html
            verdict = re.search(r'class="claim" data-verdict="([^"]+)"', html)
            assert verdict and verdict[1] in VERDICTS and html.count("<button") == len(VERDICTS)


def test_fresh_numbers_differ_and_come_with_their_own_answer() -> None:
    for question in load_questions():
        askings = question_data(question, 0)["askings"]
        texts = [asking["text"] for asking in askings]
        assert len(set(texts)) == len(texts) >= 1
        assert all(asking["solution"] for asking in askings)
