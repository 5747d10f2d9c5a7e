"""A server's address taken apart, what must not be repeated of it, and failures in plain words."""

import http.client
import json
import re
import socket
import ssl
from typing import NamedTuple
from urllib.parse import urlsplit

from kvlab.errors import InvalidArgument

SCHEMES = ("http", "https")
LONGEST = 3600.0
"""Seconds for which an answer is waited at most."""


class Refused(ValueError):
    """An answer that we do not take; its words are ours."""


class Address(NamedTuple):
    """Scheme, host, port and the path that goes before every path."""

    scheme: str
    host: str
    port: int | None
    path: str

    @property
    def base(self) -> str:
        """The address as one text."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = f":{self.port}" if self.port else ""
        return f"{self.scheme}://{host}{port}{self.path}"


def hidden(text: str) -> str:
    """Return an address without user, password, query and fragment, however odd it is.

    >>> hidden("http://me:secret@host:1/x?token=secret"), hidden("http://h/x?a=b@c")
    ('http://...@host:1/x?...', 'http://...')
    """
    start, at, rest = text.rpartition("@")
    if not at:
        start, rest = "", text
    scheme = found[0] if (found := re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*://", start)) else ""
    if re.search(r"[?#]", start):  # where the password ends cannot be told
        return f"{scheme}..."
    plain = re.split(r"[?#]", rest, maxsplit=1)
    cut = f"{rest[len(plain[0])]}..." if len(plain) > 1 else ""
    return (f"{scheme}...@" if at else "") + plain[0] + cut


def read_address(url: object) -> Address:
    """Return the parts of a plain address; raises `InvalidArgument`, which repeats no password.

    >>> read_address("http://127.0.0.1:8000/metrics").base
    'http://127.0.0.1:8000'
    """
    if not isinstance(url, str):
        raise InvalidArgument("url", url, "must be text, as http://127.0.0.1:8000")
    shown = hidden(url)
    try:
        parts = urlsplit(url.strip())
        host = parts.hostname or ""
    except ValueError:
        raise InvalidArgument("url", shown, "is no address") from None
    if parts.scheme not in SCHEMES:
        raise InvalidArgument("url", shown, "must begin with http:// or https://")
    if parts.username is not None or not host or any(map(str.isspace, parts.netloc)):
        raise InvalidArgument("url", shown, "must name a host, and neither user nor password")
    try:
        port = parts.port
    except ValueError:
        port = 0
    if port == 0:
        raise InvalidArgument("url", shown, "is no address: a port is a number from 1 to 65,535")
    _check_host(host, shown)
    path = parts.path.rstrip("/").removesuffix("/metrics").removesuffix("/v1")
    is_plain = path.isascii() and not any(map(str.isspace, path))
    if not is_plain or parts.query or parts.fragment:
        raise InvalidArgument("url", shown, "must be plain: scheme, host, port, perhaps a path")
    return Address(parts.scheme, host, port, path)


def _check_host(host: str, shown: str) -> None:
    try:
        host if ":" in host else host.encode("idna")
    except UnicodeError:
        raise InvalidArgument("url", shown, "its host is no host name") from None
    if not host.isprintable():
        raise InvalidArgument("url", shown, "its host is no host name")


def check_timeout(seconds: object) -> float:
    """Return seconds to wait, above 0 and at most `LONGEST`; raises `InvalidArgument`."""
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not is_number or not 0 < seconds <= LONGEST:  # type: ignore[operator]
        rule = f"must be a number of seconds above 0, at most {LONGEST:,.0f}"
        raise InvalidArgument("timeout", seconds, rule)
    return float(seconds)  # type: ignore[arg-type]


def reason_of(error: Exception, late_after: float | None) -> str:
    """Say in a few words why there was no answer.

    >>> reason_of(ConnectionRefusedError(), None)[:20]
    'nobody listens there'
    """
    if late_after is not None or isinstance(error, TimeoutError):
        return f"no whole answer within {late_after:g} s" if late_after else "no answer in time"
    if isinstance(error, Refused):
        return str(error)
    if isinstance(error, ConnectionRefusedError):
        return "nobody listens there; is the server started, and is this its port?"
    if isinstance(error, socket.gaierror):
        return "no such host is known"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return "what answers does not speak TLS: try http://"
    if isinstance(error, ConnectionError | http.client.IncompleteRead):
        return "the connection broke off midway"
    if isinstance(error, json.JSONDecodeError):
        return "what it sent is no JSON"
    if isinstance(error, http.client.HTTPException | ValueError):
        return f"what answers does not speak HTTP ({type(error).__name__})"
    return getattr(error, "strerror", None) or str(error)
