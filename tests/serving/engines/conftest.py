"""A server of bare sockets, where the subject is how a reader takes what it gets."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

Talk = Callable[[socket.socket, bytes], object]


def whole_request(talker: socket.socket) -> bytes:
    """Read a request to its end: what is left unread would reset the connection."""
    data = b""
    while b"\r\n\r\n" not in data:
        if not (more := talker.recv(65536)):
            return data
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    lines = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    length = int(lines[0].split(b":")[1]) if lines else 0
    while len(body) < length and (more := talker.recv(65536)):
        body += more
    return data


@pytest.fixture
def socket_server() -> Iterator[Callable[[Talk], str]]:
    """Serve each connection with a function of the test's; the address is returned."""
    places: list[socket.socket] = []
    done = threading.Event()

    def serve(talk: Talk) -> str:
        place = socket.create_server(("127.0.0.1", 0))
        place.settimeout(0.1)
        places.append(place)

        def accept() -> None:
            while not done.is_set():
                with suppress(TimeoutError):
                    talker, _ = place.accept()
                    threading.Thread(target=answer, args=(talker,), daemon=True).start()

        def answer(talker: socket.socket) -> None:
            with talker, suppress(OSError):
                talker.settimeout(5)
                talk(talker, whole_request(talker))

        threading.Thread(target=accept, daemon=True).start()
        return f"http://127.0.0.1:{place.getsockname()[1]}"

    yield serve
    done.set()
    time.sleep(0.15)
    for place in places:
        place.close()
