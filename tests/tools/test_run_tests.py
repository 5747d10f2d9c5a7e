"""The test runner: every part is run, a failure and a hang are told, the budgets add up."""

import sys

import pytest
import run_tests
from run_tests import Part, parts


def test_the_budgets_add_up_to_twenty_minutes_at_most() -> None:
    assert sum(part.budget for part in parts(full=False)) <= 20 * 60


def test_a_failing_part_fails_the_run_and_the_others_still_run(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    bad = Part("bad", (sys.executable, "-c", "raise SystemExit(1)"), 10)
    good = Part("good", (sys.executable, "-c", "print('still here')"), 10)
    monkeypatch.setattr(run_tests, "parts", lambda full: [bad, good])
    assert run_tests.main([]) == 1
    said = capfd.readouterr().out
    assert "still here" in said and "parts: 1 passed, 1 failed" in said


def test_a_part_that_hangs_is_stopped(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    hang = Part("hang", (sys.executable, "-c", "import time; time.sleep(60)"), 1)
    passed, seconds = run_tests.run(hang)
    assert not passed and seconds < 30
    assert "stopped: more than 3 times its budget" in capfd.readouterr().out
