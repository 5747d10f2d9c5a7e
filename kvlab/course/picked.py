"""Grade what is picked: one option, one faulty line, or an order of steps."""

import re
from collections.abc import Sequence

from kvlab.course.grading import Grade, Verdict, unread_grade
from kvlab.course.questions import Option
from kvlab.course.typed import MAX_CHARS, Unread, clean

LETTERS = "ABCDEFGHIJ"


def grade_pick(answer: object, options: Sequence[Option]) -> Grade:
    """Grade a picked option: a letter, a 1-based number or the option's own text.

    >>> options = [Option("one", True, "Yes."), Option("two", False, "No: too many.")]
    >>> grade_pick("b", options).feedback, grade_pick(1, options).right
    ('Not right. No: too many.', True)
    """
    place = _place(answer, [option.text for option in options])
    if isinstance(place, Unread):
        return unread_grade(place)
    option = options[place]
    if option.right:
        return Grade(Verdict.RIGHT, f"Right. {option.why}")
    return Grade(Verdict.WRONG, f"Not right. {option.why}", f"option-{place + 1}")


def grade_order(
    answer: object, order: Sequence[int], steps: Sequence[str], whys: Sequence[str]
) -> Grade:
    """Grade an order of the shown steps: "C A B", "312" or a list of 1-based numbers.

    `order` says which step stands at each shown place; a wrong order is met with the reason of
    the first step that comes too early.
    """
    places = _places(answer, len(steps))
    if isinstance(places, Unread):
        return unread_grade(places)
    given = [order[place] for place in places]
    for position, step in enumerate(given):
        if step != position:
            shown = LETTERS[places[position]]
            why = f"Place {position + 1} does not fit: step {shown} comes too early. {whys[step]}"
            return Grade(Verdict.WRONG, f"Not right. {why}", f"place-{position + 1}")
    return Grade(Verdict.RIGHT, "Right.")


def _place(answer: object, texts: Sequence[str]) -> int | Unread:
    """Return the 0-based place of a picked option."""
    if answer is None or answer is ... or (isinstance(answer, str) and not answer.strip(" .")):
        return Unread("", empty=True)
    if isinstance(answer, int) and not isinstance(answer, bool):
        answer = str(answer) if -99 < answer < 99 else "no"
    if not isinstance(answer, str):
        return Unread(f"a {type(answer).__name__[:40]} is not an option", empty=True)
    if answer in texts:
        return list(texts).index(answer)
    found = re.fullmatch(r"\(?([A-Za-z]|[0-9]{1,2})[.):]?", clean(answer[: MAX_CHARS + 1]))
    letters = LETTERS[: len(texts)]
    if found and found[1].upper() in letters:
        return letters.index(found[1].upper())
    if found and found[1].isdigit() and 1 <= int(found[1]) <= len(texts):
        return int(found[1]) - 1
    return Unread(f"it is none of the letters {', '.join(letters)}")


def _places(answer: object, count: int) -> list[int] | Unread:
    """Return the 0-based places of an order; each step must come once."""
    if isinstance(answer, list | tuple):
        answer = " ".join(str(item)[:4] for item in answer[: count + 1])
    if answer is None or answer is ... or (isinstance(answer, str) and not answer.strip(" .")):
        return Unread("", empty=True)
    if isinstance(answer, int) and not isinstance(answer, bool) and 0 <= answer < 10**10:
        answer = str(answer)
    if not isinstance(answer, str) or len(answer) > MAX_CHARS:
        return Unread("it is not an order of the steps")
    signs = re.findall(r"[A-Z]|[0-9]", clean(answer).upper())
    letters = LETTERS[:count]
    places = [letters.find(sign) if sign.isalpha() else int(sign) - 1 for sign in signs]
    if sorted(places) != list(range(count)):
        return Unread(f"each of {', '.join(letters)} must come exactly once")
    return places
