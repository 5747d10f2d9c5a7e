"""The registry: every chapter has its demo, and no sentence holds a number of its own."""

import json
import re
import subprocess
import sys

import pytest

from kvlab.cli import run
from kvlab.course.chapters_map import find_chapter
from kvlab.demo.registry import DEMOS, find_demo
from kvlab.demo.stages import Demo
from kvlab.errors import InvalidArgument

NAMES = [demo.name for demo in DEMOS]
CHAPTERS = [*(f"{n:02}" for n in range(12)), "13"]
OWN_DIGIT = re.compile(r"\d")


def test_every_chapter_has_a_demo_and_no_name_comes_twice() -> None:
    assert {demo.chapter for demo in DEMOS} == set(CHAPTERS)
    assert len(set(NAMES)) == len(NAMES)
    assert [demo.chapter for demo in DEMOS] == sorted(demo.chapter for demo in DEMOS)
    assert all(find_chapter(demo.chapter) and 1 <= demo.minutes <= 10 for demo in DEMOS)


@pytest.mark.parametrize("demo", DEMOS, ids=NAMES)
def test_presets_have_names_of_their_own_and_sentences_without_a_number(demo: Demo) -> None:
    presets = [preset for stage in demo.stages for preset in stage.presets]
    assert len({preset.name for preset in presets}) == len(presets) >= 3
    assert len(presets) <= 9, "the digit keys reach nine"
    for text in (text for preset in presets for text in (preset.sentence, preset.asks)):
        assert not OWN_DIGIT.search(re.sub(r"\{[^}]*\}", "", text)), text
    assert len({stage.name for stage in demo.stages}) == len(demo.stages)


def test_an_unknown_demo_and_preset_are_named() -> None:
    with pytest.raises(InvalidArgument, match="did you mean planner"):
        find_demo("planer")
    with pytest.raises(InvalidArgument, match="there are race, follow-token"):
        find_demo("zzz")
    with pytest.raises(InvalidArgument, match="preset='x': must be one of What is thrown away"):
        find_demo("follow-token").preset("x")


def test_the_list_tells_what_each_demo_makes_plain(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo"]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert all(name in words for name in NAMES)
    assert run(["demo", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["name"], row["chapter"], row["minutes"], row["point"]) for row in rows] == [
        (demo.name, demo.chapter, demo.minutes, demo.point) for demo in DEMOS
    ]


def test_an_unknown_name_is_one_line_and_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", "rase"]) == 2
    assert capsys.readouterr().err == "kvlab: demo='rase': no such demo; did you mean race?\n"


def test_without_a_server_to_run_on_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("kvlab.cli_demo.find_spec", lambda name: None)
    assert run(["demo", "race"]) == 2
    said = capsys.readouterr().err
    assert said == "kvlab: tornado is not installed: run `python -m pip install tornado`\n"


def test_the_list_loads_no_torch_and_no_server() -> None:
    script = "import sys; from kvlab.cli import run; run(['demo'])\n"
    script += "print(sorted({'torch', 'tornado', 'ipywidgets'} & set(sys.modules)))"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
