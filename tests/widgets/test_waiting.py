"""The bar passes every step on, and is silent where chapters are stored."""

import pytest

from kvlab.widgets.waiting import with_progress


@pytest.mark.parametrize("disabled", ["1", "0"])
def test_every_step_comes_through(monkeypatch: pytest.MonkeyPatch, disabled: str) -> None:
    monkeypatch.setenv("TQDM_DISABLE", disabled)
    assert list(with_progress(iter(range(5)), total=5, doing="counting")) == [0, 1, 2, 3, 4]


def test_nothing_is_shown_when_bars_are_off(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TQDM_DISABLE", "1")
    list(with_progress("ab", total=2, doing="reading"))
    assert capsys.readouterr() == ("", "")


def test_an_error_in_a_step_is_the_callers() -> None:
    def steps():  # type: ignore[no-untyped-def]
        yield 1
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(with_progress(steps(), total=2, doing="reading"))
