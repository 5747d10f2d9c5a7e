"""The page grades as the course does: the same verdict, slip and sentence for the same answer."""

import json
import random
from pathlib import Path
from typing import Any

from site_page import SitePage

from kvlab.course.bank import load_questions
from kvlab.course.grading import Grade, Misconception, Target, grade_number
from kvlab.course.predictions import how_far, in_words, not_a_number, remember
from kvlab.course.questions import OpenQuestion, OrderQuestion
from tools.site.question_data import question_data, variants

TABLE = json.loads(
    (Path(__file__).parents[1] / "course" / "answers.json").read_text(encoding="utf-8")
)
TARGETS = {name: part["target"] for name, part in TABLE.items()}
ANSWERS = sorted({a for part in TABLE.values() for rows in part["rows"].values() for a in rows})
PAGE = "questions-memory.html"
GRADE = """([rows, targets]) => rows.map(([name, answer]) => {
  const g = kvlab.gradeNumber(answer, targets[name]);
  return [g.verdict, g.misconception, g.feedback];
})"""
ASKINGS = """rows => rows.map(([asking, answer]) => {
  const g = asking.target ? kvlab.gradeNumber(answer, asking.target)
    : asking.shape ? kvlab.gradeShape(answer, asking.shape, asking.axes, asking.wrong)
    : asking.order ? kvlab.gradeOrder(answer, asking.order, asking.whys)
    : kvlab.gradePick(answer, asking.options);
  return [g.verdict, g.misconception, g.feedback];
})"""
SHAPES = ["", "...", "(1, 2, 3)", "1 x 2", "[4]", "2,3,", "two", "1_0 x 2", "(1; 2)", "x" * 130]


def told(grade: Grade) -> list[str]:
    return [grade.verdict.value, grade.misconception, grade.feedback]


def python_target(fields: dict[str, Any]) -> Target:
    known = tuple(Misconception(*row) for row in fields.get("misconceptions", []))
    return Target(**{**fields, "misconceptions": known})


def page_target(fields: dict[str, Any]) -> dict[str, Any]:
    made = {"unit": "", "exact": False, "tolerance": 0.005, "words": [], "per": ""} | fields
    known = [[id_, str(value), text] for id_, value, text in fields.get("misconceptions", [])]
    numbers = {name: str(made[name]) for name in ("value", "tolerance")}
    return made | numbers | {"misconceptions": known}


def differences(tab: SitePage, rows: list[tuple[str, str]]) -> list[Any]:
    """Grade each (target, answer) in the page and here; return where they differ."""
    page = tab.goto(PAGE)
    targets = {name: page_target(fields) for name, fields in TARGETS.items()}
    here = [told(grade_number(answer, python_target(TARGETS[name]))) for name, answer in rows]
    there = page.evaluate(GRADE, [rows, targets])
    return [row for row in zip(rows, there, here, strict=True) if row[1] != row[2]]


def test_every_answer_of_the_table_is_graded_alike_against_every_target(tab: SitePage) -> None:
    rows = [(name, answer) for name in TABLE for answer in ANSWERS]
    assert len(rows) > 4000
    assert differences(tab, rows) == []


def mutated(answer: str, chance: random.Random) -> str:
    """Return an answer with a sign dropped, doubled, changed or put in."""
    letters, place = list(answer), chance.randrange(len(answer) + 1)
    sign = chance.choice("0123456789.,' _-+/x*e^%$ KMGTikBbsS()\u00a0\u2212\u0663~:per")
    kind = chance.randrange(3)
    if kind == 0 or place == len(letters):
        letters.insert(place, sign)
    elif kind == 1:
        del letters[place]
    else:
        letters[place] = sign
    return "".join(letters)


def test_answers_with_a_slip_of_the_finger_are_graded_alike(tab: SitePage) -> None:
    chance = random.Random(11)
    rows = [(name, mutated(answer, chance)) for name in TABLE for answer in ANSWERS]
    assert differences(tab, rows) == []


def test_every_question_of_the_bank_is_graded_alike_in_the_page(tab: SitePage) -> None:
    rows, here, right = [], [], set()
    for question in load_questions():
        if isinstance(question, OpenQuestion):
            continue
        askings = json.loads(json.dumps(question_data(question, 0)))["askings"]
        for asked, data in zip(variants(question, 0), askings, strict=True):
            for typed, for_page in answers_to(asked, data):
                grade = asked.grade(typed)
                here.append((question.id, told(grade)))
                rows.append([data, for_page])
                right |= {question.id} if grade.right else set()
    there = tab.goto(PAGE).evaluate(ASKINGS, rows)
    assert [(i, got, mine) for (i, mine), got in zip(here, there, strict=True) if got != mine] == []
    graded = {q.id for q in load_questions() if not isinstance(q, OpenQuestion)}
    assert graded - right == set(), "no right answer was tried"


def answers_to(asked: Any, data: dict[str, Any]) -> list[tuple[Any, Any]]:
    """Return answers for the course and the same for the page: right ones, known slips, others."""
    question = asked.question
    if "target" in data:
        target = data["target"]
        bare = [target["value"], *(value for _, value, _ in target["misconceptions"])]
        typed = [f"{value} {target['unit']}".strip() for value in bare] + ["1", "320 KiB", "-2", ""]
        return [(text, text) for text in typed]
    if "shape" in data:
        known = [data["shape"], data["shape"][::-1], *(sizes for _, sizes, _ in data["wrong"])]
        typed = [f"({', '.join(map(str, sizes))})" for sizes in known]
        return [(text, text) for text in (*typed, *SHAPES)]
    if isinstance(question, OrderQuestion):
        right = [data["order"].index(i) for i in range(len(question.steps))]
        orders = [right, list(range(len(right))), right[::-1], [*right[1:], right[0]]]
        return [([place + 1 for place in order], order) for order in orders]
    return [(place + 1, place) for place in range(len(asked.options))] + [("", -1)]


def test_a_guess_is_set_beside_a_value_in_the_same_words(tab: SitePage) -> None:
    values = ["3.5 x", "2.50 GiB (2.68 GB)", "327,680 bytes", "5 blocks", "12.3%", "no number", "0"]
    guesses = ["3", "1 GiB", "about 400 KB", "5", "20 blocks", "9 billion tokens", "12%", "x", "-1"]
    rows = [(g, v, u) for g in guesses for v in values for u in ("", "GiB", "x", "tokens")]
    here = []
    for guess, value, unit in rows:
        remember("site-test", guess)
        here.append(how_far("site-test", value, unit))
    remember("site-test", "")
    page = tab.goto("03_memory_formula.html")
    there = page.evaluate("rows => rows.map(r => kvlab.howFar(...r))", rows)
    assert [(r, a, b) for r, a, b in zip(rows, there, here, strict=True) if a != b] == []
    assert len(set(here)) > 10 and in_words(1) in here


def test_a_guess_without_a_number_is_refused_in_the_same_words(tab: SitePage) -> None:
    texts = ["three", "about 3 GiB", "", "  ", "many " * 20, "nan", "1/0", "5!"]
    page = tab.goto("03_memory_formula.html")
    there = page.evaluate("rows => rows.map(kvlab.notANumber)", texts)
    assert there == [not_a_number(text) for text in texts]
