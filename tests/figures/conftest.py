"""Every figure of the gallery, drawn once, and its shapes read back from the markup."""

import importlib.util
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

import pytest

from kvlab.figures.measure import text_width

TOOLS = Path(__file__).resolve().parents[2] / "tools"
SVG = "{http://www.w3.org/2000/svg}"


def load_examples() -> dict:
    """Load the gallery's examples from the tools folder, which is no package."""
    spec = importlib.util.spec_from_file_location("gallery_examples", TOOLS / "gallery_examples.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["gallery_examples"] = module
    spec.loader.exec_module(module)
    return module.EXAMPLES


EXAMPLES = load_examples()


@dataclass(frozen=True)
class Box:
    """A rectangle in the units of the drawing; `name` says what it is for messages."""

    left: float
    top: float
    right: float
    bottom: float
    name: str
    fill: str = ""

    def overlap(self, other: "Box") -> tuple[float, float]:
        """Return by how many units two boxes overlap, across and down."""
        across = min(self.right, other.right) - max(self.left, other.left)
        down = min(self.bottom, other.bottom) - max(self.top, other.top)
        return across, down

    def holds(self, x: float, y: float) -> bool:
        """Return whether a point lies inside."""
        return self.left <= x <= self.right and self.top <= y <= self.bottom


class Drawing:
    """An SVG picture, parsed."""

    def __init__(self, markup: str) -> None:
        self.root = ET.fromstring(markup)
        self.width, self.height = (float(v) for v in self.root.get("viewBox").split()[2:])

    def texts(self) -> list[Box]:
        """Return the box of every text, as wide as it can get."""
        return [self._text(element) for element in self.root.iter(f"{SVG}text")]

    def _text(self, element: ET.Element) -> Box:
        size, classes = float(element.get("font-size")), (element.get("class") or "").split()
        words = element.text or ""
        width = text_width(words, size, mono="m" in classes, bold="b" in classes)
        x, y = float(element.get("x")), float(element.get("y"))
        shift = {"middle": width / 2, "end": width}.get(element.get("text-anchor"), 0)
        style = element.get("style") or ""
        return Box(x - shift, y - 0.76 * size, x - shift + width, y + 0.2 * size, words, style)

    def cells(self) -> list[Box]:
        """Return the box of everything marked as a cell."""
        return [
            Box(*self._rect(e), name=f"cell at {e.get('x')}, {e.get('y')}", fill=e.get("fill"))
            for e in self.root.iter(f"{SVG}rect")
            if "kv-cell" in (e.get("class") or "")
        ]

    @staticmethod
    def _rect(element: ET.Element) -> tuple[float, float, float, float]:
        x, y, width, height = (float(element.get(k)) for k in ("x", "y", "width", "height"))
        return x, y, x + width, y + height


@pytest.fixture(params=sorted(EXAMPLES))
def example(request: pytest.FixtureRequest):
    """One example of the gallery: the function that draws it."""
    return EXAMPLES[request.param]


@pytest.fixture(params=sorted(n for n, draw in EXAMPLES.items() if draw().startswith("<svg")))
def drawing(request: pytest.FixtureRequest) -> Drawing:
    """One example of the gallery that is an SVG, parsed."""
    return Drawing(str(EXAMPLES[request.param]()))
