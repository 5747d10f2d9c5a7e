"""Demos for a room: one widget of the course, full screen, in a browser on this machine alone.

Python keeps the widget; the page draws its controls and its picture. No kernel, no notebook.
"""

from kvlab.demo.registry import DEMOS, find_demo
from kvlab.demo.stages import Demo, Preset, Stage

__all__ = ["DEMOS", "Demo", "Preset", "Stage", "find_demo"]
