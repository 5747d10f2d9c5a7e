"""The race on the toy: both columns run one token a beat; one of them runs the old ones again."""

from functools import lru_cache

from kvlab.figures.toy_race import Column
from kvlab.figures.toy_race import toy_race as picture_of
from kvlab.model.toy_race import Beat, ToyLane, lane_at, toy_beats
from kvlab.model.toy_weights import LETTERS
from kvlab.widgets.base import Frame
from kvlab.widgets.controls import dropdown, set_range
from kvlab.widgets.player import StepPlayer

NAMES = ("recompute", "remember")
PROMPTS = ("A", "AB", "ABC", "ABCD")


@lru_cache(maxsize=16)
def race_beats(prompt: str) -> tuple[tuple[Beat, ...], tuple[Beat, ...]]:
    """Return the beats of both ways until the toy has written the rest of A to H.

    >>> [len(beats) for beats in race_beats("ABC")]
    [25, 7]
    """
    new = len(LETTERS) - len(prompt)
    return toy_beats(prompt, new, cached=False), toy_beats(prompt, new, cached=True)


def toy_race_frame(beat: int, prompt: str = "AB", *, scale: float = 1.0) -> Frame:
    """Return both columns after so many beats.

    >>> toy_race_frame(7).readout["remember: state"]
    'finished'
    """
    pair = race_beats(prompt)
    lanes = [lane_at(beats, beat, cached=bool(n)) for n, beats in enumerate(pair)]
    columns = [
        Column(name, lane.written, lane.rows, _counts(lane), _state(lane), role)
        for name, lane, role in zip(NAMES, lanes, ("wasted", "value"), strict=True)
    ]
    over = all(lane.finished for lane in lanes)
    verdict = _verdict(*lanes) if over else ""
    picture = picture_of(
        columns,
        prompt=prompt,
        num_new=len(LETTERS) - len(prompt),
        title="The same letters, twice: one token a beat in both columns",
        verdict=verdict,
        scale=scale,
    )
    numbers = {
        f"{column.name}: {key}": value
        for column, lane in zip(columns, lanes, strict=True)
        for key, value in {"state": column.state, "written": lane.written, **column.counts}.items()
    }
    numbers |= {f"{name}: beats in all": str(len(b)) for name, b in zip(NAMES, pair, strict=True)}
    return Frame(picture, numbers, _event(beat, prompt), numbers_in_picture=True)


def _counts(lane: ToyLane) -> dict[str, str]:
    return {
        "token-forwards": f"{lane.forwards}",
        "of them again": f"{lane.again}",
        "rows in the cache": f"{lane.kept}",
    }


def _state(lane: ToyLane) -> str:
    return "finished" if lane.finished else "writing" if lane.forwards else "ready"


def _verdict(first: ToyLane, second: ToyLane) -> str:
    same = "The same letters" if first.written == second.written else "Other letters"
    return f"{same}: {first.forwards} token-forwards, or {second.forwards} and a cache."


def _event(beat: int, prompt: str) -> str:
    """What both columns did in the beat that has just passed."""
    if not beat:
        return "Nothing has run yet."
    said = []
    for name, beats in zip(NAMES, race_beats(prompt), strict=True):
        if beat > len(beats):
            said.append(f"{name} has finished")
            continue
        done = beats[beat - 1]
        letter, again = LETTERS[done.position], " again" if done.again else ""
        wrote = f" and writes {done.emits}" if done.emits else ""
        said.append(f"{name} runs {letter}{again}{wrote}")
    return f"Beat {beat}: {'; '.join(said)}."


class ToyRace(StepPlayer):
    """The race; controls are `prompt` and `step`, the beats passed."""

    def __init__(self, prompt: str, *, scale: float = 1.0) -> None:
        def draw(step: int, prompt: str) -> Frame:
            return toy_race_frame(step, prompt, scale=scale)

        others = {"prompt": dropdown("prompt", PROMPTS, prompt)}
        last = len(race_beats(prompt)[0])
        super().__init__(
            draw, last + 1, kind="toy-race", others=others, name="beat", interval_seconds=0.45
        )

    def redraw(self) -> None:
        """Draw the present beat; another prompt has another number of beats."""
        last, step = len(race_beats(self.values["prompt"])[0]), self.controls["step"]
        if last != step.max:
            held, self._held = self._held, True
            set_range(step, 0, last)
            self._held = held
        super().redraw()


def toy_race(prompt: str = "AB", *, scale: float = 1.0) -> ToyRace:
    """Return the race on the toy, ready to play.

    >>> show = toy_race()
    >>> show.controls["step"].value = 27
    >>> show.numbers["recompute: written"], show.numbers["remember: written"]
    ('CDEFGH', 'CDEFGH')
    """
    return ToyRace(prompt, scale=scale)
