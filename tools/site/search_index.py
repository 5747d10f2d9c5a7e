"""The text of all pages for the search in the page: one script, because a page opened from a
disk must not fetch anything."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass
class Section:
    """A stretch of a page under one heading: where it is, what it is called, its words."""

    page: str
    anchor: str
    title: str
    heading: str
    words: list[str] = field(default_factory=list)


def search_script(sections: Iterable[Section]) -> str:
    """Return the script that holds the text of all sections, pages named once.

    >>> search_script([Section("a.html", "b", "A", "B", ["some  words"])])
    'kvlab.texts=[["a.html","b","A","B","some words"]];\\n'
    """
    rows = []
    for section in sections:
        words = " ".join(" ".join(section.words).split())
        rows.append([section.page, section.anchor, section.title, section.heading, words])
    held = json.dumps(rows, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    return f"kvlab.texts={held};\n"
