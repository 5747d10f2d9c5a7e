"""Units as people type them: a fixed list of spellings, converted by pint.

pint is loaded only when a unit of memory, time or work is typed. Only spellings made of the
tables below ever reach it, so a typed text is never parsed as an expression.
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

FAMILIES = {
    "bytes": "an amount of memory in bytes",
    "bits": "an amount of memory in bits",
    "bytes/s": "bytes per second",
    "bits/s": "bits per second",
    "seconds": "a time",
    "flop": "an amount of work in FLOP",
    "flop/s": "work per second in FLOP/s",
    "dollars": "an amount of money in dollars",
    "number": "a plain number",
}
_DECIMAL = {"k": "kilo", "K": "kilo", "M": "mega", "G": "giga", "T": "tera", "P": "peta"}
_BINARY = {"Ki": "kibi", "ki": "kibi", "Mi": "mebi", "Gi": "gibi", "Ti": "tebi", "Pi": "pebi"}
_TWINS = dict(zip(_DECIMAL.values(), ["kibi", "kibi", "mebi", "gibi", "tebi", "pebi"], strict=True))
_SMALL = {"m": "milli", "u": "micro", "n": "nano"}
_MEMORY = {"B": "bytes", "o": "bytes", "b": "bits", "bit": "bits", "bits": "bits", "byte": "bytes"}
_MEMORY |= {"bytes": "bytes", "Byte": "bytes", "Bytes": "bytes", "octets": "bytes"}
_WORK = {"FLOP", "FLOPs", "flop", "flops", "FLOPS"}
_TIMES = {"s": "second", "sec": "second", "second": "second", "seconds": "second"}
_TIMES |= {"min": "minute", "minute": "minute", "minutes": "minute"}
_TIMES |= {"h": "hour", "hour": "hour", "hours": "hour"}
_PLAIN = {"x": "1", "X": "1", "times": "1", "fold": "1", "-fold": "1", "%": "0.01"}
_PLAIN |= {"percent": "0.01", "per cent": "0.01", "pct": "0.01", "thousand": "1e3"}
_PLAIN |= {"million": "1e6", "mn": "1e6", "M": "1e6", "billion": "1e9", "bn": "1e9"}
_PLAIN |= {"G": "1e9", "trillion": "1e12", "T": "1e12"}
MONEY = dict.fromkeys(["$", "us$", "us $", "usd", "us dollars", "dollar", "dollars"], "1")
MONEY |= dict.fromkeys(["cent", "cents", "us cents", "ct", "\u00a2"], "0.01")
"""What dollars and cents are called, and what each is in dollars."""

_PER = re.compile(
    r"(?P<rest>.*?)\s*(?:/|\bper )\s*"
    r"(?P<what>token|layer|request|user|rank|gpu|card|step|head|position|sequence)s?",
    re.IGNORECASE,
)
_PER_SECOND = re.compile(r"(?P<rest>.*?)\s*(?:/|\bper )\s*(?:s|sec|second)")


@dataclass(frozen=True)
class Unit:
    """One meaning of a typed unit: its family and its size in the family's base.

    `twin` is the size of the same letters read the other way (GB as GiB, GiB as GB), or None.
    """

    family: str
    factor: Decimal
    twin: Decimal | None = None


def split_per(text: str) -> tuple[str, str]:
    """Split "KiB per token" into the unit and what it is per.

    >>> split_per("KiB/token"), split_per("GB/s")
    (('KiB', 'token'), ('GB/s', ''))
    """
    found = _PER.fullmatch(text)
    return (found["rest"].strip(), found["what"].lower()) if found else (text, "")


def read_unit(text: str) -> tuple[Unit, ...]:
    """Return the meanings of a typed unit; none when it is not in the list.

    >>> [unit.family for unit in read_unit("GiB")], [unit.family for unit in read_unit("Gb")]
    (['bytes'], ['bits'])
    >>> read_unit("parsecs")
    ()
    """
    text = text.strip()
    if text == "":
        return (Unit("number", Decimal(1)),)
    if text in {"K", "k"}:
        return (Unit("number", Decimal(1000)), Unit("number", Decimal(1024)))
    if factor := _PLAIN.get(text) or _PLAIN.get(text.lower()):
        return (Unit("number", Decimal(factor)),)
    if worth := MONEY.get(text.lower()):
        return (Unit("dollars", Decimal(worth)),)
    if found := _PER_SECOND.fullmatch(text):
        return _rate(found["rest"])
    if re.fullmatch(r"[kKMGTP]i?(?:[bB]|bit)ps", text):
        return _rate(text[:-2])
    return _time(text) or _memory(text) or _work(text)


def _rate(text: str) -> tuple[Unit, ...]:
    """Return the meanings of an amount per second."""
    amounts = _memory(text) or _work(text)
    return tuple(
        Unit(f"{unit.family}/s", unit.factor, unit.twin)
        for unit in amounts
        if not unit.family.endswith("/s")
    )


def _memory(text: str) -> tuple[Unit, ...]:
    """Return the meaning of a unit of memory: B is a byte, b a bit; "gb" typed small is GB."""
    if text in {"kb", "mb", "gb", "tb", "kib", "mib", "gib", "tib"}:
        text = text[0].upper() + text[1:-1] + "B"
    prefix, base = _split(text, _DECIMAL | _BINARY, _MEMORY)
    if base is None:
        return ()
    family = _MEMORY[base]
    twin = _TWINS.get(prefix) or next((k for k, v in _TWINS.items() if v == prefix), None)
    name = family.removesuffix("s")
    other = _size(twin + name, name) if twin else None
    return (Unit(family, _size(prefix + name, name), other),)


def _work(text: str) -> tuple[Unit, ...]:
    """Return the meanings of a unit of work; "TFLOPS" may be work or work per second."""
    prefix, base = _split(text, _DECIMAL | {"E": "exa"}, _WORK)
    if base is None:
        return ()
    size = _size(prefix + "flop", "flop")
    return (Unit("flop", size), Unit("flop/s", size)) if base == "FLOPS" else (Unit("flop", size),)


def _time(text: str) -> tuple[Unit, ...]:
    """Return the meaning of a unit of time."""
    prefix, base = _split(text, _SMALL, _TIMES)
    if base is None or (prefix and base not in {"s", "sec", "second", "seconds"}):
        return ()
    return (Unit("seconds", _size(prefix + _TIMES[base], "second")),)


def _split(text: str, prefixes: dict[str, str], bases: Any) -> tuple[str, str | None]:
    """Split "GiB" into the prefix's full name and the base, or return ("", None)."""
    if text in bases:
        return "", text
    spellings = prefixes | {name: name for name in prefixes.values()}
    for short, name in spellings.items():
        if text.startswith(short) and text[len(short) :].strip() in bases:
            return name, text[len(short) :].strip()
        if short == name and text.lower().startswith(name) and text.lower()[len(name) :] in bases:
            return name, text.lower()[len(name) :]
    return "", None


@lru_cache(maxsize=1)
def _registry() -> Any:
    """Load pint, once."""
    import pint

    registry = pint.UnitRegistry()
    registry.define("flop = [floating_point_operation]")
    return registry


@lru_cache(maxsize=256)
def _size(name: str, base: str) -> Decimal:
    """Return the size of a unit that our own tables spell, in its base unit."""
    return Decimal(repr(_registry().Quantity(1, name).to(base).magnitude))
