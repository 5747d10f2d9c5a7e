"""How wide a text will be, guessed from above, so that labels never collide or leave the picture.

The widths are those of DejaVu Sans, one of the widest fonts in common use, rounded up. It leaves
out kerning and scripts other than Latin.
"""

_NARROW, _SLIM, _WIDE = "iljI.,:;'|!", 'tfr()[]/\\ -"', "mwMW@%&+=<>~\u2192"


def text_width(content: str, size: float = 12, *, mono: bool = False, bold: bool = False) -> float:
    """Return the width in pixels that `content` needs at this font size, never too little.

    >>> round(text_width("00", 10, mono=True), 1)
    12.1
    """
    if mono:
        return 0.603 * size * len(content)
    total = 0.0
    for letter in content:
        if letter in _NARROW:
            total += 0.34
        elif letter in _SLIM:
            total += 0.42
        elif letter in _WIDE:
            total += 0.97
        else:
            total += 0.72 if letter.isupper() else 0.635
    return total * size * (1.1 if bold else 1.0)


def shorten_to(content: str, width: float, size: float = 12, *, mono: bool = False) -> str:
    """Return `content`, cut and closed by an ellipsis if it is wider than `width` pixels.

    >>> shorten_to("a long label", 40)
    'a lon\u2026'
    """
    if text_width(content, size, mono=mono) <= width:
        return content
    while content and text_width(content + "\u2026", size, mono=mono) > width:
        content = content[:-1]
    return content.rstrip() + "\u2026" if content else ""


def wrap(content: str, width: float, size: float = 12, *, mono: bool = False) -> list[str]:
    """Return `content` as lines of at most `width` pixels, broken at spaces.

    >>> wrap("written now read again", 80)
    ['written now', 'read again']
    """
    lines: list[str] = []
    for word in content.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, size, mono=mono) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines
