"""Recompute or remember: one step in two columns, and one slider that moves both."""

from kvlab.figures.recompute import cached_column, count_rows, recompute_column, step_columns
from kvlab.widgets.base import Frame
from kvlab.widgets.player import StepPlayer


def recompute_or_remember(
    tokens: str = "ABCDEFGH", *, start: int = 3, scale: float = 1.0
) -> StepPlayer:
    """Return the step player of both columns; its control is `step` (0-based).

    >>> player = recompute_or_remember()
    >>> player.numbers["recompute: vectors computed"], player.numbers["remember: vectors computed"]
    ('12 (9 again)', '3')
    """

    def draw(step: int) -> Frame:
        columns = recompute_column(len(tokens), step), cached_column(len(tokens), step)
        numbers = {
            f"{column.name}: {name}": value
            for column in columns
            for name, value in count_rows(column).items()
        }
        picture = step_columns(list(tokens), step, scale=scale)
        return Frame(picture, numbers, f"{picture.label}", numbers_in_picture=True)

    return StepPlayer(draw, len(tokens), kind="recompute-or-remember", start=start, name="position")
