"""Lengths, arrivals, shared prompts, traces and conversations: seeded, checked, as described."""

import statistics
from itertools import islice
from pathlib import Path

import pytest

from kvlab.errors import InvalidArgument, KvlabError
from kvlab.serving.chat import Chat
from kvlab.serving.lengths import LogNormal, Uniform, parse_lengths
from kvlab.serving.simulator import simulate
from kvlab.serving.trace import read_arrivals, read_trace
from kvlab.serving.workload import Workload
from kvlab.serving.workloads import (
    burst_arrivals,
    make_requests,
    poisson_arrivals,
    stream,
    with_system_prompt,
)


def test_a_lognormal_is_named_by_the_mean_of_its_tokens() -> None:
    rng, lengths = stream(3, "test"), parse_lengths("prompt_tokens", "lognormal:400:0.7")
    drawn = [lengths.draw(rng, i) for i in range(20_000)]
    assert lengths == LogNormal(400.0, 0.7)
    assert statistics.fmean(drawn) == pytest.approx(400, rel=0.03)
    assert statistics.median(drawn) == pytest.approx(400 * 2.718281828 ** (-0.245), rel=0.03)
    assert min(drawn) >= 1


def test_a_uniform_length_reaches_both_ends() -> None:
    rng, lengths = stream(3, "test"), parse_lengths("output_tokens", "uniform:3:5")
    assert lengths == Uniform(3, 5)
    assert {lengths.draw(rng, i) for i in range(200)} == {3, 4, 5}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0", "prompt_tokens=0: must be a whole number of 1 or more"),
        ("-3", "prompt_tokens=-3"),
        ("1.5", "prompt_tokens='1.5': must be an integer, lognormal"),
        ("uniform:9:3", "prompt_tokens='uniform:9:3': LOW must not be above HIGH"),
        ("uniform:1:9999999999", "prompt_tokens=9999999999: must be 1,000,000,000 tokens or fewer"),
        ("uniform:3", "must be an integer, lognormal"),
        ("uniform:a:b", "must be an integer, lognormal"),
        ("lognormal:0.5:1", "MEAN runs from 1"),
        ("lognormal:100:nan", "SIGMA from 0 to 5"),
        ("lognormal:inf:1", "MEAN runs from 1"),
        ("", "must be an integer, lognormal"),
    ],
)
def test_a_wrong_length_is_named(text: str, said: str) -> None:
    with pytest.raises(InvalidArgument, match=said.replace(".", r"\.")):
        parse_lengths("prompt_tokens", text)


def test_arrivals_come_at_the_rate_and_the_same_for_a_seed() -> None:
    times = list(islice(poisson_arrivals(20, seed=5), 20_000))
    assert times == sorted(times) == list(islice(poisson_arrivals(20, seed=5), 20_000))
    assert times != list(islice(poisson_arrivals(20, seed=6), 20_000))
    assert times[-1] == pytest.approx(1000, rel=0.03)
    assert set(islice(poisson_arrivals(float("inf")), 5)) == {0.0}
    with pytest.raises(InvalidArgument, match="rate=0: must be above 0"):
        poisson_arrivals(0)


def test_a_burst_comes_on_top_of_the_calm_traffic() -> None:
    times = list(islice(burst_arrivals(2, at=10.0, size=50, seed=1), 100))
    calm = list(islice(poisson_arrivals(2, seed=1), 50))
    assert times == sorted(times)
    assert [t for t in times if t != 10.0] == calm and times.count(10.0) == 50


def test_kinds_of_draws_do_not_disturb_each_other() -> None:
    def draw(output: str) -> list[int]:
        made = make_requests(50, prompt_tokens="uniform:1:999", output_tokens=output, seed=4)
        return [request.prompt_tokens for request in made]

    assert draw("7") == draw("lognormal:50:1")


def test_a_shared_part_is_the_same_text_and_the_rest_is_ones_own() -> None:
    first, second = make_requests(2, prompt_tokens=40, output_tokens=1, prefix_share=0.75)
    assert first.prompt_ids[:30] == second.prompt_ids[:30]
    assert not set(first.prompt_ids[30:]) & set(second.prompt_ids[30:])
    (none,) = make_requests(1, prompt_tokens=40, output_tokens=1)
    assert none.prompt_ids is None


