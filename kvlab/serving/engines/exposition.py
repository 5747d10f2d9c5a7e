r"""The text of a metrics endpoint (Prometheus), read into samples; what cannot be read is left out.

A line is `name{label="value",...} number`, with an optional time that nobody needs here.
"""

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

MOST_SAMPLES = 50_000
NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]{0,200}"
SAMPLE = re.compile(rf"^({NAME})(?:\{{(.*)\}})?\s+(\S{{1,40}})(?:\s+-?\d{{1,20}})?(?:\s+#.*)?\s*$")
LABEL = re.compile(rf'\s*({NAME})\s*=\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)')
ESCAPES = {r"\\": "\\", r"\"": '"', r"\n": "\n"}


class Sample(NamedTuple):
    """One number of a metrics endpoint, with its labels."""

    name: str
    labels: dict[str, str]
    value: float


def samples(text: str) -> Iterator[Sample]:
    r"""Yield the samples of a metrics endpoint's text, at most `MOST_SAMPLES`.

    >>> list(samples('# HELP a b\nvllm:num_requests_running{engine="0"} 3.0\nnonsense\n'))
    [Sample(name='vllm:num_requests_running', labels={'engine': '0'}, value=3.0)]
    """
    count = 0
    for line in text.splitlines():
        if line.startswith("#") or len(line) > 20_000 or count >= MOST_SAMPLES:
            continue
        match = SAMPLE.match(line)
        if match is None:
            continue
        name, inside, number = match.groups()
        try:
            value = float(number)
        except ValueError:
            continue
        labels = {} if inside is None else _labels(inside)
        if labels is not None:
            count += 1
            yield Sample(name, labels, value)


def _labels(inside: str) -> dict[str, str] | None:
    found, place = {}, 0
    while place < len(inside):
        match = LABEL.match(inside, place)
        if match is None:
            return None
        found[match[1]] = re.sub(r"\\[\\\"n]", lambda m: ESCAPES[m[0]], match[2])
        place = match.end()
    return found


def whole(text: str | None) -> int | None:
    """Return a label that is a whole number of 0 or more, else None.

    >>> whole("128"), whole("4.0"), whole("None"), whole(None)
    (128, 4, None, None)
    """
    value = decimal(text)
    return int(value) if value is not None and value == int(value) else None


def decimal(text: str | None) -> float | None:
    """Return a label that is a finite number of 0 or more, else None."""
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None
