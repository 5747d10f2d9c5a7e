"""Any paste made into clean text: bytes decoded, colours removed, size and kind checked."""

import re
import sys
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from pathlib import Path

from kvlab.errors import InvalidArgument, KvlabError

MAX_BYTES = 64 * 2**20
"""The largest log that is read: start-up output is far smaller."""

ANSI = re.compile(r"\x1b\[[0-9;?]{0,32}[ -/]?[@-~]|\x1b[@-_]")
BYTE_ORDER_MARKS = ((BOM_UTF8, "utf-8"), (BOM_UTF16_LE, "utf-16-le"), (BOM_UTF16_BE, "utf-16-be"))


def load_log(path: str) -> str:
    """Return the clean text of a file, or of the standard input for "-"."""
    if path == "-":
        return log_text(sys.stdin.buffer.read(MAX_BYTES + 1))
    file = Path(path).expanduser()
    try:
        with file.open("rb") as stream:
            return log_text(stream.read(MAX_BYTES + 1))
    except OSError as error:
        raise KvlabError(f"cannot read {file}: {error.strerror}") from None


def log_text(data: "bytes | str") -> str:
    r"""Return clean text. Raises `InvalidArgument` when it is empty, binary or far too large.

    >>> log_text("\x1b[36m(EngineCore)\x1b[0m INFO\r\n")
    '(EngineCore) INFO\n'
    """
    if len(data) > MAX_BYTES:
        raise InvalidArgument("log", f"over {MAX_BYTES:,} bytes", "must be start-up output")
    text = data if isinstance(data, str) else _decoded(data)
    if "\0" in text:
        raise InvalidArgument("log", text[:16], "is binary: it must be text that an engine printed")
    if not text.strip():
        raise InvalidArgument("log", "", "is empty: paste what an engine printed at its start")
    if "\x1b" in text:
        text = ANSI.sub("", text)
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _decoded(data: bytes) -> str:
    for mark, encoding in BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, errors="replace")
    return data.decode("utf-8", errors="replace")
