"""A careful reader of one HTTP address: bounded in bytes and in time, and never led elsewhere.

No redirect is followed, no proxy and no password is used. Every failure is a `NoAnswer` that names
the address.
"""

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from kvlab.serving.engines.addresses import Refused, check_timeout, read_address, reason_of
from kvlab.serving.engines.faults import NoAnswer

MAX_BYTES = 8 * 2**20
LOOPBACK = ("127.0.0.1", "localhost", "::1")
CONNECTIONS = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
FAILURES = (OSError, http.client.HTTPException, ValueError)


@dataclass(frozen=True)
class Reply:
    """What came back: the status, the place a redirect names, and the body."""

    status: int
    location: str
    body: bytes

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode("utf-8", errors="replace")


class Endpoint:
    """One server's address; `path` goes before every path that is asked.

    >>> Endpoint("http://127.0.0.1:8000/metrics").base
    'http://127.0.0.1:8000'
    >>> Endpoint("ftp://host/x")
    Traceback (most recent call last):
    kvlab.errors.InvalidArgument: url='ftp://host/x': must begin with http:// or https://
    """

    def __init__(self, url: str, *, timeout: float = 5.0, max_bytes: int = MAX_BYTES) -> None:
        self.timeout, self.max_bytes = check_timeout(timeout), max_bytes
        self.scheme, self.host, self.port, self.path = address = read_address(url)
        self.base = address.base
        self._open: set[socket.socket] = set()
        self._is_cut = False

    @property
    def is_here(self) -> bool:
        """Whether the address is this machine's loopback."""
        return self.host in LOOPBACK

    def cut(self) -> None:
        """Give up: end every request that is open, in whichever thread, and start none any more."""
        self._is_cut = True
        for sock in list(self._open):
            _Cut.shut(sock)

    def get(self, path: str, *, timeout: float | None = None) -> Reply:
        """Return the reply to GET, whatever its status, within `timeout` seconds in all."""
        with self._asked("GET", path, None, timeout or self.timeout) as response:
            body = response.read(self.max_bytes + 1)
            if len(body) > self.max_bytes:
                raise Refused(f"sent more than {self.max_bytes:,} bytes")
            if response.length:  # announced and never sent
                raise http.client.IncompleteRead(body, response.length)
            return Reply(response.status, response.getheader("location") or "", body)

    def json(self, path: str, *, timeout: float | None = None) -> Any:
        """Return the reply to GET as JSON; None where there is no such thing at the address."""
        reply = self.get(path, timeout=timeout)
        if reply.status != 200:
            return None
        try:
            return json.loads(reply.body)
        except (ValueError, RecursionError):
            return None

    def events(self, path: str, payload: dict[str, Any], *, timeout: float) -> Iterator[Any]:
        """Post `payload` and yield each event of the stream, as JSON, within `timeout` seconds."""
        with self._asked("POST", path, payload, timeout) as response:
            if response.status != 200:
                said = response.read(2000).decode("utf-8", errors="replace")
                raise Refused(f"answered {response.status}: {said}")
            left = self.max_bytes
            while line := response.readline(min(left, 2**20) + 1):
                left -= len(line)
                if left < 0:
                    raise Refused(f"sent more than {self.max_bytes:,} bytes")
                if not line.startswith(b"data:"):
                    continue
                if (data := line[5:].strip()) == b"[DONE]":
                    return
                yield json.loads(data)

    @contextmanager
    def _asked(
        self, method: str, path: str, payload: "dict[str, Any] | None", timeout: float
    ) -> "Iterator[http.client.HTTPResponse]":
        """Ask, and yield the response; at the deadline the connection is cut, whatever it does."""
        address = f"{self.base}{path}"
        connection = CONNECTIONS[self.scheme](self.host, self.port, timeout=timeout)
        connection.response_class = _Response
        cut = _Cut(timeout)
        sock: socket.socket | None = None
        try:
            body = None if payload is None else json.dumps(payload)
            headers = {"Accept-Encoding": "identity", "Connection": "close"}
            headers |= {} if body is None else {"Content-Type": "application/json"}
            connection.connect()
            sock = connection.sock
            cut.start(sock)
            self._open.add(sock)
            if self._is_cut:
                raise Refused("the request was given up")
            connection.request(method, f"{self.path}{path}", body, headers)
            yield connection.getresponse()
            if cut.is_late:  # what was read may be a part
                raise TimeoutError
        except FAILURES as error:
            raise NoAnswer(address, reason_of(error, timeout if cut.is_late else None)) from None
        finally:
            cut.cancel()
            if sock is not None:
                self._open.discard(sock)
            connection.close()


class _Response(http.client.HTTPResponse):
    """An answer in pieces: a piece below 0 would be read without any bound."""

    def _read_next_chunk_size(self) -> int:
        size = int(super()._read_next_chunk_size())  # type: ignore[misc]
        if size < 0:
            raise http.client.HTTPException
        return size


class _Cut:
    """Shuts a connection at its deadline, however slowly the other side drips."""

    def __init__(self, seconds: float) -> None:
        self._deadline = time.monotonic() + seconds
        self._timer: threading.Timer | None = None

    def start(self, sock: socket.socket) -> None:
        """Watch a connection: http.client forgets its socket, so it is held here."""
        left = max(0.0, self._deadline - time.monotonic())
        self._timer = threading.Timer(left, self.shut, (sock,))
        self._timer.daemon = True
        self._timer.start()

    def cancel(self) -> None:
        """Watch no longer."""
        if self._timer is not None:
            self._timer.cancel()

    @property
    def is_late(self) -> bool:
        """Whether the deadline has passed."""
        return time.monotonic() >= self._deadline

    @staticmethod
    def shut(sock: socket.socket) -> None:
        """End a connection; whoever reads from it wakes up."""
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
