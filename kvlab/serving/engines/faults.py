"""What can go wrong with an engine beside the course: it is not here, it fails, it is silent."""

from collections.abc import Sequence

from kvlab.errors import KvlabError


class EngineUnavailable(KvlabError):
    """An engine's environment is not on this machine; the message says how to get it."""


class EngineFailed(KvlabError):
    """An engine refused to start or died; the message has its own words and what they mean.

    `lines` are what it printed.
    """

    def __init__(self, message: str, lines: Sequence[str] = ()) -> None:
        self.lines = tuple(lines)
        super().__init__(message)


class NoAnswer(KvlabError):
    """A server gave no answer that can be used; the message names the address.

    >>> raise NoAnswer("http://127.0.0.1:9", "nobody listens there")
    Traceback (most recent call last):
    kvlab.serving.engines.faults.NoAnswer: http://127.0.0.1:9: nobody listens there
    """

    def __init__(self, address: str, reason: str) -> None:
        self.address, self.reason = address, reason
        super().__init__(f"{printable(address)}: {printable(reason)}")


def printable(text: str, limit: int = 300) -> str:
    r"""Return what a stranger sent as one line that a terminal can show without harm.

    >>> printable("a\x1b[31mb\nc")
    'a [31mb c'
    """
    clean = "".join(c if c.isprintable() else " " for c in text[: 4 * limit])
    line = " ".join(clean.split())
    return line if len(line) <= limit else f"{line[: limit - 3]}..."
