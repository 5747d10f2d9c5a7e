"""Read one row of the question bank, field by field, and say which field breaks which rule."""

import re
import string
from typing import Any

from kvlab.course.calls import check_expression, read_variables
from kvlab.course.questions import (
    KINDS,
    SETS,
    ChoiceQuestion,
    Fresh,
    NumericQuestion,
    OpenQuestion,
    Option,
    OrderQuestion,
    Question,
    ShapeQuestion,
    WrongWay,
)
from kvlab.course.schema import TOPICS, Row
from kvlab.course.typed_units import read_unit

_SCOPE = re.compile(r"scope", re.IGNORECASE)


def read_question(row: Row) -> Question:
    """Return the question of one row."""
    kind = row.choice("kind", KINDS)
    common = _read_common(row, kind)
    question = _READERS[kind](row, common)
    row.done()
    return question


def _read_common(row: Row, kind: str) -> dict[str, Any]:
    """Read the fields that every question has."""
    sets = row.texts("sets")
    if unknown := set(sets) - set(SETS):
        raise row.fault("sets", sorted(unknown)[0], f"must be among {', '.join(SETS)}")
    return {
        "id": row.text("id"),
        "kind": kind,
        "topic": row.choice("topic", TOPICS),
        "level": row.integer("level", 1, 3),
        "chapter": _matching(row, "chapter", r"\d\d"),
        "anchor": _matching(row, "anchor", r"[a-z0-9]+(-[a-z0-9]+)*"),
        "text": row.text("text"),
        "explain": row.text("explain"),
        "source": row.text("source"),
        "as_of": row.day("as_of"),
        "sets": sets,
    }


def _matching(row: Row, field: str, pattern: str) -> str:
    """Return a text of a fixed form."""
    value = row.text(field)
    if not re.fullmatch(pattern, value):
        raise row.fault(field, value, f"must look like {pattern}")
    return value


def _read_fresh(row: Row, common: dict[str, Any]) -> Fresh:
    """Read variables, answer and misconceptions; the texts may use the variables."""
    numbers, cases, names = read_variables(row)
    for field, extra in (("text", set()), ("explain", {"answer"})):
        for _, name, _, _ in string.Formatter().parse(common[field]):
            if name is not None and name not in names | extra:
                raise row.fault(field, name, f"is no variable of {sorted(names | extra)}")
    answer = check_expression(row, "answer", row.take("answer"), names)
    return Fresh(numbers, cases, answer, tuple(_read_wrong_ways(row, names)))


def _read_wrong_ways(row: Row, names: set[str]) -> list[WrongWay]:
    """Read the misconceptions of a question with fresh numbers."""
    found = []
    for way in row.rows("misconceptions"):
        value = check_expression(way, "value", way.take("value"), names)
        found.append(WrongWay(way.text("id"), value, way.text("feedback")))
        way.done()
    return found


def _read_numeric(row: Row, common: dict[str, Any]) -> NumericQuestion:
    """Read a question for a number."""
    unit = row.text("unit", "")
    if not read_unit(unit):
        raise row.fault("unit", unit, "is not a unit known to the grader")
    tolerance = row.take("tolerance", 0.005)
    if not isinstance(tolerance, int | float) or not 0 <= tolerance <= 0.02:
        raise row.fault("tolerance", tolerance, "must be from 0 to 0.02: kB and KiB stay apart")
    return NumericQuestion(
        **common,
        fresh=_read_fresh(row, common),
        unit=unit,
        exact=row.flag("exact", False),
        tolerance=tolerance,
        words=row.texts("words"),
        per=row.text("per", ""),
    )


def _read_shape(row: Row, common: dict[str, Any]) -> ShapeQuestion:
    """Read a question for a shape."""
    return ShapeQuestion(
        **common, fresh=_read_fresh(row, common), axes=row.texts("axes", minimum=1)
    )


def _read_choice(row: Row, common: dict[str, Any]) -> ChoiceQuestion:
    """Read a multiple choice or the lines of a find-the-error card."""
    options = []
    for option in row.rows("options", minimum=2):
        options.append(Option(option.text("text"), option.flag("right", False), option.text("why")))
        option.done()
    if sum(option.right for option in options) != 1:
        raise row.fault("options", len(options), "exactly one of them must be right")
    return ChoiceQuestion(**common, options=tuple(options))


def _read_order(row: Row, common: dict[str, Any]) -> OrderQuestion:
    """Read steps to bring into order."""
    steps, whys = row.texts("steps", minimum=3), row.texts("whys", minimum=3)
    if len(steps) != len(whys) or len(set(steps)) != len(steps):
        raise row.fault("steps", len(steps), "must differ, each with one entry in whys")
    return OrderQuestion(**common, steps=steps, whys=whys)


def _read_open(row: Row, common: dict[str, Any]) -> OpenQuestion:
    """Read an open question with its rubric."""
    rubric = row.texts("rubric", minimum=2)
    if not _SCOPE.search(rubric[0]):
        raise row.fault("rubric", rubric[0], "the first point must be for saying the scope")
    short, long = row.text("in_30_seconds"), row.text("in_two_minutes")
    return OpenQuestion(**common, rubric=rubric, in_30_seconds=short, in_two_minutes=long)


_READERS = {
    "numeric": _read_numeric,
    "shape": _read_shape,
    "choice": _read_choice,
    "find-error": _read_choice,
    "order": _read_order,
    "open": _read_open,
}
