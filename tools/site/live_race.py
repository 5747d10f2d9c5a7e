"""Two pictures over the toy's eight positions: recompute against remember, and one token's way."""

from kvlab.widgets.follow_token import follow_token
from kvlab.widgets.player import StepPlayer
from kvlab.widgets.recompute_or_remember import recompute_or_remember
from tools.site.cells import Part
from tools.site.live_frames import Choice, player

SECONDS = 1.2


def _frames(made: StepPlayer, **others: object) -> list:  # type: ignore[type-arg]
    steps = made.controls["step"].max + 1
    return [made.draw(step=step, **others) for step in range(steps)]


def race_part() -> tuple[Part, dict[str, str]]:
    """Return the two columns of chapter 02, step by step."""
    made = recompute_or_remember()
    start = made.controls["step"].value
    about = "One step in two columns, recomputed and with a cache"
    choice = Choice("", "recompute-or-remember", _frames(made), start)
    return player("race", [choice], about=about, seconds=SECONDS)


def follow_part() -> tuple[Part, dict[str, str]]:
    """Return the way of one token of chapter 01, with one head and with two."""
    made = follow_token()
    start = made.controls["step"].value
    choices = [
        Choice(words, f"follow-token-{heads}", _frames(made, heads=heads), start)
        for heads, words in ((1, "1 head"), (2, "2 heads"))
    ]
    about = "One token after another through the toy model"
    return player("follow", choices, about=about, seconds=SECONDS, choose="heads")
