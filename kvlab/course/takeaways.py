"""The takeaways of all chapters, each with a number that is worked out when it is asked for.

`data/takeaways.json` holds rules, words and the names of functions; it holds no result.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from kvlab._paths import data_dir
from kvlab.course.calls import check_expression, evaluate
from kvlab.course.chapters_map import CHAPTERS
from kvlab.course.schema import Row, read_rows


@dataclass(frozen=True)
class Takeaway:
    """A rule of a chapter, and the words around the values that make it a number."""

    id: str
    chapter: str
    rule: str
    words: str
    values: Mapping[str, Any]

    @property
    def computed(self) -> str:
        """The number in its words, worked out now."""
        return self.words.format(**{n: evaluate(call, {}) for n, call in self.values.items()})


def load_takeaways(path: Path | None = None) -> tuple[Takeaway, ...]:
    """Return the takeaways in the order of the chapters.

    Raises `InvalidArgument` naming the row, the field and the rule.

    >>> next(t for t in load_takeaways() if t.chapter == "03").computed
    '70B in 16 bit: 327,680 bytes'
    """
    return _load(path or data_dir() / "takeaways.json")


@lru_cache(maxsize=4)
def _load(path: Path) -> tuple[Takeaway, ...]:
    found: dict[str, Takeaway] = {}
    for row in read_rows(path, "takeaways"):
        takeaway = _read(row)
        if takeaway.id in found:
            raise row.fault("id", takeaway.id, "is the id of another takeaway")
        found[takeaway.id] = takeaway
    return tuple(sorted(found.values(), key=lambda one: one.id))


def _read(row: Row) -> Takeaway:
    """Read one row; its words must use every value."""
    values = row.take("values")
    if not isinstance(values, Mapping) or not values:
        raise row.fault("values", values, "must name one value or more")
    words = row.text("words")
    for name, expression in values.items():
        check_expression(row, f"values {name}", expression, set())
        if f"{{{name}" not in words:
            raise row.fault("words", words, f"must use the value {name}")
    numbers = tuple(chapter.number for chapter in CHAPTERS)
    chapter = row.choice("chapter", numbers)
    made = Takeaway(row.text("id"), chapter, row.text("rule"), words, values)
    row.done()
    return made
