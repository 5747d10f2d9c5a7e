"""What the check of 04-d compares with: speculative decoding, right and known wrong ways."""

from collections.abc import Sequence

from kvlab.course.grading import Grade
from kvlab.course.guarded import WrongFunction, grade_function


def accept(proposed: Sequence[int], chosen: Sequence[int]) -> tuple[list[int], int]:
    """Return the tokens to emit and the rows to drop; `chosen` is one longer than `proposed`.

    >>> accept([4, 5, 6], [4, 5, 9, 2])
    ([4, 5, 9], 1)
    """
    right = 0
    while right < len(proposed) and proposed[right] == chosen[right]:
        right += 1
    return [*proposed[:right], chosen[right]], len(proposed) - right


def _anywhere(proposed: Sequence[int], chosen: Sequence[int]) -> tuple[list[int], int]:
    agreed = [p for p, c in zip(proposed, chosen, strict=False) if p == c]
    return [*agreed, chosen[len(agreed)]], len(proposed) - len(agreed)


def _as_many(proposed: Sequence[int], chosen: Sequence[int]) -> tuple[list[int], int]:
    count = sum(p == c for p, c in zip(proposed, chosen, strict=False))
    return [*proposed[:count], chosen[count]], len(proposed) - count


def _guess_kept(proposed: Sequence[int], chosen: Sequence[int]) -> tuple[list[int], int]:
    emitted, dropped = accept(proposed, chosen)
    return list(proposed[: len(emitted)]), dropped


_AFTER_WRONG = (
    "A guess after a wrong one counted: it was checked behind a text that will not exist."
)
_ACCEPT_WRONG = (
    WrongFunction(
        "own-token-forgotten",
        lambda proposed, chosen: (
            accept(proposed, chosen)[0][:-1],
            accept(proposed, chosen)[1],
        ),
        "The model's own token is missing: the pass has computed one after the last kept guess.",
    ),
    WrongFunction(
        "last-choice",
        lambda proposed, chosen: (
            [*accept(proposed, chosen)[0][:-1], chosen[-1]],
            accept(proposed, chosen)[1],
        ),
        "The model's last choice follows wrong guesses; emit the one after the last right guess.",
    ),
    WrongFunction(
        "one-row-too-many",
        lambda proposed, chosen: (
            accept(proposed, chosen)[0],
            max(accept(proposed, chosen)[1] - 1, 0),
        ),
        "One row too few is dropped: the row of the first wrong guess holds that wrong token.",
    ),
    WrongFunction(
        "dropped-own",
        lambda proposed, chosen: (accept(proposed, chosen)[0], accept(proposed, chosen)[1] + 1),
        "One row too many is dropped: the model's own token has no row yet.",
    ),
    WrongFunction(
        "guess-emitted",
        _guess_kept,
        "The wrong guess itself was emitted; the model's own token takes its place.",
    ),
    WrongFunction("anywhere", _anywhere, _AFTER_WRONG),
    WrongFunction("anywhere", _as_many, _AFTER_WRONG),
)
_ACCEPT_CASES = [
    ([4, 5, 6], [4, 5, 9, 2]),
    ([4, 5, 6], [4, 5, 6, 7]),
    ([4, 5, 6], [1, 5, 6, 7]),
    ([8, 3, 8, 3], [8, 9, 8, 3, 1]),
    ([], [7]),
]


def grade_accept(answer: object) -> Grade:
    """Grade exercise 04-d."""
    return grade_function(answer, accept, _ACCEPT_CASES, _ACCEPT_WRONG)