def test_a_system_prompt_is_computed_once(clock) -> None:
    work = with_system_prompt(40, system_tokens=160, user_tokens=10, output_tokens=4, seed=1)
    loop = simulate(sorted(work, key=lambda r: r.request_id), clock, num_blocks=2000)
    one_after_another = with_system_prompt(
        40, system_tokens=160, user_tokens=10, output_tokens=4, arrivals=map(float, range(40))
    )
    spread = simulate(one_after_another, clock, num_blocks=2000)
    assert loop.scheduler.counts.prefix_hit_tokens == 0  # all came at once, before it was computed
    assert spread.scheduler.counts.prefix_hit_tokens == 39 * 160


def test_each_turn_of_a_chat_finds_the_turns_before_it(clock) -> None:
    chat = Chat(3, 4, system_tokens=64, message_tokens=32, output_tokens=32, think_seconds=1.0)
    loop = simulate(chat, clock, num_blocks=2000, follow_up=chat.follow_up)
    assert loop.metrics.requests_finished == 12
    turns = [96, 160, 224, 288]
    assert loop.scheduler.counts.prompt_tokens == 3 * sum(turns)
    # An answer's last token is never computed: 127, 191 and 255 are, in blocks of 16.
    assert loop.scheduler.counts.prefix_hit_tokens == 3 * (112 + 176 + 240)


@pytest.mark.parametrize("name", ["day.csv", "day.jsonl"])
def test_a_trace_is_read_in_the_order_of_arrival(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name.endswith("csv"):
        path.write_text(
            "arrival_seconds,prompt_tokens,output_tokens,priority,note\n"
            "2.5,10,3,,late\n0.5,20,4,7,early\n",
            encoding="utf-8",
        )
    else:
        path.write_text(
            '{"arrival_seconds": 2.5, "prompt_tokens": 10, "output_tokens": 3}\n\n'
            '{"arrival_seconds": 0.5, "prompt_tokens": 20, "output_tokens": 4, "priority": 7}\n',
            encoding="utf-8",
        )
    first, second = read_trace(path)
    assert (first.prompt_tokens, first.max_new_tokens, first.priority) == (20, 4, 7)
    assert (second.arrival_seconds, second.priority) == (2.5, 0)
    assert read_arrivals(path) == [0.5, 2.5]
    work = Workload.of(prompt_tokens=str(path), output_tokens=str(path))
    assert list(work) == [first, second]
    cycled = Workload.of(prompt_tokens=str(path), output_tokens=9, requests=5, rate=1)
    assert [request.prompt_tokens for request in cycled] == [20, 10, 20, 10, 20]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("prompt_tokens,output_tokens\n5\n", "t.csv line 2, output_tokens=None: is missing"),
        ("prompt_tokens,output_tokens\n5,x\n", "t.csv line 2, output_tokens='x': must be a whole"),
        ("prompt_tokens,output_tokens\n5,0\n", "t.csv line 2, output_tokens=0: must be a whole"),
        (
            "prompt_tokens,output_tokens,arrival_seconds\n5,5,soon\n",
            "t.csv line 2, arrival_seconds='soon': must be a finite number",
        ),
        ("prompt_tokens,output_tokens\n", "has no rows"),
    ],
)
def test_a_wrong_line_of_a_trace_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidArgument, match=said):
        read_trace(path)


def test_what_is_no_trace_is_said(tmp_path: Path) -> None:
    bad = tmp_path / "t.jsonl"
    bad.write_text("[1]\n", encoding="utf-8")
    with pytest.raises(InvalidArgument, match=r"t\.jsonl line 1=\[1\]: must be an object"):
        read_trace(bad)
    bad.write_text("{\n", encoding="utf-8")
    with pytest.raises(InvalidArgument, match="is not JSON"):
        read_trace(bad)
    with pytest.raises(KvlabError, match="cannot read the trace"):
        read_trace(tmp_path / "none.csv")
    with pytest.raises(InvalidArgument, match="must end in"):
        read_trace(tmp_path / "none.txt")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"requests": None}, "requests=None: say how many"),
        ({"rate": None}, "rate=None: say it, or give a trace"),
        ({"rate": -1.0}, "rate=-1.0: must be above 0"),
        ({"prefix_share": 1.5}, "prefix_share=1.5: must be from 0 to 1"),
        ({"seed": -1}, "seed=-1"),
        ({"requests": 0}, "requests=0"),
    ],
)
def test_a_workload_names_what_is_wrong(change: dict[str, object], said: str) -> None:
    given = {"requests": 3, "rate": 1.0, "prompt_tokens": 5, "output_tokens": 5} | change
    with pytest.raises(InvalidArgument, match=said):
        Workload.of(**given)
