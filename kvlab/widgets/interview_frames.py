"""What a mock interview shows at each stage: the rules, the question, the points, the report."""

from kvlab.course.interview import Interview, Stage, with_options
from kvlab.course.mock import minutes_and_seconds
from kvlab.course.practice import spoken_answer
from kvlab.course.question_html import render
from kvlab.course.questions import OpenQuestion
from kvlab.figures.cards import feedback
from kvlab.figures.interview_report import Outcome, interview_report
from kvlab.figures.svg import Picture

_RULES = (
    "{} questions, {} on the clock. Some you type, some you say aloud. There are no hints, and no "
    "word on your answers before the end. A question that you leave does not come back.\n\n"
    "You can stop the clock and go on later, as long as this notebook's kernel lives."
)


def interview_picture(talk: Interview) -> Picture:
    """Return the picture of the stage; nothing of an answer is in it before the end.

    >>> from kvlab.course.mock import draw_interview
    >>> ready = Interview(draw_interview(1, spoken=0, graded=2), minutes=5)
    >>> "2 questions, 5:00 on the clock" in interview_picture(ready)
    True
    """
    if talk.stage is Stage.READY:
        minutes = minutes_and_seconds(talk.watch.limit_seconds)
        return feedback("note", _RULES.format(len(talk.asked), minutes), heading="The rules")
    if talk.stage is Stage.STOPPED:
        words = "The clock stands. The question comes back when you go on."
        return feedback("note", words, heading="Stopped")
    if talk.stage is Stage.DONE:
        return interview_report(talk.by_topic(), _outcomes(talk))
    question = talk.current.question
    asked = render(talk.current, number=talk.place + 1)
    if talk.stage is Stage.MARKING and isinstance(question, OpenQuestion):
        told = "Tick the points that you made.\n\n" + spoken_answer(question)
        return Picture(asked + str(feedback("solution", told)), label=question.text)
    return Picture(asked, label=talk.current.text)


def interview_numbers(talk: Interview) -> dict[str, str]:
    """Return the numbers beside the picture: how far it is, and the score after the end."""
    if talk.stage is Stage.DONE:
        right, total = talk.score()
        return {"right": f"{right} of {total}", "answered": str(len(talk.grades))}
    if talk.stage is Stage.READY:
        return {"questions": str(len(talk.asked))}
    return {"question": f"{talk.place + 1} of {len(talk.asked)}"}


def _outcomes(talk: Interview) -> list[Outcome]:
    found = []
    for place, asked in enumerate(talk.asked):
        grade, question = talk.grades.get(place), asked.question
        spoken = isinstance(question, OpenQuestion)
        answer = spoken_answer(question) if spoken else asked.solution()
        right, remark = (grade.right, grade.feedback) if grade else (None, "")
        found.append(Outcome(with_options(asked), right, remark, answer))
    return found
