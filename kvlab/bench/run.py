"""Measure rows one after the other and hand out their lines as they come."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from kvlab.bench.lines import Line
from kvlab.bench.registry import ROWS, RowFunction
from kvlab.bench.setting import Setting, reason
from kvlab.errors import KvlabError


def measure(
    names: Sequence[str],
    setting: Setting,
    *,
    functions: dict[str, RowFunction] | None = None,
) -> Iterator[Line]:
    """Yield the lines of these rows; a row that fails becomes a line that says why.

    An interrupt passes through: what was yielded before it stands. `functions` replaces the rows'
    own, for tests.
    """
    for name in names:
        function = (functions or {}).get(name) or ROWS[name].function()
        try:
            yield from function(setting)
        except (KvlabError, ImportError, OSError, RuntimeError) as error:
            yield Line(f"{name}: not finished", unit="", note=reason(error))


def collected(lines: Iterator[Line], show: Callable[[Line], None]) -> tuple[list[Line], bool]:
    """Return all lines, each shown as it comes, and whether an interrupt cut them short.

    >>> collected(iter([Line("start: x", unit="ms")]), lambda line: None)[1]
    False
    """
    found: list[Line] = []
    try:
        for line in lines:
            found.append(line)
            show(line)
    except KeyboardInterrupt:
        return found, True
    return found, False
