"""HTML in small pieces: a tag with escaped attributes, and text without its tags."""

import html
import re

_TAG = re.compile(r"<(?:style|script)\b.*?</(?:style|script)>|<[^>]+>", re.DOTALL | re.IGNORECASE)
_INLINE = re.compile(r"</?(?:a|b|strong|em|code|span|sub|sup|math|m[a-z]+)\b[^>]*>")
_VOID = {"img", "input", "link", "meta", "br"}


def tag(name: str, content: str = "", /, **attributes: object) -> str:
    """Return an element; `content` is markup already.

    A `_` in a name of an attribute stands for `-`, one at its end is dropped; `None` and `False`
    leave an attribute out, `True` gives it no value.

    >>> tag("a", "here", href="x.html?a&b", class_="next", hidden=None)
    '<a href="x.html?a&amp;b" class="next">here</a>'
    """
    opening = name
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key.rstrip("_").replace("_", "-")
        opening += f" {key}" if value is True else f' {key}="{html.escape(str(value))}"'
    return f"<{opening}>" if name in _VOID else f"<{opening}>{content}</{name}>"


def text(words: str) -> str:
    """Return words as markup: escaped, quotes left as they are.

    >>> text("a < b")
    'a &lt; b'
    """
    return html.escape(words, quote=False)


def plain(markup: str) -> str:
    """Return the words of some markup, in one line; a piece of a line takes no space of its own.

    >>> plain("<p>a <b>b</b>.</p><style>x</style>&lt;")
    'a b. <'
    """
    return " ".join(html.unescape(_TAG.sub(" ", _INLINE.sub("", markup))).split())


def slug(words: str, taken: set[str]) -> str:
    """Return an id made of these words that is not in `taken`, and put it there.

    >>> slug("8. Who notices?", {"who-notices"})
    'who-notices-2'
    """
    base = re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")
    base = re.sub(r"^[0-9]+-", "", base) or "section"
    number = 1
    while (name := base if number == 1 else f"{base}-{number}") in taken:
        number += 1
    taken.add(name)
    return name
