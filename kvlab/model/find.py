"""From the name of a model to its folder on this machine."""

from pathlib import Path

from kvlab.errors import InvalidArgument, UnsafeCheckpoint
from kvlab.model.bundled import BUNDLED, bundled_folder
from kvlab.model.checkpoint import PICKLE_RULE, PICKLES
from kvlab.model.hub import hub_folder, is_hub_id
from kvlab.model.weights import ensure_smollm2

SMOLLM2_HUB_ID = "HuggingFaceTB/SmolLM2-135M-Instruct"  # the original; `smollm2` is our pinned one


def find_folder(name_or_path: str | Path) -> tuple[str, Path]:
    """Return a model's name and its folder on this machine, fetching it where needed."""
    if not isinstance(name_or_path, str | Path):
        raise InvalidArgument("name_or_path", name_or_path, "must be a name or a folder")
    text = str(name_or_path).strip()
    if isinstance(name_or_path, str) and (name := text.lower()) in ("smollm2", *BUNDLED):
        return name, ensure_smollm2() if name == "smollm2" else bundled_folder(name)
    path = _existing(text)
    if path is not None:
        return (path.resolve().name, path) if path.is_dir() else _folder_of_file(path)
    if isinstance(name_or_path, str) and is_hub_id(text):
        return text, hub_folder(text)
    return _by_catalogue(text)


def _existing(text: str) -> Path | None:
    """Return the file or folder that `text` names; None for an empty or impossible path too."""
    try:
        path = Path(text).expanduser()
        return path if text and path.exists() else None
    except (OSError, ValueError, RuntimeError):
        return None


def _folder_of_file(path: Path) -> tuple[str, Path]:
    suffix = path.suffix.lower()
    if suffix in PICKLES:
        raise UnsafeCheckpoint(f"{path}: {PICKLE_RULE}")
    if suffix == ".gguf":
        return "smollm2", ensure_smollm2(path)  # only the pinned one passes
    raise InvalidArgument("name_or_path", str(path), "is a file; give the model's folder")


def _by_catalogue(name: str) -> tuple[str, Path]:
    """Read a short name such as `llama-3.1-8b` through the catalogue."""
    from kvlab.arithmetic.catalogue import find_model

    try:
        hub_id = find_model(name).id
    except InvalidArgument:
        rule = "no such folder, and no model kvlab knows; try 'smollm2', 'tiny' or a hub id"
        raise InvalidArgument("name_or_path", name, rule) from None
    if hub_id == SMOLLM2_HUB_ID:
        return "smollm2", ensure_smollm2()
    return hub_id, hub_folder(hub_id)
