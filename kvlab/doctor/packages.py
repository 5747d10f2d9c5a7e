"""The doctor's checks of packages: versions, ranges, a stale kernel, widgets.

Versions are read from the packages' metadata: nothing is imported for it.
"""

import sys
from collections.abc import Iterator
from importlib import metadata
from importlib.util import find_spec

from kvlab.doctor.report import BROKEN, Row

ALSO_SHOWN = ("jupyterlab", "jupyterlab_widgets", "jupytext", "ipykernel")


def installed_version(name: str) -> str | None:
    """Return a package's version from its metadata, or None when it is not installed.

    >>> installed_version("no-such-package") is None
    True
    """
    try:
        return metadata.version(name) or None
    except metadata.PackageNotFoundError:
        return None


def requirements() -> dict[str, str]:
    """Return kvlab's own requirements as {package: range}, from its metadata."""
    from packaging.requirements import Requirement

    try:
        lines = metadata.requires("kvlab") or []
    except metadata.PackageNotFoundError:  # run from a folder, not installed
        return {}
    found = [Requirement(line) for line in lines]
    wanted = [one for one in found if one.marker is None or one.marker.evaluate({"extra": ""})]
    return {one.name: str(one.specifier) for one in wanted}


def packages() -> Iterator[Row]:
    """Yield each package that kvlab needs, and those that show its notebooks."""
    for name, wanted in requirements().items():
        yield _package(name, wanted)
    for name in ALSO_SHOWN:
        version = installed_version(name)
        yield Row(name, version or "not installed", True if version else None, folded=True)


def _package(name: str, wanted: str) -> Row:
    from packaging.specifiers import SpecifierSet

    advice = f'python -m pip install "{name}{wanted}"'
    try:
        version = installed_version(name)
        if version is None:
            return Row(name, "not installed", False, advice)
        if find_spec(name.replace("-", "_")) is None:
            value = f"{version}, but it can't be imported"
            return Row(name, value, False, f"{advice} --force-reinstall")
        if not SpecifierSet(wanted).contains(version, prereleases=True):
            return Row(name, f"{version} (needs {wanted})", False, advice)
    except Exception as error:  # damaged metadata may raise anything
        return Row(name, f"unreadable ({type(error).__name__})", False, BROKEN)
    return Row(name, version, True, folded=True)


def restart_needed() -> Iterator[Row]:
    """Yield a row for each package whose loaded version is not the installed one.

    That is so after an install cell replaced a package that the kernel had already imported.
    """
    for name in ("numpy", "torch", "transformers", "pandas", "plotly", "ipywidgets"):
        loaded = getattr(sys.modules.get(name), "__version__", None)
        installed = installed_version(name)
        if loaded and installed and str(loaded) != installed:
            value = f"{loaded} is loaded, {installed} is installed"
            yield Row(f"{name} in this kernel", value, False, "restart the kernel, then run again")


def widgets() -> Iterator[Row]:
    """Yield whether sliders can live here: ipywidgets, its JupyterLab half, and a kernel."""
    version, lab_half = installed_version("ipywidgets"), installed_version("jupyterlab_widgets")
    if version is None or find_spec("ipywidgets") is None:
        advice = "python -m pip install ipywidgets, then restart the kernel"
        yield Row("widgets", "no: ipywidgets is missing", False, advice)
    elif not in_kernel():
        yield Row("widgets", "this is no notebook; nothing to draw on")
    elif "google.colab" not in sys.modules and not _halves_match(version, lab_half):
        value = f"ipywidgets {version} with jupyterlab_widgets {lab_half or 'missing'}"
        advice = "python -m pip install --upgrade ipywidgets, then restart JupyterLab"
        yield Row("widgets", value, False, advice)
    else:
        yield Row("widgets", "alive", True)


def in_kernel() -> bool:
    """Say whether this runs in a Jupyter kernel (a notebook), not in a terminal.

    >>> in_kernel()
    False
    """
    if "IPython" not in sys.modules:
        return False
    shell = sys.modules["IPython"].get_ipython()
    return getattr(shell, "kernel", None) is not None


def _halves_match(version: str, lab_half: str | None) -> bool:
    """ipywidgets 8 goes with jupyterlab_widgets 3, and 7 with 1."""
    pairs = {"8": "3", "7": "1"}
    return bool(lab_half) and pairs.get(version.split(".")[0]) == lab_half.split(".")[0]
