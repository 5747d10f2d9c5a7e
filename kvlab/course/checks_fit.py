"""How many requests fit: what the checks 03-e and 11-e compare with, and the slips by name.

Both are about Llama 3.1 8B in 16 bit and the room that a card of 80 GB leaves beside its weights.
"""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal

from kvlab.arithmetic.catalogue import find_model, model_shape
from kvlab.arithmetic.memory import kv_bytes
from kvlab.arithmetic.units import GB, GIB
from kvlab.course.grading import Grade, Verdict, unread_grade
from kvlab.course.typed import MAX_CHARS, Unread, read_typed

MODEL = "llama-3.1-8b"
LENGTHS = (2048, 8192, 32_768, 131_072)
ROOM_GIB = 62
"""What is left for caches on the card, in GiB: the unit is said in the exercises."""
CARD_GB = 80

Known = tuple[str, Sequence[float], str]


def request_bytes(tokens: int, *, kv_heads: int | None = None, each: int = 2) -> int:
    """Return the cache of one request; `kv_heads` other than the model's, `each` bytes a number.

    >>> [request_bytes(n) / GIB for n in LENGTHS]
    [0.25, 1.0, 4.0, 16.0]
    """
    shape = model_shape(MODEL)
    return kv_bytes(
        num_layers=shape.num_layers,
        num_kv_heads=kv_heads or shape.num_kv_heads,
        head_dim=shape.head_dim,
        bytes_per_element=each,
        seq_len=tokens,
    )


