"""Predictions without a kernel: a field for the guess, and the guess beside the value later.

The key of a prediction joins the two; the page keeps guesses in the browser alone.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tools.site.markup import tag, text
from tools.site.outputs import HTML, PLAIN, joined
from tools.site.source import calls_of

_VALUE = re.compile(r"Your guess: none made\. (?:Computed|Measured): (?P<value>.*)\.$", re.DOTALL)
_EMPTY = re.compile(r'<div style="[^"]*">none made</div>')


def guess_form(source: str, outputs: Sequence[Mapping[str, Any]]) -> str:
    """Return the question of a `predict` cell with a place for the reader's guess."""
    call = calls_of(source, "predict")[0]
    key, unit = str(call.option("key", "")), str(call.option("unit", "") or "")
    question = joined(outputs[0]["data"][PLAIN]).split(" Your guess:")[0]
    name = f"guess-{key}"
    label = tag("label", text(f"Your guess in {unit}" if unit else "Your guess"), for_=name)
    entry = tag("input", type="text", id=name, autocomplete="off", placeholder="a number is enough")
    form = tag("form", label + entry + tag("button", "commit"), class_="js")
    told = tag("p", "", role="status", class_="told")
    plain = tag("p", "Make a guess before you read on.", class_="nojs")
    inner = tag("p", text(question), class_="asked") + form + plain + told
    return tag("div", inner, class_="guess", data_key=key, data_unit=unit)


def marked_reveals(
    source: str, outputs: Sequence[Mapping[str, Any]]
) -> Sequence[Mapping[str, Any]]:
    """Return outputs whose cards of a value carry the key, so that the guess can join them."""
    cards = [_VALUE.search(joined(output.get("data", {}).get(PLAIN, ""))) for output in outputs]
    shown = [found for found in cards if found]
    calls = calls_of(source, "reveal")
    keys = iter(calls[len(calls) - len(shown) :])  # only what a cell ends with is shown
    made = []
    for output, found in zip(outputs, cards, strict=True):
        markup = joined(output.get("data", {}).get(HTML, ""))
        if found and "kvlab-prediction" in markup:
            key = next(keys).arguments[0]
            output = {**output, "data": {HTML: _marked(markup, str(key), found)}}
        made.append(output)
    return made


def _marked(markup: str, key: str, found: re.Match[str]) -> str:
    empty = tag("div", "none made", class_="js-guess")
    shown = _EMPTY.sub(empty, markup, count=1) + tag("p", "", class_="told js-far")
    return tag("div", shown, class_="reveal", data_key=key, data_value=found["value"])
