"""The one stylesheet: the course's colours as variables, code in colours, then our own rules."""

from kvlab.figures import palette
from kvlab.figures.svg import SVG_CSS
from tools.site.highlight import both_themes, code_css
from tools.site.places import ASSETS

NEUTRALS: dict[str, tuple[str, str]] = {
    "bg": ("#ffffff", "#121213"),
    "sheet": ("#f7f7f5", "#1b1b1d"),
    "ink": ("#1c1c1c", "#ececec"),
    "quiet": ("#595959", "#a9a9ab"),
    "line": ("#d6d6d2", "#3a3a3d"),
    "edge": ("#767676", "#8a8a8d"),
}
"""Names of the neutrals, light and dark; `edge` outlines controls (3 to 1 on the ground)."""

FILES = ("base.css", "frame.css", "text.css", "first.css", "questions.css", "live.css", "print.css")


def stylesheet() -> str:
    """Return the whole stylesheet.

    >>> stylesheet().startswith(":root{--bg:#ffffff;")
    True
    """
    light, dark = (
        "".join(f"--{name}:{pair[i]};" for name, pair in NEUTRALS.items())
        + f"color-scheme:{('light', 'dark')[i]};"
        for i in (0, 1)
    )
    roles = "".join(
        f"--{role}:{color};--on-{role}:{palette.text_on(color)};"
        for role, color in palette.ROLES.items()
    )
    ours = "\n".join((ASSETS / name).read_text(encoding="utf-8") for name in FILES)
    pale = f":root{{{roles}--pale:{palette.PALE}}}\n"
    return both_themes(light, dark) + pale + f"{SVG_CSS}\n" + code_css() + ours
