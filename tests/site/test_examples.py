"""The examples in the docstrings of tools/site hold."""

import doctest
import importlib

import pytest

from tools.site.places import ASSETS

MODULES = sorted(path.stem for path in ASSETS.parent.glob("*.py") if path.stem != "__main__")


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_hold(name: str) -> None:
    result = doctest.testmod(importlib.import_module(f"tools.site.{name}"))
    assert result.failed == 0


def test_most_modules_have_examples() -> None:
    with_examples = [
        name
        for name in MODULES
        if doctest.testmod(importlib.import_module(f"tools.site.{name}")).attempted
    ]
    assert len(with_examples) >= len(MODULES) // 2
