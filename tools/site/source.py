"""What a code cell asks for, read from its text alone: nothing of it is run."""

import ast
import re
from dataclasses import dataclass

from kvlab.course.bank import load_questions
from kvlab.course.questions import SETS


@dataclass(frozen=True)
class LastCall:
    """The call whose result a cell shows: a function's name, and its constant arguments."""

    name: str
    arguments: tuple[object, ...] = ()
    named: tuple[tuple[str, object], ...] = ()

    def option(self, name: str, default: object = None) -> object:
        """Return a named constant argument."""
        return dict(self.named).get(name, default)


def last_call(source: str) -> LastCall | None:
    """Return the call on the last line of a cell, or None where there is none.

    >>> last_call("x = 1\\nquiz(ids=x, seed=3)")
    LastCall(name='quiz', arguments=(), named=(('seed', 3),))
    """
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return None
    shown = body[-1].value if body and isinstance(body[-1], ast.Expr) else None
    if not isinstance(shown, ast.Call):
        return None
    name = shown.func.id if isinstance(shown.func, ast.Name) else getattr(shown.func, "attr", "")
    constants = tuple(a.value for a in shown.args if isinstance(a, ast.Constant))
    named = tuple(
        (k.arg, k.value.value)
        for k in shown.keywords
        if k.arg and isinstance(k.value, ast.Constant)
    )
    return LastCall(name, constants, named)


def calls_of(source: str, name: str) -> list[LastCall]:
    """Return the calls of a function anywhere in a cell, with their constant arguments.

    >>> [call.arguments for call in calls_of('reveal("01-a", n, remark="r")', "reveal")]
    [('01-a',)]
    """
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return []
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == name:
            constants = tuple(a.value for a in node.args if isinstance(a, ast.Constant))
            named = tuple(
                (k.arg, k.value.value)
                for k in node.keywords
                if k.arg and isinstance(k.value, ast.Constant)
            )
            found.append(LastCall(name, constants, named))
    return found


def asked_questions(source: str, chapter: str) -> list[str]:
    """Return the ids of the questions that a `quiz` cell asks, in its order.

    A word of the cell's texts counts when it is an id, alone or after the chapter's number; the
    name of a set stands for all of its questions.

    >>> asked_questions('quiz(ids=[f"02-{n}" for n in "doubling growth-per-step".split()])', "02")
    ['02-doubling', '02-growth-per-step']
    """
    bank = {question.id: question for question in load_questions()}
    texts = [n.value for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Constant)]
    words = [w for t in texts if isinstance(t, str) for w in re.split(r"\s+", t.strip()) if w]
    ids = [next((i for i in (w, f"{chapter}-{w}") if i in bank), "") for w in words]
    if not any(ids):
        ids = [q.id for q in bank.values() if set(q.sets) & set(words) & set(SETS)]
    return list(dict.fromkeys(filter(None, ids)))
