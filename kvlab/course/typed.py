"""Read a number as people type it: separators, decimal commas, other scripts, words around it.

Nothing is evaluated and nothing is raised. A number that can be read in two ways, such as
"327.680", keeps both readings; the grader decides what to say. Units are left as text.
"""

import math
import numbers
import re
import unicodedata
from dataclasses import dataclass, replace
from decimal import Decimal

from kvlab.course.typed_units import MONEY

MAX_CHARS = 120
MAX_EXPONENT = 60

_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_LOOKALIKES = str.maketrans(
    dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-")  # hyphens, dashes, minus
    | {"\u066b": ".", "\u066c": ",", "\u066a": "%"}  # Arabic decimal mark, separator, percent
    | {"\u2019": "'", "\u02bc": "'", "\u2044": "/", "\u2215": "/", "\u03bc": "u"}
    | {"\u00d7": "x", "\u00b7": "*", "\u22c5": "*", "\u2217": "*", "\u2248": "~", "\u2243": "~"}
)
_LEAD = re.compile(r"(?:about|approximately|approx\.?|roughly|around|circa|ca\.?|~|=)\s*", re.I)
_NUMBER = re.compile(
    r"(?P<times>x\s*)?(?P<sign>[+-]?)\s*(?P<digits>[.,]?[0-9][0-9 _',.]*)"
    r"(?:[eE](?P<e>[+-]?[0-9]{1,4})(?![0-9])"
    r"|[x*]\s*10\s*(?:\^|\*\*)\s*(?P<ten>[+-]?[0-9]{1,4})(?![0-9]))?"
    r"(?P<unit>.*)"
)
_PRICE = re.compile(r"(?P<sign>[+-]?)\s*(?:us\s?)?(?:\$|usd\b)\s*(?=[-+]?[.,]?[0-9])", re.I)
_FRACTION = re.compile(r"(?P<sign>[+-]?)\s*(?P<over>[0-9]{1,9})\s*/\s*(?P<under>[0-9]{1,9})")
_TO_ONE = re.compile(r"(?P<over>[0-9.,]{1,20})\s*:\s*1")
_GROUPED = re.compile(r"[1-9][0-9]{0,2}(?:,[0-9]{3})+|[1-9][0-9]?(?:,[0-9]{2})*,[0-9]{3}")
_STYLES = ((",", "."), (".", ","), (" ", "."), (" ", ","), ("'", "."), ("'", ","))


@dataclass(frozen=True)
class Typed:
    """A number as typed: its possible readings, the usual one first, and the unit as text."""

    readings: tuple[Decimal, ...]
    unit: str = ""
    digits: str = ""


@dataclass(frozen=True)
class Unread:
    """An answer that holds no number: `empty` when nothing was answered, and the reason."""

    reason: str
    empty: bool = False


def read_typed(answer: object) -> Typed | Unread:
    """Read any answer, whatever its type; never raises.

    >>> read_typed("2,5 GiB")
    Typed(readings=(Decimal('2.5'),), unit='GiB', digits='2,5')
    >>> read_typed("327.680").readings
    (Decimal('327.680'), Decimal('327680'))
    >>> read_typed("$0.44").unit
    '$'
    >>> read_typed(...).empty
    True
    """
    if isinstance(answer, str):
        return _read_text(answer)
    if isinstance(answer, numbers.Real) and not isinstance(answer, bool):
        return _read_real(answer)
    if isinstance(answer, Decimal):
        return _read_real(float(answer)) if answer.is_finite() else Unread("", empty=True)
    if answer is None or answer is ...:
        return Unread("", empty=True)
    return Unread(f"a {type(answer).__name__[:40]} is not a number", empty=True)


def clean(text: str) -> str:
    """Return the text in plain digits, points, signs and single spaces.

    >>> clean("\\uff13\\uff12\\uff10\\u202fKiB")
    '320 KiB'
    >>> clean("10\\u00b3")
    '10^3'
    """
    text = re.sub("[⁰¹²³⁴-⁹⁺⁻]+", lambda found: "^" + found.group().translate(_SUPERSCRIPTS), text)
    text = unicodedata.normalize("NFKC", text).translate(_LOOKALIKES)
    kept = (char for char in text if unicodedata.category(char) != "Cf")
    plain = (str(unicodedata.decimal(char, char)) for char in kept)
    return " ".join("".join(plain).split()).strip("\"'`")


