"""The models that come with kvlab: trained tiny Llamas, each a folder in its data."""

from pathlib import Path

from kvlab._paths import data_dir
from kvlab.errors import ModelUnavailable

BUNDLED = ("tiny", "tiny-mha", "tiny-gqa", "tiny-mqa", "tiny-gqa-uptrained", "tiny-window")
"""Their names: `tiny`; then 8 query heads with 8, 2 and 1 KV heads; two more variants of them."""


def is_bundled(name: str) -> bool:
    """Say whether a model of `BUNDLED` is in this installation; names in any case.

    >>> is_bundled("Tiny"), is_bundled("smollm2")
    (True, False)
    """
    return name.lower() in BUNDLED and (data_dir() / name.lower() / "config.json").is_file()


def bundled_folder(name: str) -> Path:
    """Return the folder of a model of `BUNDLED`; `ModelUnavailable` where it is not installed."""
    if not is_bundled(name):
        raise ModelUnavailable(f"the bundled model {name!r} is not in this installation of kvlab")
    return data_dir() / name.lower()
