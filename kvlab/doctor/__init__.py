"""One call that says what this machine has, what is missing, and what to do about it.

Nothing is fetched and no network is asked. A check that fails becomes a row, never an error.
"""

from collections.abc import Callable, Iterable

from kvlab.doctor.report import BROKEN, Report, Row

__all__ = ["Report", "Row", "doctor"]


def doctor(*, import_torch: bool = True) -> Report:
    """Look at this machine and return a report, in about a second.

    `import_torch=False` leaves out the device and its dtype, and loads no heavy package.

    >>> [row.name for row in doctor(import_torch=False).rows][:2]
    ['python', 'system']
    """
    from kvlab.doctor import machine, packages

    checks: list[Callable[[], Iterable[Row]]] = [
        machine.machine,
        machine.storage,
        *([machine.device] if import_torch else []),
        packages.packages,
        packages.restart_needed,
        packages.widgets,
        machine.models,
        machine.extras,
    ]
    return Report(tuple(row for check in checks for row in _safely(check)))


def _safely(check: Callable[[], Iterable[Row]]) -> list[Row]:
    try:
        return list(check())
    except Exception as error:  # a broken package may raise anything; that is what we report
        reason = " ".join(str(error).split())[:120]
        value = f"could not be looked at ({type(error).__name__}: {reason})"
        return [Row(check.__name__.replace("_", " "), value, False, BROKEN)]
