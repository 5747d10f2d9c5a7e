"""What was published about caches in FP8, as data with source and day; nothing is measured here."""

from dataclasses import dataclass
from datetime import date

from kvlab._paths import data_dir
from kvlab.course.schema import read_rows


@dataclass(frozen=True)
class Report:
    """One published observation: with a 16-bit cache (`before`) and with FP8 (`after`)."""

    id: str
    what: str
    before: str
    after: str
    source: str
    as_of: date


def load_reports() -> tuple[Report, ...]:
    """Return every report, checked; raises `InvalidArgument` naming row and field.

    >>> load_reports()[0].before, load_reports()[0].after
    ('91 %', '13 %')
    """
    found = []
    for row in read_rows(data_dir() / "fp8_reports.json", "reports"):
        texts = {name: row.text(name) for name in ("id", "what", "before", "after", "source")}
        found.append(Report(**texts, as_of=row.day("as_of")))
        row.done()
    return tuple(found)