def _read_real(answer: numbers.Real) -> Typed | Unread:
    """Read a number of Python or numpy."""
    if isinstance(answer, numbers.Integral):
        whole = int(answer)
        if whole.bit_length() > 200:
            return Unread("the number is out of range")
        return Typed((Decimal(whole),), digits=str(whole))
    if isinstance(answer, numbers.Rational):
        return Typed((Decimal(int(answer.numerator)) / Decimal(int(answer.denominator)),))
    value = float(answer)
    if math.isnan(value):
        return Unread("nan is not a number", empty=True)
    if math.isinf(value):
        return Unread("the number is not finite")
    return Typed((Decimal(repr(value)),), digits=repr(value))


def _read_text(raw: str) -> Typed | Unread:
    """Read a typed text."""
    if len(raw) > MAX_CHARS:
        return Unread(f"it has {len(raw):,} characters, and one number is asked for")
    text = clean(raw)
    if text.strip(". …") == "":
        return Unread("", empty=True)
    if text.lower() in {"nan", "none", "null", "n/a", "?"}:
        return Unread("", empty=True)
    if text.lower().lstrip("+-") in {"inf", "infinity", "∞"}:
        return Unread("the number is not finite")
    text = _LEAD.sub("", text, count=1) if _LEAD.match(text) else text
    if price := _PRICE.match(text):
        return _read_price(price["sign"] + text[price.end() :])
    return _read_fraction(text) or _read_number(text)


def _read_price(amount: str) -> Typed | Unread:
    """Read what stood after a "$"; the sign of money becomes the unit."""
    typed = _read_number(amount)
    if isinstance(typed, Unread) or MONEY.get(typed.unit.lower()) == "1":
        return typed
    return replace(typed, unit=f"$ {typed.unit}".strip())


def _read_fraction(text: str) -> Typed | Unread | None:
    """Read "1/8" or "8:1"; anything else gives None."""
    if found := _TO_ONE.fullmatch(text):
        values = readings(found["over"])
        return Typed(values, "x", found["over"]) if values else None
    if not (found := _FRACTION.fullmatch(text)):
        return None
    if int(found["under"]) == 0:
        return Unread("it divides by zero")
    return Typed((Decimal(found["sign"] + found["over"]) / Decimal(found["under"]),))


def _read_number(text: str) -> Typed | Unread:
    """Read one number with what follows it as its unit."""
    found = _NUMBER.fullmatch(text)
    if not found:
        return Unread("it does not start with a number")
    digits, unit = found["digits"].rstrip(" .,"), found["unit"].strip()
    if re.search(r"[0-9]", unit) and re.search(r"[-+*/^()=,x]", unit):
        return Unread("it is a calculation; write the result as one number")
    values = readings(digits)
    if not values:
        return Unread("its separators do not form one number")
    exponent = int(found["e"] or found["ten"] or 0)
    if abs(exponent) > MAX_EXPONENT:
        return Unread("the number is out of range")
    scale = Decimal(10) ** exponent * (-1 if found["sign"] == "-" else 1)
    unit = "x" if found["times"] and not unit else unit
    return Typed(tuple(value * scale for value in values), unit, digits)


def readings(digits: str) -> tuple[Decimal, ...]:
    """Return the numbers that digits with separators may mean, the English reading first.

    >>> readings("1.234,5"), readings("327,680")
    ((Decimal('1234.5'),), (Decimal('327680'), Decimal('327.680')))
    """
    digits = digits.replace("_", "")
    found = (_read_as(digits, group, mark) for group, mark in _STYLES)
    return tuple(dict.fromkeys(value for value in found if value is not None))


def _read_as(digits: str, group: str, mark: str) -> Decimal | None:
    """Read digits with one sign for thousands and one for the decimal mark, or return None."""
    whole, _, part = digits.partition(mark)
    if group in whole:
        if (group != "," and "," in whole) or not _GROUPED.fullmatch(whole.replace(group, ",")):
            return None
        whole = whole.replace(group, "")
    if not (whole + part).isdigit():
        return None
    return Decimal(f"{whole or 0}.{part}" if part else whole)
