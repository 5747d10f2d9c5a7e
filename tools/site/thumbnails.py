"""The chapters' pictures as files, one for each theme.

A picture in an `img` sees the system's theme but not the switch of the page, so there are two.
"""

import re
from pathlib import Path

from kvlab.figures.svg import MAX_WIDTH

_LABEL = re.compile(r'\baria-label="([^"]*)"')
_SIZE = re.compile(r'<svg\b[^>]*?\bwidth="([0-9.]+)" height="([0-9.]+)"')
_DARK = re.compile(r"@media\(prefers-color-scheme:dark\)\{(\.kvlab\{[^}]*\})\}")


def picture_file(number: str, theme: str) -> str:
    """Return the address of a chapter's picture.

    >>> picture_file("03", "dark")
    'pictures/03-dark.svg'
    """
    return f"pictures/{number}-{theme}.svg"


def label_of(markup: str) -> str:
    """Return the label of an SVG, escaped as it stands there."""
    found = _LABEL.search(markup)
    return found[1] if found else "A picture of the chapter."


def share_of(markup: str) -> float:
    """Return the width a picture has on a card 16 by 9: below 1 for a narrow one, above for a flat.

    A flat picture grows until it fills the card, at most by 1.7, and is cut off at the right.

    >>> share_of('<svg width="480" height="400">'), share_of('<svg width="960" height="360">')
    (0.5, 1.5)
    """
    found = _SIZE.search(markup)
    if not found:
        return 1.0
    width, height = float(found[1]), float(found[2])
    if width < MAX_WIDTH:
        return width / MAX_WIDTH
    return min(1.7, max(1.0, width / height * 9 / 16))


def in_theme(markup: str, theme: str) -> str:
    """Return an SVG that has one theme whatever the system says.

    >>> in_theme("<style>@media(prefers-color-scheme:dark){.kvlab{--a:1}}</style>", "dark")
    '<style>.kvlab{--a:1}</style>'
    """
    return _DARK.sub(r"\1" if theme == "dark" else "", markup)


def write_pictures(pictures: Path, out: Path) -> list[Path]:
    """Write every chapter's picture in both themes below `out`; return the files."""
    written = []
    for source in sorted(pictures.glob("*.svg")):
        markup = source.read_text(encoding="utf-8")
        for theme in ("light", "dark"):
            target = out / picture_file(source.stem, theme)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(in_theme(markup, theme), encoding="utf-8")
            written.append(target)
    return written
