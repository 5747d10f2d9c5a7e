"""Demos served for a test, and stopped after it."""

from collections.abc import Callable, Iterator

import pytest
from served_demo import Served


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Served]]:
    """Give a function that serves a demo by name until the test is over; errors become lines."""
    monkeypatch.delenv("PYTEST_VERSION", raising=False)
    running: list[Served] = []

    def start(name: str) -> Served:
        running.append(Served(name))
        return running[-1]

    yield start
    for one in running:
        one.close()
