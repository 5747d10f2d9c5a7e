"""An interrupt ends open requests at once, however long the engine would take to answer."""

import signal
import socket
import threading
from collections.abc import Callable

import pytest

from kvlab.serving.engines.endpoint import Endpoint
from kvlab.serving.engines.interrupts import cut_on_interrupt
from kvlab.serving.engines.load import send_load
from kvlab.serving.request import prompt

Serve = Callable[[Callable[[socket.socket, bytes], object]], str]


def test_open_requests_end_at_an_interrupt(socket_server: Serve) -> None:
    done, late = threading.Event(), []

    def talk(talker: socket.socket, asked: bytes) -> None:
        if asked.startswith(b"POST"):
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            late.append(not done.wait(5))
        talker.sendall(b"HTTP/1.1 200 OK\r\n\r\nvllm:num_requests_running 0\n")

    endpoint = Endpoint(socket_server(talk), timeout=30)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), cut_on_interrupt(endpoint):
        send_load(endpoint, "vllm", "m", [prompt(0, [17, 18, 19], 4)], max_seconds=60)
    done.set()
    assert not any(late) and signal.getsignal(signal.SIGINT) is before


def test_outside_the_main_thread_nothing_is_changed() -> None:
    ran = []

    def work() -> None:
        with cut_on_interrupt(Endpoint("http://127.0.0.1:9")):
            ran.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert ran == [signal.getsignal(signal.SIGINT)]
