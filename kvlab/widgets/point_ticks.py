"""Boxes to tick the points that a spoken answer made; the rubric itself stands in the picture."""

import ipywidgets as widgets

MOST_POINTS = 10
ROOMY = {"width": "max-content", "margin": "2px 14px 2px 2px"}


class PointTicks:
    """A row of boxes `point 1` (the scope) and on; `made` holds the ticked numbers.

    >>> ticks = PointTicks()
    >>> ticks.ask(3)
    >>> ticks.boxes[0].value = True
    >>> ticks.made
    {1}
    """

    def __init__(self) -> None:
        self.total = 0
        self.boxes = [self._make_box(number) for number in range(1, MOST_POINTS + 1)]
        self.row = widgets.HBox(self.boxes, layout=widgets.Layout(flex_flow="row wrap"))
        self.row.add_class("kvlab-points")
        self.hide()

    @staticmethod
    def _make_box(number: int) -> widgets.Checkbox:
        name = "point 1: scope" if number == 1 else f"point {number}"
        return widgets.Checkbox(description=name, indent=False, layout=widgets.Layout(**ROOMY))

    @property
    def made(self) -> set[int]:
        """The numbers of the ticked points."""
        return {n for n, box in enumerate(self.boxes[: self.total], 1) if box.value}

    def ask(self, total: int) -> None:
        """Show `total` empty boxes."""
        self.total = min(total, MOST_POINTS)
        for number, box in enumerate(self.boxes, 1):
            box.value = False
            box.layout.display = None if number <= self.total else "none"
        self.row.layout.display = None

    def hide(self) -> None:
        """Hide the row and untick its boxes."""
        self.ask(0)
        self.row.layout.display = "none"
