"""The learner's tools: check, hint, solution, questions, claim cards, guesses, progress.

Nothing is loaded before it is used. `from kvlab.course import check_attend, hint, solution`.
"""

from importlib import import_module
from typing import Any

_PLACES = {
    "asked": ("Asked", "ask"),
    "bank": ("find_question", "load_questions", "select_questions"),
    "claims": ("claim_card", "find_claim", "load_claims"),
    "exercises": ("check", "exercises_of", "find_exercise", "hint", "hint_steps", "solution"),
    "exercises_00": ("check_gib_to_gb", "check_vector_bytes"),
    "exercises_01": (
        "check_attend",
        "check_cache_shape",
        "check_causal_mask",
        "check_new_positions",
    ),
    "exercises_02": (
        "check_attention_flops",
        "check_cached_step",
        "check_lengths",
        "check_token_forwards",
    ),
    "grading": ("Grade", "Misconception", "Target", "Verdict", "grade_number"),
    "predictions": ("compare", "remember"),
    "progress": ("Progress",),
    "question_html": ("render", "render_all"),
}
_HOMES = {name: module for module, names in _PLACES.items() for name in names}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    """Load a public name from its module on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(_HOMES)