def that_fit(room: int = ROOM_GIB * GIB, **change: int) -> list[int]:
    """Return the whole requests that `room` bytes hold, for each of the four lengths.

    >>> that_fit(), that_fit(ROOM_GIB * GB)
    ([248, 62, 15, 3], [230, 57, 14, 3])
    """
    return [room // request_bytes(tokens, **change) for tokens in LENGTHS]


def heads_that_fit(room: int = ROOM_GIB * GIB) -> list[int]:
    """Return the requests of 32,768 tokens that fit: each query head with its own KV head, then 8.

    >>> heads_that_fit()
    [3, 15]
    """
    heads = model_shape(MODEL).num_heads
    return [room // request_bytes(32_768, kv_heads=heads), room // request_bytes(32_768)]


def grade_fit(answer: object) -> Grade:
    """Grade exercise 03-e: four whole numbers.

    >>> grade_fit([230, 57, 14, 3]).misconception
    'gb-for-gib'
    """
    room, weights = ROOM_GIB * GIB, 2 * (find_model(MODEL).parameters or 0)
    exact = [room / request_bytes(tokens) for tokens in LENGTHS]
    known: list[Known] = [
        ("gb-for-gib", that_fit(ROOM_GIB * GB), "62 GB were shared out; the task says GiB, and "
         "1 GiB is 2^30 bytes."),
        ("factor-2", that_fit(each=1), "Half the bytes of a token are missing: a key and a value, "
         "and 2 bytes in each of their numbers."),
        ("query-heads", that_fit(kv_heads=model_shape(MODEL).num_heads), "Query heads were "
         "counted; the cache holds the 8 KV heads."),
        ("rounded-up", [-(-room // request_bytes(tokens)) for tokens in LENGTHS], "Rounded up: the "
         "last of them would not find room. Round down."),
        ("fraction", exact, "Whole requests only: a part of one is of no use to anybody."),
        ("whole-card", that_fit(CARD_GB * GB), "The whole card was shared out; 62 GiB of it are "
         "left for caches."),
        ("whole-card", that_fit(CARD_GB * GIB), "The whole card was shared out; 62 GiB of it are "
         "left for caches."),
        ("weights-again", that_fit(room - weights), "The weights were taken off once more: 62 GiB "
         "is what they leave."),
        ("four-bytes", that_fit(each=4), "Twice the bytes: in 16 bit a number takes 2, and the "
         "other 2 counts key and value."),
    ]  # fmt: skip
    return _grade_counts(answer, that_fit(), known, [f"{tokens:,} tokens" for tokens in LENGTHS])


def grade_heads(answer: object) -> Grade:
    """Grade exercise 11-e: the requests with 32 KV heads, then with 8.

    >>> grade_heads((3, 12)).misconception
    'multiplied-counts'
    """
    room, right = ROOM_GIB * GIB, heads_that_fit()
    sizes = [request_bytes(32_768, kv_heads=heads) for heads in (32, 8)]
    known: list[Known] = [
        ("swapped", right[::-1], "The right numbers, swapped: more KV heads, more bytes, fewer "
         "requests. The first is the one with 32."),
        ("multiplied-counts", [right[0], 4 * right[0]], "The rounded count was multiplied by four. "
         "Divide bytes first, and round down once, at the end."),
        ("divided-counts", [right[1] / 4, right[1]], "Whole requests only, on both sides."),
        ("gb-for-gib", heads_that_fit(ROOM_GIB * GB), "62 GB were shared out; the task says GiB, "
         "and 1 GiB is 2^30 bytes."),
        ("factor-2", [2 * room // size for size in sizes], "Half the bytes of a token are missing: "
         "a key and a value, and 2 bytes in each of their numbers."),
        ("rounded-up", [-(-room // size) for size in sizes], "Rounded up: the last of them would "
         "not find room. Round down."),
        ("fraction", [room / size for size in sizes], "Whole requests only: round down."),
        ("query-heads", [right[0], right[0]], "Both were counted with 32 heads: as it is made, "
         "the model keeps 8."),
        ("no-difference", [right[1], right[1]], "Both were counted with 8 heads: with a KV head "
         "for each query head a request is four times as large."),
    ]  # fmt: skip
    return _grade_counts(answer, right, known, ["32 KV heads", "8 KV heads"])


def _grade_counts(
    answer: object, right: Sequence[int], known: Sequence[Known], names: Sequence[str]
) -> Grade:
    """Grade several whole numbers: all right, all wrong in a known way, or wrong in some places."""
    given = read_counts(answer, len(right))
    if isinstance(given, Unread):
        return unread_grade(given)
    if given == list(right):
        return Grade(Verdict.RIGHT, "Right.")
    for name, values, feedback in known:
        if all(abs(float(one) - value) < 0.006 for one, value in zip(given, values, strict=True)):
            return Grade(Verdict.WRONG, f"Not right. {feedback}", name)
    off = [name for one, wanted, name in zip(given, right, names, strict=True) if one != wanted]
    agree = len(right) - len(off)
    text = f"Not right: {agree} of {len(right)} agree. Look again at {off[0]}."
    return Grade(Verdict.WRONG, text)


def read_counts(answer: object, count: int) -> list[Decimal] | Unread:
    """Read `count` numbers from a list, an array or a text such as "248, 62, 15, 3".

    >>> read_counts("248/62/15/3", 4) == [248, 62, 15, 3]
    True
    """
    if answer is None or answer is ...:
        return Unread("", empty=True)
    if isinstance(answer, str):
        inside = answer.strip(" []().")
        if not inside or len(answer) > MAX_CHARS:
            return Unread(
                "it is too long for a list of numbers" if inside else "", empty=not inside
            )
        answer = re.split(r"[\s,;/]+", inside)
    if isinstance(answer, Mapping):
        answer = list(answer.values())
    listed = answer.tolist() if hasattr(answer, "tolist") else answer
    if not isinstance(listed, list | tuple) or not listed:
        return Unread(f"{count} numbers are asked for, in a list")
    typed = [read_typed(one) for one in listed[: count + 1]]
    if all(isinstance(one, Unread) and one.empty for one in typed):
        return Unread("", empty=True)
    if len(listed) != count:
        return Unread(f"it holds {len(listed)} numbers, and {count} are asked for")
    if strange := [one for one in typed if isinstance(one, Unread)]:
        return Unread(strange[0].reason or "one of the numbers is missing")
    return [one.readings[0] for one in typed if not isinstance(one, Unread)]
