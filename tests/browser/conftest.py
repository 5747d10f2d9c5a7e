"""What drives Chromium here is marked so; the browser itself and axe-core are in tests/helpers."""

from pathlib import Path

import pytest
from chromium import ARGUMENTS, CHROMIUM, axe, browser

__all__ = ["ARGUMENTS", "CHROMIUM", "axe", "browser"]  # fixtures, and how Chromium is started


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all that drives Chromium."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.browser)
