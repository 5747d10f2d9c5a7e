"""The chapters and the paths through them, as data: one question each, minutes core and deep.

Whether a chapter is there is read from the folder, so a link is never dead. Drawing is done by
`kvlab.figures.course_map`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kvlab.errors import InvalidArgument


@dataclass(frozen=True)
class Chapter:
    """One chapter: its number, title, the one question it answers, and minutes."""

    number: str
    title: str
    question: str
    core_minutes: int
    deep_minutes: int = 0
    optional: bool = False


CHAPTERS: tuple[Chapter, ...] = (
    Chapter("00", "Start here", "What will I be able to do, and does my machine work?", 5, 8),
    Chapter(
        "01",
        "Follow one token",
        "What does one token leave behind that later tokens need?",
        20,
        20,
    ),
    Chapter(
        "02", "Recompute or remember", "How much work does a cache save, and which work?", 20, 15
    ),
    Chapter("03", "The memory formula", "How many bytes does a cache hold?", 20, 25),
    Chapter("04", "Prefill and decode", "Why is reading a prompt fast and writing slow?", 15, 15),
    Chapter("05", "Fewer KV heads", "What is lost when query heads share keys and values?", 20, 25),
    Chapter("06", "Paged allocation", "Where do the bytes go that nobody uses?", 20, 15),
    Chapter("07", "Prefix sharing", "When can two requests use the same keys and values?", 15, 10),
    Chapter("08", "The cache in fewer bits", "How few bits will do, and who notices?", 15, 20),
    Chapter("09", "Windows, sinks and eviction", "Which tokens may a cache forget?", 15, 20),
    Chapter("10", "Serving under pressure", "What happens when the memory is full?", 20, 20),
    Chapter("11", "Size a deployment", "How many users fit on which machine?", 25, 20),
    Chapter(
        "12", "On a real engine", "Does a real engine agree with the arithmetic?", 30, optional=True
    ),
    Chapter("13", "Interview self-check", "Could I explain it to somebody who asks back?", 30),
)


@dataclass(frozen=True)
class CoursePath:
    """A way through the course: minutes by chapter number, in reading order."""

    name: str
    title: str
    about: str
    minutes: Mapping[str, int]

    @property
    def total_minutes(self) -> int:
        """The minutes of the whole path."""
        return sum(self.minutes.values())


EVERYTHING = CoursePath(
    "everything",
    "Everything",
    "Core and deep sections of every chapter, in order.",
    {chapter.number: chapter.core_minutes + chapter.deep_minutes for chapter in CHAPTERS},
)
INTERVIEW = CoursePath(
    "interview",
    "Interview path",
    "Core sections only, ending in a mock interview.",
    {
        "01": 15, "02": 15, "03": 20, "04": 15, "05": 20, "06": 15, "07": 10, "08": 10, "10": 10,
        "11": 20, "13": 30,
    },
)  # fmt: skip
PATHS: tuple[CoursePath, ...] = (EVERYTHING, INTERVIEW)


def find_chapter(number: str) -> Chapter:
    """Return a chapter by its two-digit number.

    >>> find_chapter("03").title
    'The memory formula'
    """
    for chapter in CHAPTERS:
        if chapter.number == number:
            return chapter
    raise InvalidArgument("number", number, 'must be a chapter such as "03"')


def find_path(name: str) -> CoursePath:
    """Return a path by its name.

    >>> find_path("interview").total_minutes
    180
    """
    for path in PATHS:
        if path.name == name:
            return path
    raise InvalidArgument("name", name, f"must be one of {', '.join(p.name for p in PATHS)}")


def chapters_folder() -> Path | None:
    """Return the folder of the notebooks seen from here, or None outside a copy of the course."""
    here = Path.cwd()
    for folder in (here, here / "chapters"):
        if any(folder.glob("00_*.ipynb")):
            return folder
    return None


def notebook_name(number: str, folder: Path | None = None) -> str | None:
    """Return the file name of a chapter's notebook in `folder`, or None while it is not there.

    >>> notebook_name("13", Path("no-such-folder")) is None
    True
    """
    find_chapter(number)
    place = folder or chapters_folder()
    found = sorted(place.glob(f"{number}_*.ipynb")) if place else []
    return found[0].name if found else None
