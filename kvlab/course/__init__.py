"""The learner's tools: check, hint, solution, questions, claim cards, guesses, progress.

Nothing is loaded before it is used. `from kvlab.course import check_attend, hint, solution`.
The checks are found in the files `exercises_NN.py`, one for each chapter.
"""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

_PLACES = {
    "asked": ("Asked", "ask"),
    "bank": ("find_question", "load_questions", "select_questions"),
    "claims": ("claim_card", "find_claim", "load_claims"),
    "exercises": ("check", "exercises_of", "find_exercise", "hint", "hint_steps", "solution"),
    "grading": ("Grade", "Misconception", "Target", "Verdict", "grade_number"),
    "predictions": ("compare", "remember"),
    "progress": ("Progress",),
    "question_html": ("render", "render_all"),
}
_HOMES = {name: module for module, names in _PLACES.items() for name in names}
for _file in sorted(Path(__file__).parent.glob("exercises_[0-9][0-9].py")):
    for _name in re.findall(r"^def (check_\w+)", _file.read_text(encoding="utf-8"), re.MULTILINE):
        _HOMES[_name] = _file.stem
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    """Load a public name from its module on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(_HOMES)
