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
from urllib.parse import urlsplit

from kvlab.errors import InvalidArgument
from kvlab.serving.engines.faults import NoAnswer

MAX_BYTES = 8 * 2**20
LOOPBACK = ("127.0.0.1", "localhost", "::1")
SCHEMES = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
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
        self.timeout, self.max_bytes = timeout, max_bytes
        try:
            parts = urlsplit(url.strip())
            self.host, self.port = parts.hostname or "", parts.port
        except ValueError as error:
            raise InvalidArgument("url", url, f"is no address: {error}") from None
        if parts.scheme not in SCHEMES:
            raise InvalidArgument("url", url, "must begin with http:// or https://")
        if not self.host or parts.username is not None or any(c.isspace() for c in parts.netloc):
            shown = f"{parts.scheme}://...@{self.host}" if parts.username is not None else url
            raise InvalidArgument("url", shown, "must name a host, and neither user nor password")
        self.scheme = parts.scheme
        path = parts.path.rstrip("/").removesuffix("/metrics").removesuffix("/v1")
        if not path.isascii() or any(c.isspace() for c in path) or parts.query or parts.fragment:
            raise InvalidArgument("url", url, "must be plain: scheme, host, port, perhaps a path")
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = f":{self.port}" if self.port else ""
        self.path, self.base = path, f"{self.scheme}://{host}{port}{path}"

    @property
    def is_here(self) -> bool:
        """Whether the address is this machine's loopback."""
        return self.host in LOOPBACK

    def get(self, path: str, *, timeout: float | None = None) -> Reply:
        """Return the reply to GET, whatever its status, within `timeout` seconds in all."""
        with self._asked("GET", path, None, timeout or self.timeout) as response:
            body = response.read(self.max_bytes + 1)
            if len(body) > self.max_bytes:
                raise ValueError(f"sent more than {self.max_bytes:,} bytes")
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
                raise ValueError(f"answered {response.status}: {said}")
            left = self.max_bytes
            while line := response.readline(min(left, 2**20) + 1):
                left -= len(line)
                if left < 0:
                    raise ValueError(f"sent more than {self.max_bytes:,} bytes")
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
        connection = SCHEMES[self.scheme](self.host, self.port, timeout=timeout)
        cut = _Cut(timeout)
        try:
            body = None if payload is None else json.dumps(payload)
            headers = {"Accept-Encoding": "identity", "Connection": "close"}
            headers |= {} if body is None else {"Content-Type": "application/json"}
            connection.connect()
            cut.start(connection.sock)
            connection.request(method, f"{self.path}{path}", body, headers)
            yield connection.getresponse()
            if cut.is_late:  # what was read may be a part
                raise TimeoutError
        except FAILURES as error:
            raise NoAnswer(address, _reason(error, timeout if cut.is_late else None)) from None
        finally:
            cut.cancel()
            connection.close()


class _Cut:
    """Shuts a connection at its deadline, however slowly the other side drips."""

    def __init__(self, seconds: float) -> None:
        self._deadline = time.monotonic() + seconds
        self._timer: threading.Timer | None = None

    def start(self, sock: socket.socket) -> None:
        """Watch a connection: http.client forgets its socket, so it is held here."""
        left = max(0.0, self._deadline - time.monotonic())
        self._timer = threading.Timer(left, self._shut, (sock,))
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
    def _shut(sock: socket.socket) -> None:
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)


def _reason(error: Exception, late_after: float | None) -> str:
    """Say in a few words why there was no answer."""
    if late_after is not None or isinstance(error, TimeoutError):
        return f"no whole answer within {late_after:g} s" if late_after else "no answer in time"
    if isinstance(error, ConnectionRefusedError):
        return "nobody listens there"
    if isinstance(error, socket.gaierror):
        return "no such host is known"
    if isinstance(error, ConnectionError | http.client.IncompleteRead):
        return "the connection broke off midway"
    if isinstance(error, http.client.HTTPException):
        return f"what answers does not speak HTTP ({type(error).__name__})"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error)
