"""Answers as data: a number, a variable, or a listed function of such; no code in the data.

`{"function": "kv_bytes", "arguments": {"seq_len": "n", "batch": 1, ...}}` is a call; a text is the
name of a variable, and a text that starts with "=" is that text itself.
"""

from collections.abc import Mapping
from random import Random
from typing import Any

from kvlab.course.functions import FUNCTIONS
from kvlab.course.schema import Row

Values = Mapping[str, Any]


def evaluate(expression: Any, values: Values) -> Any:
    """Return the value of an expression that `check_expression` has passed.

    >>> evaluate({"function": "add", "arguments": {"a": "P", "b": 1}}, {"P": 4})
    5
    """
    if isinstance(expression, Mapping):
        arguments = expression.get("arguments", {})
        filled = {name: evaluate(argument, values) for name, argument in arguments.items()}
        return FUNCTIONS[expression["function"]](**filled)
    if isinstance(expression, list):
        return [evaluate(item, values) for item in expression]
    if isinstance(expression, str):
        return expression[1:] if expression.startswith("=") else values[expression]
    return expression


def check_expression(row: Row, field: str, expression: Any, variables: set[str]) -> Any:
    """Return the expression, or raise with row and field when it names what is not there."""
    if isinstance(expression, Mapping):
        if expression.get("function") not in FUNCTIONS:
            raise row.fault(field, expression.get("function"), "is not a listed function")
        for argument in expression.get("arguments", {}).values():
            check_expression(row, field, argument, variables)
    elif isinstance(expression, list):
        for item in expression:
            check_expression(row, field, item, variables)
    elif isinstance(expression, str):
        if not expression.startswith("=") and expression not in variables:
            raise row.fault(field, expression, f"names no variable of {sorted(variables)}")
    elif not isinstance(expression, int | float):
        raise row.fault(field, expression, "must be a number, a variable or a call")
    return expression


def draw(numbers: Mapping[str, Any], cases: tuple[Values, ...], key: str) -> dict[str, Any]:
    """Draw fresh values: each number from (low, high, step) or a list, and one of the cases.

    >>> draw({"P": {"low": 1, "high": 9, "step": 2}}, (), "id:7") == draw(
    ...     {"P": {"low": 1, "high": 9, "step": 2}}, (), "id:7")
    True
    """
    random = Random(key)
    drawn = {name: _draw_number(spec, random) for name, spec in numbers.items()}
    return drawn | dict(random.choice(cases)) if cases else drawn


def _draw_number(spec: Mapping[str, Any], random: Random) -> Any:
    """Draw one number."""
    if "of" in spec:
        return random.choice(spec["of"])
    return random.randrange(spec["low"], spec["high"] + 1, spec.get("step", 1))


def read_variables(row: Row) -> tuple[dict[str, Any], tuple[Values, ...], set[str]]:
    """Read the fields `numbers` and `cases`; return them and the names they define."""
    numbers = row.take("numbers", {})
    for name, spec in numbers.items():
        fields = Row(f"{row.where}, numbers {name}", spec)
        if fields.has("of"):
            if not isinstance(fields.take("of"), list) or not spec["of"]:
                raise fields.fault("of", spec["of"], "must be a list of one value or more")
        else:
            low = fields.integer("low", -(10**12), 10**12)
            fields.integer("high", low, 10**12)
            fields.integer("step", 1, 10**9, 1)
        fields.done()
    cases = tuple(row.take("cases", []))
    names = set(cases[0]) if cases else set()
    for case in cases:
        if set(case) != names or names & set(numbers):
            raise row.fault("cases", case, "all cases must define the same variables, each once")
    return numbers, cases, names | set(numbers)
