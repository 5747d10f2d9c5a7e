"""Write every figure of the course into one HTML page, to be looked at by a person.

    python tools/gallery.py FOLDER

The page has a light and a dark half, as JupyterLab would colour them. Its numbers are examples.
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from gallery_examples import EXAMPLES

LIGHT = (
    "--jp-ui-font-color1:rgba(0,0,0,.87);--jp-layout-color0:#fff;--jp-layout-color1:#fff;"
    "--jp-code-font-family:Menlo,Consolas,'DejaVu Sans Mono',monospace"
)
DARK = (
    "--jp-ui-font-color1:rgba(255,255,255,.87);--jp-layout-color0:#111;--jp-layout-color1:#212121;"
    "--jp-code-font-family:Menlo,Consolas,'DejaVu Sans Mono',monospace"
)


def page(examples: dict[str, Callable[[], str]], theme: str) -> Iterator[str]:
    """Yield the HTML of one half, a heading and a picture for each example."""
    ground = "#111" if theme is DARK else "#fff"
    ink = "#ddd" if theme is DARK else "#222"
    yield f'<div style="{theme};background:{ground};color:{ink};padding:24px;width:960px">'
    for name, make in examples.items():
        yield f'<p id="{name}" style="font:12px sans-serif;margin:18px 0 6px">{name}</p>{make()}'
    yield "</div>"


def main(folder: Path) -> Path:
    """Write `light.html` and `dark.html` into the folder and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, theme in (("light", LIGHT), ("dark", DARK)):
        flag = "true" if name == "light" else "false"
        body = "\n".join(page(EXAMPLES, theme))
        html = (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>figures, {name}</title>'
        )
        html += f'<body data-jp-theme-light="{flag}" style="margin:0">{body}</body></html>'
        (folder / f"{name}.html").write_text(html, encoding="utf-8")
    return folder


if __name__ == "__main__":
    print(main(Path(sys.argv[1])))
