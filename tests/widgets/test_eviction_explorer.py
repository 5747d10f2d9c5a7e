"""The two explorers of chapter 09, driven without a browser."""

import pytest
import torch

from kvlab.errors import InvalidArgument
from kvlab.figures.head_shares import head_shares
from kvlab.model.attention_share import AttentionShare
from kvlab.model.eviction_runs import EvictionRun, eviction_runs
from kvlab.model.llama import Llama
from kvlab.model.quality import Bench
from kvlab.widgets.eviction_explorer import NAMES, eviction_explorer
from kvlab.widgets.share_explorer import FIRST, share_explorer

POLICIES, PERCENTS = ("window", "h2o"), (100, 50, 12)


@pytest.fixture(scope="module")
def runs() -> list[EvictionRun]:
    bench = Bench("tiny", tokens=160, facts=8, num_sequences=2)
    return list(eviction_runs(bench, POLICIES, PERCENTS))


def test_each_policy_and_budget_shows_its_own_run(runs: list[EvictionRun]) -> None:
    show = eviction_explorer(runs, percent=50, texts=2)
    seen = set()
    for run in runs:
        show.set(policy=run.policy, percent=run.percent)
        assert show.numbers["recall, 2 texts"] == f"{run.recall:.3f}"
        assert show.numbers["budget"] == f"{run.budget} tokens ({run.percent} %)"
        assert show.numbers["cache at the end"] == f"{run.cache_bytes:,} bytes"
        assert NAMES[run.policy] in show.picture.value and show.error.value == ""
        seen.add(show.picture.value)
    assert len(seen) == len(runs)


def test_the_first_lost_fact_is_named_with_its_place(runs: list[EvictionRun]) -> None:
    show = eviction_explorer(runs, policy="window", percent=12)
    run = next(run for run in runs if (run.policy, run.percent) == ("window", 12))
    lost = run.answered.index(False)
    said = f"{run.facts[lost].rstrip('.')} at {run.fact_positions[lost]}."
    assert show.frame.event.endswith(said)
    show.controls["percent"].value = 100
    assert show.frame.event == "Every fact of this text is answered."


def test_a_move_of_the_slider_runs_no_model(
    runs: list[EvictionRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    show = eviction_explorer(runs, percent=100)
    monkeypatch.setattr(Llama, "forward", None)
    for percent in PERCENTS:
        show.controls["percent"].value = percent
        assert show.numbers["budget"].endswith(f"({percent} %)")


def test_home_leads_back_and_the_still_carries_the_numbers(runs: list[EvictionRun]) -> None:
    show = eviction_explorer(runs, policy="window", percent=12)
    show.set(policy="h2o", percent=100)
    show.reset()
    assert show.values == {"policy": "window", "percent": 12}
    assert "facts answered" in show.still().label and "recall, this text" in show.still()


def test_an_example_that_was_not_run_is_refused_by_name(runs: list[EvictionRun]) -> None:
    with pytest.raises(InvalidArgument, match="policy"):
        eviction_explorer(runs, policy="random")


def test_each_share_is_the_one_asked_for() -> None:
    received = torch.rand(3, 4, 200, generator=torch.Generator().manual_seed(1))
    share = AttentionShare(received / received.sum(-1, keepdim=True) * 200, num_kv_heads=2)
    show = share_explorer(share, name="a model", which=1)
    for which, count in ((1, 2), (5, 10), (20, 40)):
        show.controls["which"].value = which
        assert show.numbers["positions counted"] == f"{count} of 200"
        assert show.numbers["mean"] == f"{100 * share.top_share(which).mean():.1f} %"
        map_ = head_shares(share.top_share(which).tolist())
        assert show.frame.picture.label == map_.label
    show.controls["which"].value = FIRST
    assert show.numbers["mean"] == f"{100 * share.first_share(1).mean():.1f} %"
    show.reset()
    assert show.values == {"which": 1}
