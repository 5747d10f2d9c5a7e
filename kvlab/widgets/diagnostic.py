"""The ten-question diagnostic: a quiz with one question a chapter, and what to skim or read."""

from random import randrange

from kvlab.course.diagnostic import Advice, advise, draw_diagnostic
from kvlab.course.progress import Progress
from kvlab.figures.chapter_advice import chapter_advice
from kvlab.figures.svg import Picture
from kvlab.widgets.base import Frame
from kvlab.widgets.quiz import Quiz


class Diagnostic(Quiz):
    """A quiz whose picture ends with the advice so far; `advice` holds it.

    The first readable answer to a question counts: the feedback that follows would help a second.
    """

    def __init__(self, *, seed: int, progress: Progress | None = None) -> None:
        self.first: dict[str, bool] = {}
        super().__init__(draw_diagnostic(seed), progress=progress, fixed=True)
        self.controls["again"].layout.display = "none"

    @property
    def advice(self) -> Advice:
        """What to skim and what to read, by the answers so far."""
        return advise(self.first)

    def show(self) -> None:
        """Show the worked answer; without an answer before it, that is a no."""
        self.first.setdefault(self.current.question.chapter, False)
        super().show()

    def _keep(self, verdict: str, *, right: bool) -> None:
        if self.grade is not None and self.grade.answered:
            self.first.setdefault(self.current.question.chapter, right)
        super()._keep(verdict, right=right)

    def show_frame(self, frame: Frame) -> None:
        """Put a frame on the page; the advice stands below it once all is answered."""
        left = len(self.asked) - len(self.first)
        numbers = {**frame.readout, "to answer": str(left)}
        said = frame.event or ("" if left else "All answered: the table says what to read.")
        picture = frame.picture
        if not left:
            picture = Picture(
                str(picture) + str(chapter_advice(self.advice)), label=self.current.text
            )
        super().show_frame(Frame(picture, numbers, said))


def diagnostic(*, seed: int | None = None, progress: Progress | None = None) -> Diagnostic:
    """Return the diagnostic, with fresh numbers each time unless `seed` is given.

    >>> diagnostic(seed=1).numbers["to answer"]
    '10'
    """
    drawn = randrange(10**6) if seed is None else seed
    return Diagnostic(seed=drawn, progress=Progress() if progress is None else progress)
