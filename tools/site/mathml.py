"""The few formulas of the text as MathML, which a browser draws without a script.

It knows the commands that the chapters use; any other one raises, so that no formula is shown
half read.
"""

import re

from tools.site.markup import tag, text

_TOKEN = re.compile(r"\\[a-zA-Z]+|\\[,;! ]|[{}^_/]|[0-9]+(?:\.[0-9]+)?|\s+|.")
_SYMBOLS = {
    "\\top": "\u22a4", "\\times": "\u00d7", "\\cdot": "\u22c5", "\\le": "\u2264", "\\ge": "\u2265",
    "\\approx": "\u2248", "\\sum": "\u2211", "\\infty": "\u221e",
}  # fmt: skip
_SPACES = {"\\,": "0.17em", "\\;": "0.28em", "\\!": "0", "\\ ": "0.33em"}
_NAMES = ("\\mathrm", "\\text", "\\operatorname")


def mathml(tex: str) -> str:
    """Return a formula as MathML; its label is the formula as it was typed.

    >>> mathml("q^2")[-40:]
    '<msup><mi>q</mi><mn>2</mn></msup></math>'
    """
    tokens = [t for t in _TOKEN.findall(tex) if not t.isspace()]
    body, rest = _row(tokens)
    if rest:
        raise ValueError(f"formula {tex!r}: an unmatched brace")
    return tag("math", body, class_="tex", xmlns="http://www.w3.org/1998/Math/MathML")


def _row(tokens: list[str]) -> tuple[str, list[str]]:
    """Read up to a closing brace or the end; a power or an index takes what stands before it."""
    made: list[str] = []
    while tokens and tokens[0] != "}":
        token = tokens[0]
        if token in "^_":
            above, tokens = _piece(tokens[1:])
            made.append(
                tag("msup" if token == "^" else "msub", (made.pop() if made else "") + above)
            )
        else:
            piece, tokens = _piece(tokens)
            made.append(piece)
    return "".join(made), tokens


def _piece(tokens: list[str]) -> tuple[str, list[str]]:
    """Read one letter, number, command or group."""
    token, rest = tokens[0], tokens[1:]
    if token == "{":
        inner, rest = _row(rest)
        return tag("mrow", inner), rest[1:]
    if token in _NAMES:
        end = rest.index("}")
        return tag("mi", text("".join(rest[1:end])), mathvariant="normal"), rest[end + 1 :]
    if token == "\\sqrt":
        inner, rest = _piece(rest)
        return tag("msqrt", inner), rest
    if token in _SPACES:
        return tag("mspace", width=_SPACES[token]), rest
    if token in _SYMBOLS:
        return tag("mo", _SYMBOLS[token]), rest
    if token.startswith("\\"):
        raise ValueError(f"formula command {token!r} is not known; add it to tools/site/mathml.py")
    kind = "mn" if token[0].isdigit() else "mi" if token.isalpha() else "mo"
    return tag(kind, text(token)), rest
