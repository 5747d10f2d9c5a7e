"""Controllers: one picture updated in place, errors in one line, a fallback without a kernel."""

import ast
import sys
import time
import types
from pathlib import Path

import ipywidgets
import pytest

from kvlab.errors import InvalidArgument
from kvlab.figures.svg import SVG
from kvlab.widgets.base import WIDGET_VIEW, Explorer, Frame
from kvlab.widgets.claims import claim_quiz
from kvlab.widgets.controls import slider
from kvlab.widgets.follow_token import follow_token
from kvlab.widgets.predict import predict
from kvlab.widgets.quiz import quiz
from kvlab.widgets.recompute_or_remember import recompute_or_remember
from kvlab.widgets.work_explorer import work_explorer

PACKAGE = Path(__file__).resolve().parents[2] / "kvlab"
ROOMS = ("widgets", "figures")
EXPLORERS = {
    "follow_token": follow_token,
    "recompute_or_remember": recompute_or_remember,
    "work_explorer": work_explorer,
}


@pytest.fixture(params=EXPLORERS)
def explorer(request: pytest.FixtureRequest) -> Explorer:
    return EXPLORERS[request.param]()


@pytest.fixture
def in_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a learner has it: an error is shown, not raised."""
    monkeypatch.delenv("PYTEST_VERSION", raising=False)
    monkeypatch.delenv("KVLAB_STRICT", raising=False)


def move(explorer: Explorer, times: int = 5) -> None:
    """Move every control of an explorer a few times."""
    for control in explorer.controls.values():
        values = getattr(control, "options", None)
        if values:
            choices = [v[1] if isinstance(v, tuple) else v for v in values]
        else:
            choices = list(range(control.min, control.max + 1))
        for value in choices[:times]:
            control.value = value


def all_widgets(root: ipywidgets.Widget) -> list[ipywidgets.Widget]:
    found = [root]
    for child in getattr(root, "children", ()):
        found += all_widgets(child)
    return found


def test_moving_every_control_leaves_one_picture(explorer):
    before = len(all_widgets(explorer.box))
    move(explorer)
    assert explorer.picture.value.count("<svg") == 1
    assert len(all_widgets(explorer.box)) == before


def test_every_control_changes_the_picture_and_the_numbers(explorer):
    for control in explorer.controls.values():
        seen = {(explorer.picture.value, str(explorer.numbers))}
        move(explorer, times=3)
        seen.add((explorer.picture.value, str(explorer.numbers)))
        assert len(seen) == 2, control.description
        explorer.reset()


def test_back_to_the_example_brings_back_the_first_picture(explorer):
    first = explorer.picture.value
    move(explorer)
    explorer.reset()
    assert explorer.picture.value == first


def test_the_same_call_shows_the_same_bytes(explorer):
    again = EXPLORERS[explorer.kind.replace("-", "_")]()
    assert again.still() == explorer.still()


def test_every_control_says_its_name_and_the_box_its_kind(explorer):
    assert all(control.description for control in explorer.controls.values())
    assert {"kvlab-widget", f"kvlab-{explorer.kind}"} <= set(explorer.box._dom_classes)


def test_only_core_widgets_are_used_so_no_front_end_needs_a_switch(explorer):
    for widget in [*all_widgets(explorer.box), *all_widgets(predict("?", key="core").box)]:
        assert widget._model_module.startswith("@jupyter-widgets/"), widget


@pytest.mark.parametrize(
    "panel",
    [
        lambda: predict("?", key="order"),
        lambda: quiz("01", seed=1),
        lambda: claim_quiz("only-q-changes"),
    ],
)
def test_a_question_stands_before_the_controls_that_answer_it(panel):
    made = panel()
    names = [part._dom_classes for part in made.box.children]
    assert "kvlab-picture" in names[0]
    assert "kvlab-controls" in names[1]
    assert made.event in all_widgets(made.box)


def test_no_source_builds_a_figure_widget():
    names = [
        node.attr if isinstance(node, ast.Attribute) else node.id
        for room in ROOMS
        for path in sorted((PACKAGE / room).glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute | ast.Name)
    ]
    assert "FigureWidget" not in names
    assert "anywidget" not in names


def test_in_colab_nothing_has_to_be_switched_on(monkeypatch):
    calls: list[str] = []
    output = types.ModuleType("google.colab.output")
    output.enable_custom_widget_manager = lambda: calls.append("on")
    colab = types.ModuleType("google.colab")
    colab.output = output
    for name, module in (("google.colab", colab), ("google.colab.output", output)):
        monkeypatch.setitem(sys.modules, name, module)
    bundle = follow_token()._repr_mimebundle_()
    assert WIDGET_VIEW in bundle
    assert calls == []


def test_a_page_without_a_kernel_gets_the_last_state(explorer):
    move(explorer)
    bundle = explorer._repr_mimebundle_()
    words = bundle[SVG]
    assert bundle["text/plain"] == explorer.still().label
    assert bundle[WIDGET_VIEW]["model_id"] == explorer.box.model_id
    assert "text/html" not in bundle  # an untrusted page would show an SVG in it as loose words
    assert explorer.frame.event.split(":")[0] in bundle["text/plain"]
    for name, value in explorer.numbers.items():
        if not explorer.frame.numbers_in_picture:
            assert name in words
            assert value in words


def test_running_the_cell_again_leaves_one_callback_on_a_long_lived_control():
    calls: list[int] = []
    control = slider("n", 0, 0, 9)

    def draw(n: int) -> Frame:
        calls.append(n)
        return Frame(f"<b>{n}</b>")

    for _ in range(3):
        Explorer({"n": control}, draw, kind="again")
    calls.clear()
    control.value = 4
    assert calls == [4]


def failing(n: int) -> Frame:
    if n == 3:
        raise InvalidArgument("n", n, "must not be 3")
    if n == 4:
        raise RuntimeError("a\nlong\nstory")
    return Frame(f"<b>{n}</b>")


def test_an_error_in_a_callback_fails_a_test_run():
    explorer = Explorer({"n": slider("n", 0, 0, 9)}, failing, kind="fails")
    with pytest.raises(InvalidArgument, match="must not be 3"):
        explorer.controls["n"].value = 3


@pytest.mark.usefixtures("in_class")
def test_in_class_an_error_is_one_readable_line_and_the_next_move_clears_it():
    explorer = Explorer({"n": slider("n", 0, 0, 9)}, failing, kind="fails")
    explorer.controls["n"].value = 3
    assert "n=3: must not be 3" in explorer.error.value
    explorer.controls["n"].value = 4
    assert "RuntimeError: a long story" in explorer.error.value
    assert "Traceback" not in explorer.error.value
    explorer.controls["n"].value = 5
    assert explorer.error.value == ""
    assert explorer.picture.value == "<b>5</b>"


def test_setting_several_controls_draws_once():
    drawn: list[tuple[int, int]] = []

    def draw(a: int, b: int) -> Frame:
        drawn.append((a, b))
        return Frame("<b/>")

    explorer = Explorer({"a": slider("a", 0, 0, 9), "b": slider("b", 0, 0, 9)}, draw, kind="two")
    drawn.clear()
    explorer.set(a=3, b=4)
    assert drawn == [(3, 4)]
    with pytest.raises(InvalidArgument, match="control='c'"):
        explorer.set(c=1)


def test_the_time_of_a_redraw_is_measured(explorer, record_property):
    explorer.redraw()
    start = time.perf_counter()
    for _ in range(20):
        explorer.redraw()
    milliseconds = (time.perf_counter() - start) * 1000 / 20
    record_property("redraw_ms", round(milliseconds, 2))
    print(f"{explorer.kind}: a redraw takes {milliseconds:.2f} ms of kernel time")
