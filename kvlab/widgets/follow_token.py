"""Follow one token: a step player over the toy, with one head or two."""

from functools import cache

from kvlab.figures.toy_step import facts, toy_step
from kvlab.model.toy import Toy, ToyCache, ToyStep
from kvlab.widgets.base import Frame
from kvlab.widgets.player import StepPlayer, head_switch


@cache
def toy_steps(text: str, num_heads: int) -> tuple[ToyStep, ...]:
    """Return the toy's steps over a text of at most 8 letters, one letter a step.

    >>> [step.prediction for step in toy_steps("ABCD", 1)]
    ['B', 'C', 'D', 'E']
    """
    toy, held = Toy(num_heads), ToyCache(num_heads)
    return tuple(toy.step(held, letter) for letter in text)


def event(step: ToyStep) -> str:
    """Return what the step did, in words.

    >>> event(toy_steps("ABC", 1)[1])
    'B is consumed: k1 and v1 are written, k0 and v0 read again. It predicts C; q1 is not kept.'
    """
    here = step.position
    words = f"{step.letter} is consumed: k{here} and v{here} are written, "
    if here == 0:
        words += "nothing is there to read. "
    elif here == 1:
        words += "k0 and v0 read again. "
    else:
        words += f"k0 to k{here - 1} and v0 to v{here - 1} read again. "
    return f"{words}It predicts {step.prediction}; q{here} is not kept."


def follow_token(
    num_heads: int = 1, *, start: int = 3, text: str = "ABCDEFGH", scale: float = 1.0
) -> StepPlayer:
    """Return the step player of the toy; its controls are `heads` (1 or 2) and `step` (0-based).

    >>> player = follow_token()
    >>> player.controls["step"].value = 4
    >>> player.numbers["cache now holds"]
    '5 positions'
    """

    def draw(step: int, heads: int) -> Frame:
        done = toy_steps(text, heads)[step]
        heading = f"Follow one token, position {step}"
        picture = toy_step(done, text=text, title=heading, scale=scale)
        shapes = {"keys in the cache (heads, positions, head_dim)": str(done.keys.shape)}
        return Frame(picture, facts(done) | shapes, event(done), numbers_in_picture=True)

    return StepPlayer(
        draw,
        len(text),
        kind="follow-token",
        start=start,
        name="position",
        others={"heads": head_switch(num_heads)},
    )
