"""What the checks of chapter 03 compare with: reference functions and known wrong ways."""

from kvlab.arithmetic.catalogue import find_model
from kvlab.arithmetic.memory import kv_bytes
from kvlab.arithmetic.reader import read_model
from kvlab.arithmetic.request import size_request
from kvlab.arithmetic.units import GIB
from kvlab.course.grading import Grade, Misconception, Target, Verdict, grade_number, unread_grade
from kvlab.course.guarded import WrongFunction, grade_function
from kvlab.course.marks import read_marks
from kvlab.course.published_table import PRINTED_MIB, STATEMENTS, marked, page_mib
from kvlab.course.typed import Unread

Sizes = tuple[int, int, int, int, int, int]


def cache_bytes(
    num_layers: int,
    num_kv_heads: int,
    head_dim: int,
    bytes_per_element: int,
    seq_len: int,
    users: int,
) -> int:
    """Return the bytes of the caches of `users`, each with `seq_len` tokens.

    >>> cache_bytes(80, 8, 128, 2, 8192, 4) / GIB
    10.0
    """
    return kv_bytes(
        num_layers=num_layers,
        num_kv_heads=num_kv_heads,
        head_dim=head_dim,
        bytes_per_element=bytes_per_element,
        seq_len=seq_len,
        batch=users,
    )


_CASES: list[Sizes] = [
    (32, 8, 128, 2, 2048, 1),
    (80, 8, 128, 2, 8192, 4),
    (30, 3, 64, 4, 16, 1),
    (1, 1, 2, 1, 3, 5),
]
_BYTES_WRONG = (
    WrongFunction(
        "factor-2",
        lambda *sizes: cache_bytes(*sizes) // 2,
        "Half of it: a token leaves a key and a value, two vectors.",
    ),
    WrongFunction(
        "factor-2-twice",
        lambda *sizes: cache_bytes(*sizes) * 2,
        "Twice as much: bytes_per_element is there already, and the 2 counts key and value.",
    ),
    WrongFunction(
        "one-layer",
        lambda layers, *rest: cache_bytes(1, *rest),
        "That is one layer; each layer keeps keys and values of its own.",
    ),
    WrongFunction(
        "one-user",
        lambda *sizes: cache_bytes(*sizes[:5], 1),
        "That is one user; each user's cache is its own.",
    ),
    WrongFunction(
        "one-token",
        lambda *sizes: cache_bytes(*sizes[:4], 1, sizes[5]),
        "That is one token; every token kept counts.",
    ),
    WrongFunction(
        "bits",
        lambda *sizes: cache_bytes(*sizes) * 8,
        "Eight times as much: these are bits.",
    ),
    WrongFunction(
        "elements",
        lambda *sizes: cache_bytes(*sizes[:3], 1, *sizes[4:]),
        "These are numbers, not bytes: each takes bytes_per_element.",
    ),
)


def grade_bytes(answer: object) -> Grade:
    """Grade exercise 03-a."""
    return grade_function(answer, cache_bytes, _CASES, _BYTES_WRONG)


def config_gib() -> float:
    """Return Qwen3 4B's cache in bf16 at 32,768 tokens, in GiB.

    >>> config_gib()
    4.5
    """
    return size_request(read_model("qwen3-4b"), context=32_768).kv_bytes / GIB


def grade_config(answer: object) -> Grade:
    """Grade exercise 03-b."""
    config, right = find_model("qwen3-4b").config, config_gib()
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    divided = config["hidden_size"] / heads / config["head_dim"]
    known = (
        (
            "query-heads",
            right * heads / kv_heads,
            "Query heads were counted; the cache holds KV heads.",
        ),
        ("factor-2", right / 2, "Half: a token leaves a key and a value."),
        (
            "factor-2-twice",
            right * 2,
            "Twice as much: one 2 counts key and value, one the bytes of a number; no third 2.",
        ),
        (
            "hidden-over-heads",
            right * divided,
            "head_dim was taken as hidden size over heads; this config writes another one.",
        ),
        (
            "weight-dtype",
            right / 4,
            "The 4 bits are those of the weights; the cache has a dtype of its own.",
        ),
        ("one-layer", right / config["num_hidden_layers"], "That is one layer."),
        (
            "full-context",
            right * config["max_position_embeddings"] / 32_768,
            "That is the longest context the model allows; 32,768 tokens are kept.",
        ),
    )
    slips = tuple(Misconception(*row) for row in known)
    return grade_number(answer, Target(right, unit="GiB", misconceptions=slips))


def table_factor() -> float:
    """Return what the page's function gives over what the page prints, the same in each row.

    >>> table_factor()
    2.0
    """
    (factor,) = {page_mib(32, 8, 128, n) / printed for n, printed in PRINTED_MIB.items()}
    return factor


def grade_factor(answer: object) -> Grade:
    """Grade exercise 03-c."""
    known = (
        ("upside-down", 0.5, "Upside down: by what must a printed size be multiplied?"),
        (
            "unit-only",
            1024**2 / 1000**2,
            "That is MiB against MB, a real slip of the page, but not what the function shows.",
        ),
        ("twice-lost", 4, "One lost factor explains it, not two: run the function."),
        ("none", 1, "Run the function: it does not return what is printed."),
        ("difference", 128, "That is the difference of the first row; a factor is asked for."),
    )
    slips = tuple(Misconception(*row) for row in known)
    words = ("times", "fold", "factor")
    return grade_number(answer, Target(table_factor(), words=words, misconceptions=slips))


def grade_marks(answer: object) -> Grade:
    """Grade exercise 03-d: the letters of the statements that inherit the fault.

    >>> grade_marks("A B C").misconception
    'extra-C'
    """
    letters = _letters(answer)
    if isinstance(letters, Unread):
        return unread_grade(letters)
    for row in STATEMENTS:
        if row.letter in letters and not row.inherits:
            text = f"Not right: {row.letter} does not inherit it: {row.why}."
            return Grade(Verdict.WRONG, text, f"extra-{row.letter}")
    missing = marked() - letters
    if missing:
        text = f"So far right, but {len(missing)} more inherit it. Ask of each: was a size of the "
        return Grade(Verdict.WRONG, text + "table multiplied, divided or copied?", "missed")
    return Grade(Verdict.RIGHT, "Right.")


def _letters(answer: object) -> frozenset[str] | Unread:
    """Read letters from a text or a collection of texts."""
    if answer is None or answer is ...:
        return Unread("", empty=True)
    if isinstance(answer, list | tuple | set | frozenset):
        answer = " ".join(str(part)[:3] for part in list(answer)[:40])
    if not isinstance(answer, str):
        return Unread("it is not a list of letters", empty=True)
    if not answer.strip(" .,;"):
        return Unread("", empty=True)
    known = "".join(row.letter for row in STATEMENTS)
    marks = read_marks(answer, len(known))
    if isinstance(marks, Unread):
        return Unread(f'it is not a list of letters from {known[0]} to {known[-1]}, as "A C"')
    return frozenset(known[place - 1] for place in marks)
