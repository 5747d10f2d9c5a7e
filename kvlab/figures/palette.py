"""The colours of the course: one meaning per colour, and text that stays readable on it.

The roles are Okabe and Ito's set, told apart by colour-blind eyes. A colour never speaks alone:
the pictures add a letter, an outline, a hatch or a dash. It leaves out the neutrals of the page;
those follow the reader's theme and live in `kvlab.figures.svg`.
"""

from functools import cache

from kvlab.errors import InvalidArgument
from kvlab.paging.events import letter

ROLES: dict[str, str] = {
    "query": "#0072B2",
    "key": "#E69F00",
    "value": "#009E73",
    "wasted": "#D55E00",
    "shared": "#CC79A7",
    "weights": "#5B6770",
}
"""Colour by meaning, as `#rrggbb`; `free` is no colour but a neutral of the page."""

NEUTRAL = "#808080"
"""The grey that, thinly laid over any page, gives free space and empty cells."""

PALE = 0.42
"""Opacity of a colour that marks something read again rather than written now."""

REQUESTS: tuple[str, ...] = (
    "#7468C9",
    "#8CCBEA",
    "#DDCC77",
    "#96345F",
    "#9C9A38",
    "#C3AEE0",
    "#A5673F",
    "#B7D3B0",
)
"""The second scale, for maps of many requests; unlike query, key and value, and always lettered."""

BLACK, WHITE = "#111111", "#ffffff"


def color_of(role: str) -> str:
    """Return the `#rrggbb` colour of a role; `free` gives the neutral.

    >>> color_of("query")
    '#0072B2'
    """
    if role == "free":
        return NEUTRAL
    if role not in ROLES:
        raise InvalidArgument("role", role, f"must be one of {', '.join(ROLES)} or free")
    return ROLES[role]


def request_color(index: int) -> str:
    """Return the colour of the request with this 0-based number; the scale repeats after eight.

    >>> request_color(0) == request_color(8)
    True
    """
    return REQUESTS[index % len(REQUESTS)]


def request_letter(index: int) -> str:
    """Return the letter of the request with this 0-based number: A to Z, then A2, B2 and on.

    >>> request_letter(1), request_letter(27)
    ('B', 'B2')
    """
    return letter(index)


def channels(color: str) -> tuple[int, int, int]:
    """Split `#rrggbb` into three numbers from 0 to 255.

    >>> channels("#0072B2")
    (0, 114, 178)
    """
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def luminance(color: str) -> float:
    """Return the relative luminance (WCAG 2) of `#rrggbb`, from 0 for black to 1 for white."""

    def linear(channel: int) -> float:
        c = channel / 255
        return c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4

    red, green, blue = (linear(c) for c in channels(color))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio (WCAG 2) of two colours, from 1 to 21.

    >>> round(contrast("#000000", "#ffffff"))
    21
    """
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@cache
def text_on(color: str) -> str:
    """Return black or white, whichever reads better on this colour (at least 4.5 to 1).

    >>> text_on("#E69F00"), text_on("#0072B2")
    ('#111111', '#ffffff')
    """
    return max((BLACK, WHITE), key=lambda ink: contrast(ink, color))


def mix(color: str, ground: str, opacity: float) -> str:
    """Return what an eye sees of `color` laid over `ground` with this opacity (0 to 1).

    >>> mix("#000000", "#ffffff", 0.5)
    '#808080'
    """
    pairs = zip(channels(color), channels(ground), strict=True)
    return "#" + "".join(f"{round(c * opacity + g * (1 - opacity)):02x}" for c, g in pairs)
