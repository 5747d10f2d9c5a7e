"""README's chapter table and pictures are those of the notebooks."""

import json
from pathlib import Path

import pytest
import readme_pictures


def test_readme_shows_the_pictures_of_the_notebooks_as_they_are() -> None:
    stale = [
        path.name
        for path, text in readme_pictures.wanted().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    assert not stale, f"run python tools/readme_pictures.py: {stale}"


def test_a_widgets_picture_is_preferred_to_an_earlier_one(tmp_path: Path) -> None:
    def cell(tags: list[str], svg: str) -> dict[str, object]:
        return {"metadata": {"tags": tags}, "outputs": [{"data": {"image/svg+xml": [svg]}}]}

    notebook = tmp_path / "x.ipynb"
    cells = [cell([], "<svg>plain</svg>"), cell(["widget"], "<svg>widget</svg>")]
    notebook.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    assert readme_pictures.picture_of(notebook) == "<svg>widget</svg>"


def test_an_old_picture_is_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stale = {tmp_path / "01.svg": "<svg/>"}
    monkeypatch.setattr(readme_pictures, "ROOT", tmp_path)
    monkeypatch.setattr(readme_pictures, "wanted", lambda: stale)
    assert readme_pictures.main(["--check"]) == 1
    assert readme_pictures.main([]) == 0
    assert readme_pictures.main(["--check"]) == 0
