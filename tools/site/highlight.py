"""Code in colour: pygments names the pieces, and a table here gives each a colour for both themes.

The colours are checked by a test: 4.5 to 1 on the ground of code, light and dark. A comment is
slanted and a keyword bold as well, so that no colour speaks alone.
"""

from functools import cache
from typing import Any

from tools.site.markup import tag

GROUNDS = {"light": "#f6f6f4", "dark": "#1b1b1d"}
"""The ground under code, by theme."""

COLOURS: dict[str, tuple[str, str]] = {
    "k kn kc kd kr ow": ("#5b3fa8", "#b9a5f5"),
    "s s1 s2 sa si sd se sr ss": ("#1b6b3a", "#86d39b"),
    "m mi mf mh mb mo il": ("#9a3d08", "#f0a873"),
    "c c1 ch cm cs": ("#5f6368", "#a3a6aa"),
    "nb bp": ("#0a5c8f", "#7cc0ec"),
    "nf fm nc nd nn": ("#00538a", "#8cc8f2"),
    "o p": ("#333333", "#d0d0d0"),
}
"""Classes that pygments gives, with their colour on the light and on the dark ground."""


@cache
def _pygments() -> tuple[Any, Any, Any]:
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import BashLexer, PythonLexer

    shell = ("bash", "sh", "shell", "console")
    lexers = dict.fromkeys(shell, BashLexer) | {"python": PythonLexer, "py": PythonLexer}
    return HtmlFormatter(nowrap=True), lexers, PythonLexer


def code_block(source: str, language: str = "python", *, label: str = "code") -> str:
    """Return code with its colours; a script adds the button that copies it.

    An unknown language is shown without colours.

    >>> '<span class="mi">1</span>' in code_block("x = 1")
    True
    """
    from pygments import highlight

    formatter, lexers, _ = _pygments()
    lexer = lexers.get(language)
    if lexer is None:
        from pygments.lexers.special import TextLexer

        lexer = TextLexer
    inner = highlight(source.rstrip("\n") + "\n", lexer(stripnl=False), formatter)
    return tag("div", tag("pre", tag("code", inner), aria_label=label), class_="code")


def code_css() -> str:
    """Return the rules that colour code, as variables of the two themes.

    >>> "--code-ground:#f6f6f4" in code_css()
    True
    """
    names = [f"c{i}" for i in range(len(COLOURS))]
    light, dark = (
        f"--code-ground:{GROUNDS[theme]};"
        + "".join(f"--{n}:{pair[i]};" for n, pair in zip(names, COLOURS.values(), strict=True))
        for i, theme in enumerate(GROUNDS)
    )
    rules = [
        ",".join(f".code .{c}" for c in classes.split()) + f"{{color:var(--{name})}}"
        for name, classes in zip(names, COLOURS, strict=True)
    ]
    more = ".code .c,.code .c1{font-style:italic}.code .k,.code .kn,.code .ow{font-weight:600}"
    return both_themes(light, dark) + "\n".join(rules) + "\n" + more + "\n"


def both_themes(light: str, dark: str) -> str:
    """Return rules that set variables by theme: the system's, unless the reader chose one.

    >>> both_themes("--a:1", "--a:2").splitlines()[0]
    ':root{--a:1}'
    """
    system = f"@media(prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}"
    return f":root{{{light}}}\n{system}\n:root[data-theme=dark]{{{dark}}}\n"
