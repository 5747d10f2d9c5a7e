"""Self-check questions: answer, see the feedback, then ask for the worked answer.

Nothing on the page tells an answer before "show the answer" is pressed. Enter checks, Tab moves:
the mouse is never needed. Judging is the work of `kvlab.course`. An open question is spoken: its
answer is shown first, then one ticks the points that one made.
"""

from collections.abc import Sequence
from random import randrange

import ipywidgets as widgets

from kvlab.course.asked import Asked, ask
from kvlab.course.bank import find_question, select_questions
from kvlab.course.grading import Grade, Verdict
from kvlab.course.picked import LETTERS
from kvlab.course.practice import own_mark, spoken_answer
from kvlab.course.progress import Progress
from kvlab.course.question_html import how_to_answer, render
from kvlab.course.questions import OpenQuestion
from kvlab.errors import InvalidArgument
from kvlab.figures.cards import feedback
from kvlab.figures.svg import Picture
from kvlab.widgets.base import Frame, Panel
from kvlab.widgets.controls import button, observe_once
from kvlab.widgets.point_ticks import PointTicks

_KINDS = {
    Verdict.RIGHT: "right",
    Verdict.NOT_ANSWERED: "open",
    Verdict.UNREADABLE: "open",
    Verdict.AMBIGUOUS: "open",
}


SAY_IT = "Say it aloud first. Then show the answer, tick the points you made, and check."
SCOPE = "The first point is the scope: say it before any number."


