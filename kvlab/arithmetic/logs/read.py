"""From text to runs: whose lines they are, and which of them belong together."""

from collections.abc import Iterable, Iterator
from itertools import islice
from types import ModuleType

from kvlab.arithmetic.logs import llama_cpp, ollama, settings, sglang, tables, tensorrt_llm, vllm
from kvlab.arithmetic.logs.facts import Fact, LinePattern, Run, make_fact
from kvlab.errors import InvalidArgument

READERS: tuple[ModuleType, ...] = (vllm, sglang, llama_cpp, ollama, tensorrt_llm, tables)
ENGINES = tuple(reader.ENGINE for reader in READERS)
MAX_MATCHES = 200
"""Matches of one pattern that are read: ranks and restarts repeat themselves."""

START = "start"
SETTINGS = "settings"
Found = tuple[int, str, list[Fact]]


def read_log(text: str) -> tuple[Run, ...]:
    """Return one run for each start of an engine found in `text`.

    Raises `InvalidArgument` when no line of any engine is in it.

    >>> (run,) = read_log("INFO 11-29 GPU KV cache size: 463,136 tokens")
    >>> run.engine, run.whole("kv_tokens")
    ('vllm', 463136)
    """
    found = [item for reader in READERS for item in _all(text, reader.PATTERNS, reader.ENGINE)]
    if not found:
        lines = text.count("\n") + 1
        known = ", ".join(ENGINES[:-1])
        rule = f"holds no line about a KV cache as {known} print them"
        raise InvalidArgument("log", f"{lines:,} line(s)", rule)
    found += _all(text, settings.PATTERNS, SETTINGS)
    found.sort(key=lambda item: item[0])
    return tuple(_runs(_numbered(text, _one_owner(found))))


def _all(text: str, patterns: Iterable[LinePattern], engine: str) -> Iterator[Found]:
    return (item for pattern in patterns for item in _matches(text, pattern, engine))


def _matches(text: str, pattern: LinePattern, engine: str) -> Iterator[Found]:
    if pattern.needle not in text:
        return
    for match in islice(pattern.regex.finditer(text), MAX_MATCHES):
        groups = {name: value for name, value in match.groupdict().items() if value is not None}
        place = match.start()
        facts = [
            make_fact(name, value.strip(), _unit(engine, groups.get(f"{name}_unit")), 0, place)
            for name, value in groups.items()
            if not name.endswith("_unit")
        ]
        yield place, engine, [Fact(START, "", "", position=place)] * pattern.is_start + facts


def _unit(engine: str, unit: str | None) -> str | None:
    return sglang.BINARY_UNITS.get(unit or "", unit) if engine == sglang.ENGINE else unit


def _one_owner(found: list[Found]) -> list[Found]:
    """ollama runs llama.cpp inside: where ollama speaks, the lines of llama.cpp are its own."""
    if not any(engine == ollama.ENGINE for _, engine, _ in found):
        return found
    owned = []
    for place, engine, facts in found:
        if engine == llama_cpp.ENGINE:
            engine, facts = ollama.ENGINE, [fact for fact in facts if fact.name != START]
        owned.append((place, engine, facts))
    return owned


def _numbered(text: str, found: list[Found]) -> list[Found]:
    """Give each fact the number of its line, counting from 1."""
    numbered, line, place = [], 1, 0
    for start, engine, facts in found:
        line, place = line + text.count("\n", place, start), start
        moved = [Fact(f.name, f.value, f.printed, line, f.half_step, f.scale, start) for f in facts]
        numbered.append((start, engine, moved))
    return numbered


def _runs(found: list[Found]) -> Iterator[Run]:
    """Cut at each new engine, and at each start once a run has printed a size.

    Settings belong to the run of the next line that only an engine prints, or to the last run.
    """
    current, facts, waiting = "", list[Fact](), list[Fact]()
    for _, engine, new in found:
        if engine == SETTINGS:
            waiting += new
            continue
        starts = any(fact.name == START for fact in new)
        if current and (engine != current or (starts and _has_size(facts))):
            yield Run(current, tuple(facts))
            facts = []
        current, facts = engine, [*facts, *waiting, *new]
        waiting = []
    yield Run(current, (*facts, *waiting))


SIZES = frozenset(
    (
        *("available", "buffer_bytes", "cache_bytes", "cpu_blocks", "estimate_bytes", "k_bytes"),
        *("kv_bytes", "kv_tokens", "max_concurrency", "needed", "num_blocks", "process_full"),
        *("published_bytes", "state_bytes"),
    )
)
"""Facts that say how large a cache is."""


def _has_size(facts: list[Fact]) -> bool:
    return any(fact.name in SIZES for fact in facts)
