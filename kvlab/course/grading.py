"""Grade one number: right, wrong, wrong in a known way, or not readable.

A grade never holds the expected value, and neither does the repr of a target: nothing printed or
saved before the solution is shown can give it away. Grading never raises and never evaluates.
"""

from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum

from kvlab.course.hints import misreading, other_family, unknown_unit
from kvlab.course.typed import Typed, Unread, read_typed
from kvlab.course.typed_units import Unit, read_unit, split_per

Number = int | float


class Verdict(StrEnum):
    """What became of an answer."""

    RIGHT = "right"
    NEAR = "near"
    WRONG = "wrong"
    WRONG_UNIT = "wrong unit"
    NEED_UNIT = "unit missing"
    AMBIGUOUS = "can be read in two ways"
    UNREADABLE = "not readable"
    NOT_ANSWERED = "not answered yet"


@dataclass(frozen=True)
class Grade:
    """A verdict and one or two sentences for the learner; never the expected value."""

    verdict: Verdict
    feedback: str
    misconception: str = ""

    @property
    def right(self) -> bool:
        """Whether the answer is right."""
        return self.verdict is Verdict.RIGHT

    @property
    def answered(self) -> bool:
        """Whether there was an answer that could be judged; one that means two things cannot."""
        return self.verdict not in (Verdict.NOT_ANSWERED, Verdict.UNREADABLE, Verdict.AMBIGUOUS)


@dataclass(frozen=True)
class Misconception:
    """A known wrong way, the value it gives (in the target's unit), and what to say to it."""

    id: str
    value: Number = field(repr=False)
    feedback: str


@dataclass(frozen=True)
class Target:
    """What a number is compared with. `value` is in `unit`; `words` are names of what is counted.

    `exact` asks for the very integer; else `tolerance` is relative (three digits are enough).
    """

    value: Number = field(repr=False)
    unit: str = ""
    exact: bool = False
    tolerance: float = 0.005
    words: tuple[str, ...] = ()
    per: str = ""
    misconceptions: tuple[Misconception, ...] = field(default=(), repr=False)


def grade_number(answer: object, target: Target) -> Grade:
    """Grade an answer of any type against a target; never raises.

    >>> forty = Target(40, unit="GiB")
    >>> [grade_number(text, forty).verdict.value for text in ("40960 MiB", "40 GB", "43 Gb")]
    ['right', 'wrong', 'wrong unit']
    """
    try:
        typed = read_typed(answer)
        if isinstance(typed, Unread):
            return unread_grade(typed)
        return _grade_typed(typed, target)
    except Exception:  # a learner's cell must never end in a traceback of ours
        return unread_grade(Unread("it is not a number that can be read"))


def unread_grade(unread: Unread) -> Grade:
    """Return the grade of an answer that holds nothing to judge."""
    if unread.empty:
        end = "" if unread.reason.endswith("?") else "."
        why = f": {unread.reason}{end}" if unread.reason else "."
        return Grade(Verdict.NOT_ANSWERED, f"Not answered yet{why}")
    text = f"Not answered yet: this cannot be read, because {unread.reason}."
    return Grade(Verdict.UNREADABLE, text)


def _grade_typed(typed: Typed, target: Target) -> Grade:
    """Grade a number that was read."""
    asked = read_unit(target.unit)[0]
    text, per = split_per(typed.unit)
    units = _units(text, target)
    if not units:
        return Grade(Verdict.UNREADABLE, unknown_unit(text, asked.family))
    if per and per != target.per:
        return Grade(Verdict.WRONG_UNIT, f'"Per {per}" is not what the question asks for.')
    if not text and asked.family != "number":
        units = (*dict.fromkeys((asked, Unit(asked.family, Decimal(1)))),)
    same = tuple(unit for unit in units if unit.family == asked.family)
    if not same:
        return Grade(Verdict.WRONG_UNIT, other_family(units[0].family, asked.family))
    return _grade_value(typed, same, _Scale(target, asked.factor), bare=not text)


def _units(text: str, target: Target) -> tuple[Unit, ...]:
    """Return the meanings of the unit; a word for what is counted means no unit."""
    asked = read_unit(target.unit)[0]
    if asked.family == "number":
        words = {word.lower() for word in target.words}
        words |= {word.removesuffix("s") for word in words}
        if text.lower() in words:
            return read_unit(target.unit if target.unit == "%" else "")
        head, _, tail = text.partition(" ")
        if tail.lower() in words:
            return read_unit(head)
    if not text:
        return (asked, Unit("number", Decimal(1))) if target.unit == "%" else (asked,)
    return read_unit(text)


@dataclass(frozen=True)
class _Scale:
    """A target in its base unit."""

    target: Target
    factor: Decimal

    def matches(self, value: Decimal, expected: Number) -> bool:
        """Whether a value in base units is the expected one (given in the target's unit)."""
        wanted = Decimal(str(expected)) * self.factor
        if self.target.exact:
            return value == wanted
        return abs(value - wanted) <= abs(wanted) * Decimal(str(self.target.tolerance))

    def near(self, value: Decimal, digits: str, step: Decimal) -> bool:
        """Whether the value is the expected one rounded too far."""
        wanted = Decimal(str(self.target.value)) * self.factor
        off = abs(value - wanted)
        if self.target.exact:
            return abs(wanted) >= 1000 and off <= abs(wanted) / 200
        figures = sum(char.isdigit() for char in digits.lstrip("0., "))
        return figures == 2 and off <= step / 2 and off <= abs(wanted) / 20


def _grade_value(typed: Typed, units: tuple[Unit, ...], scale: _Scale, *, bare: bool) -> Grade:
    """Grade readings and units of the right family."""
    expected = scale.target.value
    values = [[reading * unit.factor for unit in units] for reading in typed.readings]
    if any(scale.matches(value, expected) for value in values[0]):
        return Grade(Verdict.RIGHT, "Right.")
    if any(scale.matches(value, expected) for row in values[1:] for value in row):
        return Grade(Verdict.AMBIGUOUS, _TWO_WAYS)
    for known in scale.target.misconceptions:
        if any(scale.matches(value, known.value) for value in values[0]):
            return Grade(Verdict.WRONG, known.feedback, known.id)
    return _grade_known_slips(typed, units, scale, bare=bare)


def _grade_known_slips(
    typed: Typed, units: tuple[Unit, ...], scale: _Scale, *, bare: bool
) -> Grade:
    """Grade a value that no named misconception explains: units mixed up, or rounded too far."""
    number, target = typed.readings[0], scale.target

    def right_if(value: Decimal) -> bool:
        return scale.matches(value, target.value)

    slip = misreading(number, units, right_if, bare=bare)
    if slip is not None:
        verdict = Verdict.NEED_UNIT if slip[0] == "unit-missing" else Verdict.WRONG
        return Grade(verdict, slip[1], slip[0])
    places = len(typed.digits.partition(".")[2])
    step = units[0].factor / Decimal(10) ** places
    if scale.near(number * units[0].factor, typed.digits, step):
        asked = "the exact integer" if target.exact else "three digits"
        return Grade(Verdict.NEAR, f"Near: rounded too far, or off by a little. Give {asked}.")
    if number < 0:
        return Grade(Verdict.WRONG, "Not right: the answer is not a negative number.")
    return Grade(Verdict.WRONG, "Not right.")


_TWO_WAYS = (
    "The point or comma can be read as a decimal mark or as a separator of thousands. "
    "Write the number without separators."
)
