"""The learner's record: score by topic, what to read again, what is due, and deleting it all."""

from kvlab.course.bank import load_questions
from kvlab.course.practice import due_today, reviews, score_by_topic, today
from kvlab.course.progress import Progress
from kvlab.errors import KvlabError
from kvlab.figures.score_card import score_card
from kvlab.widgets.base import Frame, Panel
from kvlab.widgets.controls import button

SURE = "This deletes your answers and scores on this machine. Press again to confirm, or keep them."


class RecordPanel(Panel):
    """The score; `controls` holds refresh, delete and keep. Deleting asks once before it acts."""

    def __init__(self, progress: Progress) -> None:
        self.progress, self._asked = progress, False
        self.controls = {
            "refresh": button("count again", self.refresh, hint="count all answers again"),
            "delete": button("delete my answers", self.delete, hint="delete the progress file"),
            "keep": button("keep them", self.refresh, hint="do not delete"),
        }
        super().__init__("record", list(self.controls.values()), below=True)
        self.refresh()

    def refresh(self) -> None:
        """Count what the file holds now."""
        self._ask(False)
        self._draw()

    def delete(self) -> None:
        """Ask to confirm; pressed again, delete the file and its copies."""
        if not self._asked:
            self._ask(True)
            self._draw(SURE)
            return
        try:
            said = "Deleted." if self.progress.delete() else "There was nothing to delete."
        except KvlabError as error:
            said = f"{error}."
        self._ask(False)
        self._draw(said)

    def _ask(self, asked: bool) -> None:
        self._asked = asked
        words = "yes, delete them" if asked else "delete my answers"
        self.controls["delete"].description = words
        self.controls["keep"].layout.display = None if asked else "none"

    def _draw(self, event: str = "") -> None:
        answers, bank = self.progress.answers(), load_questions()
        ids = {question.id for question in bank}
        scores = score_by_topic(answers, bank)
        due, every = due_today(answers, today(), ids), reviews(answers, ids)
        numbers = {"due today": str(len(due)), "under review": str(len(every))}
        if every:
            numbers["next on"] = every[0].day.isoformat()
        self.show_frame(Frame(score_card(scores), numbers, event or self.progress.note))


def record_panel(progress: Progress | None = None) -> RecordPanel:
    """Return the score by topic of the learner's own file, or of `progress`.

    >>> import tempfile; from pathlib import Path
    >>> record_panel(Progress(Path(tempfile.mkdtemp()) / "p.json")).numbers["due today"]
    '0'
    """
    return RecordPanel(Progress() if progress is None else progress)