class Quiz(Panel):
    """Questions one at a time.

    `controls` holds answer, pick, points, check, show, back, next and again; `grade` is the last
    grade, and `ticks` the points of an open question.
    """

    def __init__(
        self, asked: Sequence[Asked], *, progress: Progress | None = None, fixed: bool = False
    ) -> None:
        if not asked:
            raise InvalidArgument("questions", [], "must hold one question or more")
        self.asked, self.place, self.fixed = list(asked), 0, fixed
        self.progress = progress
        self.grade: Grade | None = None
        self.right: set[int] = set()
        self._shown = self._held = False
        self.ticks = PointTicks()
        self.controls = self._make_controls()
        super().__init__("quiz", list(self.controls.values()), below=True)
        observe_once(self.controls["answer"], self._on_answer)
        observe_once(self.controls["pick"], self._on_answer)
        self._turn_to(0)

    def _make_controls(self) -> dict[str, widgets.Widget]:
        """Build the controls in the order in which Tab visits them."""
        wide = {"description_width": "initial"}
        return {
            "answer": widgets.Text(
                description="your answer",
                continuous_update=False,
                style=wide,
                layout=widgets.Layout(width="360px"),
            ),
            "pick": widgets.ToggleButtons(description="your answer", options=["A"], value=None),
            "points": self.ticks.row,
            "check": button("check", self.check, hint="check the answer"),
            "show": button("show the answer", self.show, hint="show the worked answer"),
            "back": button("back", lambda: self._turn_to(self.place - 1), hint="question before"),
            "next": button("next", lambda: self._turn_to(self.place + 1), hint="next question"),
            "again": button("fresh numbers", self.again, hint="ask again with fresh numbers"),
        }

    @property
    def current(self) -> Asked:
        """The question on the page."""
        return self.asked[self.place]

    def check(self) -> Grade:
        """Grade what is typed or picked, show the feedback, and keep the result."""
        if isinstance(self.current.question, OpenQuestion):
            return self._mark_own(self.current.question)
        name = "pick" if self._picks() else "answer"
        self.grade = self.current.grade(self.controls[name].value)
        self._keep(self.grade.verdict, right=self.grade.right and not self._shown)
        return self.grade

    def _mark_own(self, question: OpenQuestion) -> Grade:
        """Count the ticked points of a spoken answer, once its rubric is shown."""
        if not self._shown:
            self.grade = Grade(Verdict.NOT_ANSWERED, SAY_IT)
            self._draw()
            return self.grade
        words, right = own_mark(self.ticks.made, len(question.rubric))
        told = f"{words} points." if right or 1 in self.ticks.made else f"{words} points. {SCOPE}"
        self.grade = Grade(Verdict.RIGHT if right else Verdict.WRONG, told)
        self._keep(words, right=right)
        return self.grade

    def _keep(self, verdict: str, *, right: bool) -> None:
        """Keep an answer that could be judged, and draw."""
        assert self.grade is not None
        if right:
            self.right.add(self.place)
        if self.progress is not None and self.grade.answered:
            question, seed = self.current.question, self.current.seed
            self.progress.record(question.id, verdict, right=right, seed=seed)
        self._draw()

    def show(self) -> None:
        """Show the worked answer; a later right answer to the same numbers does not count."""
        self._shown = True
        if isinstance(self.current.question, OpenQuestion):
            self.ticks.ask(len(self.current.question.rubric))
        self._draw()

    def again(self) -> None:
        """Ask the same question with fresh numbers."""
        seed = self.current.seed + 1 if self.fixed else randrange(10**6)
        self.asked[self.place] = Asked(self.current.question, seed)
        self._turn_to(self.place)

    def _picks(self) -> bool:
        """Whether one option is picked, rather than an answer typed."""
        return self.current.question.kind in {"choice", "find-error"}

    def _on_answer(self, change: object) -> None:
        if not self._held and (self._picks() or self.controls["answer"].value.strip()):
            self.check()

    def _turn_to(self, place: int) -> None:
        """Put a question on the page and clear what was answered."""
        self.place = min(max(place, 0), len(self.asked) - 1)
        self.grade, self._shown, self._held = None, False, True
        picks, controls = self._picks(), self.controls
        spoken = isinstance(self.current.question, OpenQuestion)
        self.ticks.hide()
        controls["pick"].options = list(LETTERS[: len(self.current.options)] if picks else "A")
        controls["pick"].value = None
        controls["answer"].value = ""
        controls["answer"].placeholder = how_to_answer(self.current)
        controls["answer"].layout.display = "none" if picks or spoken else None
        controls["pick"].layout.display = None if picks else "none"
        controls["back"].disabled = self.place == 0
        controls["next"].disabled = self.place == len(self.asked) - 1
        self._held = False
        self._draw()

    def _draw(self) -> None:
        """Show the question, the feedback if there is any, and the worked answer if asked for."""
        parts = [render(self.current, number=self.place + 1)]
        if self.grade is not None:
            parts.append(feedback(_KINDS.get(self.grade.verdict, "wrong"), self.grade.feedback))
        if self._shown:
            question = self.current.question
            spoken = isinstance(question, OpenQuestion)
            said = spoken_answer(question) if spoken else self.current.solution()
            parts.append(feedback("solution", said))
        label = f"Question {self.place + 1} of {len(self.asked)}. {self.current.text}"
        numbers = {
            "question": f"{self.place + 1} of {len(self.asked)}",
            "right so far": str(len(self.right)),
        }
        said = self.progress.note if self.progress is not None else ""
        self.show_frame(Frame(Picture("".join(parts), label=label), numbers, said))


def quiz(
    chapter: str | None = None,
    *,
    ids: Sequence[str] = (),
    in_set: str | None = None,
    count: int | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
) -> Quiz:
    """Return a quiz on a chapter, on named questions or on a set such as "placement".

    Numbers are fresh each time unless `seed` is given. Each answer is kept in the learner's own
    file, or where `progress` says; looking and turning pages write nothing.

    >>> quiz("02", ids=["02-cached-forwards"], seed=1).numbers
    {'question': '1 of 1', 'right so far': '0'}
    """
    chosen = [find_question(name) for name in ids]
    chosen = chosen or list(select_questions(chapter=chapter, in_set=in_set))
    used = randrange(10**6) if seed is None else seed
    asked = ask(chosen, seed=used, count=count)
    kept = Progress() if progress is None else progress
    return Quiz(asked, progress=kept, fixed=seed is not None)
