"""The live pictures by the name of the call whose cell they stand in for, and their data.

A picture is made when the first cell asks for it, so that a page without one costs nothing.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache

from tools.site.cells import Part
from tools.site.live_blocks import blocks_part
from tools.site.live_memory import memory_part
from tools.site.live_race import follow_part, race_part

PARTS: Mapping[str, Callable[[], tuple[Part, dict[str, str]]]] = {
    "follow_token": cache(follow_part),
    "recompute_or_remember": cache(race_part),
    "memory_explorer": cache(memory_part),
    "allocation_race": cache(blocks_part),
}
"""The calls that have a live picture on the site, and what makes it."""


class LiveParts(Mapping[str, Part]):
    """Live parts by call; `files` holds the data of those that were asked for.

    >>> "memory_explorer" in LiveParts(), "planner" in LiveParts()
    (True, False)
    """

    def __init__(self) -> None:
        self.files: dict[str, str] = {}

    def __getitem__(self, call: str) -> Part:
        part, files = PARTS[call]()
        self.files |= files
        return part

    def __iter__(self) -> Iterator[str]:
        return iter(PARTS)

    def __len__(self) -> int:
        return len(PARTS)

    def __contains__(self, call: object) -> bool:
        return call in PARTS
