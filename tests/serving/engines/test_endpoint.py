"""A reader of one address is bounded in bytes and seconds, and is never led elsewhere."""

import socket
import threading
import time
from collections.abc import Callable

import pytest

from kvlab.errors import InvalidArgument
from kvlab.serving.engines.endpoint import Endpoint
from kvlab.serving.engines.faults import NoAnswer
from kvlab.serving.engines.process import free_port

Talk = Callable[[socket.socket, bytes], object]
Serve = Callable[[Talk], str]
HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("ftp://host", "must begin with http:// or https://"),
        ("host:8000", "must begin with http:// or https://"),
        ("file:///etc/passwd", "must begin with http:// or https://"),
        ("http://", "must name a host"),
        ("http://a:b@host", "neither user nor password"),
        ("http://host:99999", "is no address"),
        ("http://ho st", "must name a host"),
        ("http://host/x?y=1", "must be plain"),
        ("http://[::1", "is no address"),
        ("", "must begin with http:// or https://"),
    ],
)
def test_what_is_no_address_is_named(url: str, rule: str) -> None:
    with pytest.raises(InvalidArgument, match=rule):
        Endpoint(url)


def test_a_password_is_not_repeated() -> None:
    with pytest.raises(InvalidArgument) as caught:
        Endpoint("http://me:secret@host")
    assert "secret" not in str(caught.value) and "host" in str(caught.value)


@pytest.mark.parametrize("ending", ["", "/", "/metrics", "/v1", "/v1/"])
def test_addresses_of_pages_lead_to_the_server(ending: str) -> None:
    assert Endpoint(f"http://127.0.0.1:8000{ending}").base == "http://127.0.0.1:8000"


def test_nobody_listening_is_said() -> None:
    with pytest.raises(NoAnswer, match=r"http://127\.0\.0\.1:\d+/metrics: nobody listens there"):
        Endpoint(f"http://127.0.0.1:{free_port()}").get("/metrics")


def test_a_whole_reply_is_returned(socket_server: Serve) -> None:
    base = socket_server(lambda s, _: s.sendall(HEAD + b"Content-Length: 3\r\n\r\nabc"))
    assert Endpoint(base).get("/x").text == "abc"


def test_a_redirect_is_told_and_not_followed(socket_server: Serve) -> None:
    asked = []

    def move(talker: socket.socket, _: bytes) -> None:
        asked.append(talker)
        talker.sendall(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\n\r\n")

    reply = Endpoint(socket_server(move)).get("/x")
    assert (reply.status, reply.location, len(asked)) == (302, "http://127.0.0.1:9/", 1)


def test_a_body_without_end_is_cut_by_its_size(socket_server: Serve) -> None:
    def pour(talker: socket.socket, _: bytes) -> None:
        talker.sendall(HEAD + b"\r\n")
        for _ in range(100):
            talker.sendall(b"x" * 65536)

    with pytest.raises(NoAnswer, match="sent more than 100,000 bytes"):
        Endpoint(socket_server(pour), max_bytes=100_000).get("/x")


@pytest.mark.parametrize(
    "start", [b"", HEAD + b"X: ", HEAD + b"\r\n"], ids=["none", "head", "body"]
)
def test_a_server_that_drips_is_cut_by_the_clock(socket_server: Serve, start: bytes) -> None:
    def drip(talker: socket.socket, _: bytes) -> None:
        talker.sendall(start)
        for _ in range(100):
            talker.sendall(b"x")
            time.sleep(0.05)

    began = time.monotonic()
    with pytest.raises(NoAnswer, match=r"no whole answer within 0\.4 s"):
        Endpoint(socket_server(drip), timeout=0.4).get("/x")
    assert time.monotonic() - began < 3  # a bound of the code's own, far from the 5 s of dripping


def test_a_server_that_dies_midway_is_said(socket_server: Serve) -> None:
    base = socket_server(lambda s, _: s.sendall(HEAD + b"Content-Length: 100\r\n\r\nabc"))
    with pytest.raises(NoAnswer, match="the connection broke off midway"):
        Endpoint(base).get("/x")


def test_what_does_not_speak_http_is_said(socket_server: Serve) -> None:
    base = socket_server(lambda s, _: s.sendall(b"SSH-2.0-OpenSSH_9.2\r\n"))
    with pytest.raises(NoAnswer, match="does not speak HTTP"):
        Endpoint(base).get("/x")


def test_a_server_without_tls_is_said() -> None:
    def plain() -> None:
        with server.accept()[0] as talker:
            talker.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    server = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=plain, daemon=True)
    thread.start()
    with server, pytest.raises(NoAnswer, match="does not speak TLS: try http://"):
        Endpoint(f"https://127.0.0.1:{server.getsockname()[1]}", timeout=2).get("/x")
    thread.join()


def test_a_piece_below_no_bytes_is_said_plainly(socket_server: Serve) -> None:
    head = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
    base = socket_server(lambda s, _: s.sendall(head + b"-5\r\nabc\r\n0\r\n\r\n"))
    with pytest.raises(NoAnswer, match="does not speak HTTP"):
        Endpoint(base).get("/x")


def test_a_cut_ends_what_is_open_and_starts_nothing_more(socket_server: Serve) -> None:
    asked = threading.Event()

    def hang(_: socket.socket, __: bytes) -> None:
        asked.set()
        done.wait(5)

    done, ends = threading.Event(), []
    endpoint = Endpoint(socket_server(hang), timeout=30)

    def ask() -> None:
        with pytest.raises(NoAnswer):
            endpoint.get("/x")
        ends.append("first")

    thread = threading.Thread(target=ask)
    thread.start()
    assert asked.wait(5)
    endpoint.cut()
    thread.join(3)
    done.set()
    assert ends == ["first"]
    with pytest.raises(NoAnswer, match="given up"):
        endpoint.get("/x")


def test_json_is_none_where_there_is_none(socket_server: Serve) -> None:
    base = socket_server(
        lambda s, _: s.sendall(HEAD + b"Content-Length: 100001\r\n\r\n" + b"[" * 100_001)
    )
    assert Endpoint(base).json("/x") is None


def test_events_end_with_the_stream_and_an_error_is_said(socket_server: Serve) -> None:
    base = socket_server(
        lambda s, _: s.sendall(
            HEAD + b"\r\n" + b'data: {"a": 1}\n\ndata: [DONE]\n\ndata: {"a": 2}\n'
        )
    )
    assert list(Endpoint(base).events("/x", {}, timeout=5)) == [{"a": 1}]
    refusing = socket_server(lambda s, _: s.sendall(b"HTTP/1.1 400 No\r\n\r\ntoo long"))
    with pytest.raises(NoAnswer, match="answered 400: too long"):
        list(Endpoint(refusing).events("/x", {}, timeout=5))


def test_what_a_stranger_sends_is_shown_without_its_control_characters(
    socket_server: Serve,
) -> None:
    base = socket_server(lambda s, _: s.sendall(b"HTTP/1.1 400 No\r\n\r\n\x1b[2Jred\x07"))
    with pytest.raises(NoAnswer) as caught:
        list(Endpoint(base).events("/x", {}, timeout=5))
    assert str(caught.value).isprintable()
