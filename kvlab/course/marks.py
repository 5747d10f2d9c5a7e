"""Read which of several numbered things somebody means: the points of a rubric, or statements."""

import re

from kvlab.course.typed import MAX_CHARS, Unread, clean

_WORDS = {"all": True, "every": True, "none": False, "": False, "0": False}
_RANGE = re.compile(r"([0-9]{1,2}|[a-z])-([0-9]{1,2}|[a-z])")


def read_marks(typed: str, total: int) -> frozenset[int] | Unread:
    """Return the numbers meant, from 1 to `total`: "1 3", "1,3", "1-3", "a c", "ac", "all", "none".

    Nothing typed means none. A letter stands for its place in the alphabet, so `total` is at most
    26. What lies outside gives `Unread` with the reason; nothing is raised.

    >>> sorted(read_marks("1-3, 5", 5)), sorted(read_marks("a c", 5)), len(read_marks("all", 5))
    ([1, 2, 3, 5], [1, 3], 5)
    >>> read_marks("7", 5).reason
    'they go from 1 to 5'
    """
    if len(typed) > MAX_CHARS:
        return Unread(f"it has {len(typed):,} characters")
    text = clean(typed).lower().strip(" .")
    if text in _WORDS:
        return frozenset(range(1, total + 1)) if _WORDS[text] else frozenset()
    text = re.sub(r"\b(?:points?|and)\b", " ", re.sub(r"\s*(?:-|\bto\b)\s*", "-", text))
    found: set[int] = set()
    for word in re.split(r"[\s,;.+&()]+", text):
        numbers = _read_word(word, total) if word else set()
        if numbers is None:
            return Unread("it is not a list such as 1 3, 1-3, a c or all")
        if not all(1 <= number <= total for number in numbers):
            return Unread(f"they go from 1 to {total}")
        found |= numbers
    return frozenset(found)


def _read_word(word: str, total: int) -> set[int] | None:
    """Read one number, letter or range, or several in one word such as "ac"; None for no list."""
    if found := _RANGE.fullmatch(word):
        ends = sorted(map(_place, found.groups()))
        return set(range(ends[0], ends[1] + 1))
    if re.fullmatch(r"[0-9]{1,2}|[a-z]", word) and (total > 9 or _place(word) <= total):
        return {_place(word)}
    if re.fullmatch(r"[a-z]{2,26}|[1-9]{2,9}", word) and len(set(word)) == len(word):
        return {_place(sign) for sign in word}
    return {_place(word)} if re.fullmatch(r"[0-9]{1,4}|[a-z]", word) else None


def _place(sign: str) -> int:
    """Return the place that a number or a letter names."""
    return int(sign) if sign.isdigit() else ord(sign) - ord("a") + 1
