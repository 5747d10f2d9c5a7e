"""The blind marking widget, driven without a browser."""

from kvlab.widgets.blind import blind_marking

PROMPTS = [f"question {i}" for i in range(6)]
ANSWERS = {"fp32": [f"one {i}" for i in range(6)], "fp8": [f"two {i}" for i in range(6)]}


def test_the_settings_are_told_only_when_all_pairs_are_marked() -> None:
    panel = blind_marking(PROMPTS, ANSWERS, seed=4)
    for _ in panel.marking.pairs:
        assert "fp32" not in panel.picture.value and "fp8" not in panel.picture.value
        panel.controls["left"].click()
    assert "fp32 preferred" in panel.picture.value and "4 of 4" in panel.picture.value
    assert panel.controls["left"].disabled
    panel.controls["again"].click()
    assert "1 of 10" in panel.picture.value and not panel.controls["left"].disabled


def test_equal_answers_leave_nothing_to_judge() -> None:
    panel = blind_marking(PROMPTS, {"fp32": ANSWERS["fp32"], "fp8": ANSWERS["fp32"]})
    assert "nothing to judge" in panel.event.value
