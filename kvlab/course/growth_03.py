"""What the check 03-f compares with: the bytes a real cache holds, and the slope of the formula.

The learner's own function is called and measures; nothing here knows a model or torch.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from kvlab._paths import data_dir
from kvlab.arithmetic.catalogue import find_model
from kvlab.arithmetic.reader import read_model
from kvlab.course.grading import Grade, Verdict, unread_grade
from kvlab.course.guarded import call
from kvlab.course.typed import Unread, read_typed

MEASURED_AT = (16, 40, 72, 128)
"""Tokens at which the check measures; unevenly apart, so that a cache used twice shows."""
FLOAT32 = 4


def configs() -> dict[str, Mapping[str, Any]]:
    """Return the configs of the two models that the chapter runs."""
    tiny = json.loads((data_dir() / "tiny" / "config.json").read_text(encoding="utf-8"))
    return {"SmolLM2": find_model("smollm2").config, "tiny": tiny}


def formula_slopes() -> dict[str, int]:
    """Return the bytes that a token adds in float32, by model.

    >>> formula_slopes()
    {'SmolLM2': 46080, 'tiny': 1024}
    """
    stores = {name: read_model(config) for name, config in configs().items()}
    return {name: FLOAT32 * store.elements_per_token for name, store in stores.items()}


def grade_growth(answer: object) -> Grade:
    """Grade exercise 03-f: a function that returns the bytes held after so many tokens.

    >>> grade_growth(lambda tokens: 1024 * tokens).right
    True
    """
    if answer is None or answer is ...:
        return unread_grade(Unread("", empty=True))
    if not callable(answer):
        return unread_grade(Unread("it is not a function: hand over its name, without calling it"))
    held: list[int] = []
    for tokens in MEASURED_AT:
        got = call(answer, (tokens,))
        if got.error:
            return Grade(Verdict.WRONG, f"Your function stopped with {got.error}", "raises")
        if got.value is None or got.value is ...:
            return unread_grade(Unread("the function returns nothing", empty=True))
        typed = read_typed(got.value)
        if isinstance(typed, Unread) or typed.readings[0] != int(typed.readings[0]):
            return Grade(Verdict.WRONG, "It must return whole bytes, such as cache.nbytes.", "form")
        held.append(int(typed.readings[0]))
    return _judge(held)


def _judge(held: Sequence[int]) -> Grade:
    """Grade the bytes measured at the four lengths."""
    steps = [after - before for before, after in pairwise(MEASURED_AT)]
    grown = [after - before for before, after in pairwise(held)]
    if not any(grown):
        text = "It does not grow: has the model read `tokens` tokens, into a cache that can grow?"
        return Grade(Verdict.WRONG, text, "constant")
    slope, rest = divmod(grown[0], steps[0])
    if rest or any(slope * step != more for step, more in zip(steps, grown, strict=True)):
        text = "Not a straight line: does each call begin with an empty cache?"
        return Grade(Verdict.WRONG, text, "no-line")
    return _judge_line(slope, held[0] - slope * MEASURED_AT[0])


def _judge_line(slope: int, start: int) -> Grade:
    """Grade a straight line by its slope, then by where it begins."""
    for name, wanted in formula_slopes().items():
        if slope != wanted:
            continue
        if start % slope:
            text = f"The slope is right, but {start:,} bytes are there without any token."
            return Grade(Verdict.WRONG, text, "fixed-part")
        if start:
            text = f"The slope is right, but the cache holds {start // slope:+} positions against "
            text += "the tokens read. Emit one token: the last one emitted is never fed back."
            return Grade(Verdict.WRONG, text, "positions")
        ends = f"From {MEASURED_AT[0]} to {MEASURED_AT[-1]} tokens it grew by {slope:,} B a token"
        return Grade(Verdict.RIGHT, f"Right. {ends}, and the formula for {name} says {wanted:,} B.")
    for name, wrong, text in _SLIPS:
        if slope in [wrong(wanted, configs()[model]) for model, wanted in formula_slopes().items()]:
            return Grade(Verdict.WRONG, f"Not right. {text}", name)
    known = " or ".join(f"{name}'s" for name in formula_slopes())
    return Grade(Verdict.WRONG, f"Not right: {slope:,} B a token is not {known} slope in float32.")


def _with_query_heads(slope: int, config: Mapping[str, Any]) -> int:
    return slope * config["num_attention_heads"] // config["num_key_value_heads"]


_Slip = Callable[[int, Mapping[str, Any]], int]
_SLIPS: tuple[tuple[str, _Slip, str], ...] = (
    ("half", lambda slope, _: slope // 2, "Half the slope: keys without values, or 2 bytes for "
     "a number. This model computes in float32."),
    ("numbers", lambda slope, _: slope // FLOAT32, "A quarter of the slope: numbers were "
     "counted, and each takes 4 bytes."),
    ("one-layer", lambda slope, config: slope // config["num_hidden_layers"], "That is one layer; "
     "every layer has a cache of its own."),
    ("query-heads", _with_query_heads, "Query heads were counted; "
     "ask the cache itself what it holds."),
    ("bits", lambda slope, _: 8 * slope, "Eight times the slope: these are bits."),
)  # fmt: skip
