"""A load is bounded, keeps its arrival times, and says of each answer how it ended."""

import json
import socket
import time
from collections.abc import Callable

import pytest
from engine_stand_in import METRICS

from kvlab.errors import InvalidArgument
from kvlab.serving.engines.endpoint import Endpoint
from kvlab.serving.engines.load import send_load
from kvlab.serving.engines.real_ids import FIRST_ID, with_real_ids
from kvlab.serving.request import Request, prompt
from kvlab.serving.workloads import make_requests, with_system_prompt

Talk = Callable[[socket.socket, bytes], object]
Serve = Callable[[Talk], str]


def writes(tokens: int, pause: float, ends: bool = True) -> Talk:
    """Return a server that writes tokens at a pace of its own, as vLLM's stream does."""

    def talk(talker: socket.socket, _: bytes) -> None:
        talker.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        try:
            for index in range(tokens):
                reason = "length" if ends and index == tokens - 1 else None
                choice = {"text": "x", "token_ids": [index + 20], "finish_reason": reason}
                line = "data: " + json.dumps({"choices": [choice]}) + "\n\n"
                talker.sendall(line.encode())
                time.sleep(pause)
        except OSError:
            pass

    return talk


@pytest.fixture
def engine(socket_server: Serve) -> Callable[..., Endpoint]:
    """Make an endpoint whose metrics are the stand-in's, and whose answers are as asked."""

    def make(tokens: int = 4, pause: float = 0.0, ends: bool = True) -> Endpoint:
        write = writes(tokens, pause, ends)

        def talk(talker: socket.socket, asked: bytes) -> None:
            body = METRICS.encode()
            head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            talker.sendall(head + body) if asked.startswith(b"GET") else write(talker, asked)

        return Endpoint(socket_server(talk))

    return make


def asks(count: int = 3) -> list[Request]:
    """Some requests with prompts."""
    return [prompt(index, [17, 18, 19], 4) for index in range(count)]


def test_tokens_and_their_times_come_back(engine: Callable[..., Endpoint]) -> None:
    load = send_load(engine(pause=0.02), "vllm", "m", asks(), watch_every=0.02)
    assert load.token_ids == dict.fromkeys(range(3), (20, 21, 22, 23))
    for answer in load.answers.values():
        assert answer.end_reason == "length" and answer.error is None
        assert answer.ttft is not None and answer.tpot is not None and answer.tpot > 0
        assert len(answer.token_at) == 4 and list(answer.token_at) == sorted(answer.token_at)
    metrics = load.metrics()
    assert metrics.requests_finished == 3 and metrics.tokens_delivered == 12
    assert len(metrics.ttft) == 3 and metrics.peak_running == 2 and load.preemptions == 0


def test_what_is_open_at_the_end_of_the_time_is_aborted(engine: Callable[..., Endpoint]) -> None:
    began = time.monotonic()
    load = send_load(engine(2000, 0.01), "vllm", "m", asks(), max_seconds=0.3)
    assert {a.end_reason for a in load.answers.values()} == {"aborted"}
    assert all("0.3" in (a.error or "") or "whole answer" in (a.error or "") for a in
               load.answers.values())  # fmt: skip
    assert time.monotonic() - began < 10 and load.metrics().requests["aborted"] == 3


def test_an_answer_without_an_end_is_not_taken_for_a_whole_one(
    engine: Callable[..., Endpoint],
) -> None:
    (answer,) = send_load(engine(ends=False), "vllm", "m", asks(1)).answers.values()
    assert (answer.end_reason, answer.error) == ("aborted", "the answer broke off")
    assert answer.token_ids == (20, 21, 22, 23)


def test_arrival_times_are_kept(engine: Callable[..., Endpoint]) -> None:
    late = Request(1, 3, 4, prompt_ids=[17, 18, 19], arrival_seconds=0.3)
    load = send_load(engine(), "vllm", "m", [asks(1)[0], late])
    assert load.answers[0].sent_at < 0.3 <= load.answers[1].sent_at


def test_an_interrupt_stops_what_is_open(engine: Callable[..., Endpoint]) -> None:
    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        send_load(engine(5, 0.02), "vllm", "m", asks(40), at_once=2, on_answer=interrupt)
    assert time.monotonic() - began < 5


def test_a_load_goes_to_this_machine_alone() -> None:
    with pytest.raises(InvalidArgument, match="to this machine alone"):
        send_load(Endpoint("http://10.1.2.3:8000"), "vllm", "m", asks())


@pytest.mark.parametrize("count", [0, 1001])
def test_too_few_or_too_many_requests_are_refused(count: int) -> None:
    with pytest.raises(InvalidArgument, match=f"requests={count}"):
        send_load(Endpoint("http://127.0.0.1:9"), "vllm", "m", asks(count))


def test_a_prompt_without_tokens_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(InvalidArgument, match="an engine needs the tokens"):
        send_load(Endpoint("http://127.0.0.1:9"), "vllm", "m", [Request(7, 5, 5)])


def test_real_ids_keep_what_is_shared_and_what_is_not() -> None:
    made = with_system_prompt(8, system_tokens=40, user_tokens=20, output_tokens=4)
    rows = [request.prompt_ids for request in with_real_ids(made, 49_152)]
    assert all(row[:40] == rows[0][:40] for row in rows)
    assert len({tuple(row[40:]) for row in rows}) == 8
    assert all(FIRST_ID <= token < 49_152 for row in rows for token in row)


def test_prompts_known_by_length_alone_become_different_texts() -> None:
    rows = [r.prompt_ids for r in with_real_ids(make_requests(6, prompt_tokens=30,
                                                              output_tokens=2), 256)]  # fmt: skip
    assert [len(row) for row in rows] == [30] * 6 and len(set(map(tuple, rows))) == 6
