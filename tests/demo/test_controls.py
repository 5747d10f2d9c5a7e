"""Controls as plain values, and what comes back from a page checked before it is set."""

import ipywidgets as widgets
import pytest

from kvlab.demo.controls import describe, hidden, named_controls, setter
from kvlab.demo.registry import DEMOS
from kvlab.demo.session import Session
from kvlab.demo.show_questions import RoomQuestions
from kvlab.demo.stages import Demo
from kvlab.errors import InvalidArgument
from kvlab.widgets.controls import dropdown, powers, slider


@pytest.mark.parametrize("demo", DEMOS, ids=lambda demo: demo.name)
def test_every_control_of_a_demo_can_be_drawn_and_has_a_label(demo: Demo) -> None:
    for control in Session(demo).state()["controls"]:
        assert control["label"].strip() and control["kind"], control
        assert control["kind"] != "range" or control["min"] <= control["value"] <= control["max"]
        chosen = control["value"] if control["kind"] == "select" else None
        assert chosen is None or len(control["options"]) > chosen >= 0


@pytest.mark.parametrize(
    ("control", "value", "rule"),
    [
        (slider("x", 1, 0, 9), 10, "must be from 0 to 9"),
        (slider("x", 1, 0, 9), 1.5, "must be a whole number"),
        (slider("x", 1, 0, 9), "3", "must be a number"),
        (slider("x", 1, 0, 9), True, "must be a number"),
        (widgets.BoundedFloatText(value=1, max=5), float("nan"), "must be a number"),
        (widgets.BoundedFloatText(value=1, max=5), 5.1, "must be from 0.0 to 5.0"),
        (powers("x", 2, 1, 8), 4, "must be from 0 to 3"),
        (dropdown("x", ["a", "b"], "a"), -1, "must be from 0 to 1"),
        (dropdown("x", ["a", "b"], "a"), "b", "must be a number"),
        (widgets.Checkbox(), 1, "must be true or false"),
        (widgets.Text(), 7, "must be a text"),
        (widgets.Text(), "a" * 200_001, "must be a text of at most 200,000"),
        (widgets.IntSlider(disabled=True), 1, "switched off now"),
    ],
)
def test_a_value_that_a_control_cannot_take_is_refused(
    control: widgets.Widget, value: object, rule: str
) -> None:
    before = control.value
    with pytest.raises(InvalidArgument, match=rule):
        setter("x", control, value)
    assert control.value == before


def test_a_control_that_a_page_cannot_draw_is_named() -> None:
    with pytest.raises(InvalidArgument, match="control='ColorPicker': a demo can't draw"):
        describe("x", widgets.ColorPicker(description="x"))


def test_good_values_are_set() -> None:
    choice, number, text = powers("x", 2, 1, 8), widgets.BoundedFloatText(max=5), widgets.Text()
    setter("x", choice, 3)()
    setter("x", number, 2)()
    setter("x", text, "<b>")()
    assert (choice.value, number.value, text.value) == (8, 2.0, "<b>")


def test_what_a_quiz_hides_is_hidden_on_the_page_too() -> None:
    room = RoomQuestions(seed=1)
    room.set(topic="memory", kind="numeric")
    seen = {name for name, one in named_controls(room).items() if not hidden(one, room)}
    assert {"answer", "check", "show"} <= seen and "pick" not in seen
    assert not [name for name in seen if name.startswith("point ")]
    room.set(topic="every topic", kind="open")
    room.show()
    seen = {name for name, one in named_controls(room).items() if not hidden(one, room)}
    assert "point 1: scope" in seen and "answer" not in seen


def test_a_topic_without_such_a_question_says_so_and_keeps_the_last() -> None:
    room = RoomQuestions(seed=1)
    question = room.current.question.id
    room.controls["topic"].value = "basics"
    room.controls["kind"].value = "order"
    told = room.event.value if room.remark else ""
    assert "No question is like that" in told or room.current.question.kind == "order"
    with pytest.raises(InvalidArgument, match="control='seed'"):
        room.set(seed=3)
    assert question
