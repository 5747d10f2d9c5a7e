"""Blind marking as a widget: read two answers, say which is better, see your own noise."""

from collections.abc import Mapping, Sequence

from kvlab.course.blind import EQUAL, LEFT, RIGHT, BlindMarking, blind_pairs, chance_of_luck
from kvlab.figures.tables import table
from kvlab.widgets.base import Frame, Panel
from kvlab.widgets.controls import button


class BlindPanel(Panel):
    """Three buttons under two answers; which setting wrote which is told at the end."""

    def __init__(self, marking: BlindMarking) -> None:
        self.marking = marking
        self.controls = {
            LEFT: button("left is better", lambda: self.choose(LEFT)),
            RIGHT: button("right is better", lambda: self.choose(RIGHT)),
            EQUAL: button("no difference", lambda: self.choose(EQUAL)),
            "again": button("start again", self.again),
        }
        super().__init__("blind", list(self.controls.values()), below=True)
        self._draw()

    def choose(self, choice: str) -> None:
        """Take in a choice, and go on."""
        if self.marking.current is not None:
            self.marking.choose(choice)
            self._draw()

    def again(self) -> None:
        """Forget all choices."""
        self.marking.chosen.clear()
        self._draw()

    def _draw(self) -> None:
        pair, done, every = self.marking.current, len(self.marking.chosen), len(self.marking.pairs)
        for name in (LEFT, RIGHT, EQUAL):
            self.controls[name].disabled = pair is None
        if pair is None:
            self.show_frame(self._result())
            return
        rows = [(pair.left or "(nothing)", pair.right or "(nothing)")]
        caption = f"{done + 1} of {every}: {pair.prompt}"
        words = "Which answer is better? Who wrote it is told at the end."
        self.show_frame(Frame(table(["left", "right"], rows, caption=caption), event=words))

    def _result(self) -> Frame:
        counts = self.marking.preferred()
        if not counts:
            return Frame("", event="All answers are the same: there is nothing to judge.")
        (one, wins), (other, losses) = counts.items()
        changed, twice = self.marking.contradictions()
        luck = chance_of_luck(wins, losses)
        rows = [
            (f"{one} preferred", str(wins)),
            (f"{other} preferred", str(losses)),
            ("a coin would be as uneven", f"{luck:.0%} of the time"),
            ("you judged otherwise the second time", f"{changed} of {twice}"),
        ]
        picture = table(["your verdict", "count"], rows, numeric=[1], caption="Told only now")
        return Frame(picture, event="A difference smaller than your own noise says nothing.")


def blind_marking(
    prompts: Sequence[str], answers: Mapping[str, Sequence[str]], *, seed: int = 0
) -> BlindPanel:
    """Return the widget for the answers of two settings; see `kvlab.course.blind.blind_pairs`."""
    return BlindPanel(blind_pairs(prompts, answers, seed=seed))
