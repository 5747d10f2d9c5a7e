"""A model by its Hugging Face hub id: only safetensors and JSON files, and a quick no when offline.

What was fetched before is used without asking the network again. HF_HUB_OFFLINE is honoured.
"""

import re
from pathlib import Path

from kvlab.arithmetic.units import format_bytes
from kvlab.errors import KvlabError, ModelUnavailable, UnsafeCheckpoint
from kvlab.model.checkpoint import PICKLE_RULE, PICKLES, weight_files
from kvlab.model.fetch import Say, say_on_stderr

_WANTED = (
    "*.safetensors",
    "model.safetensors.index.json",
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
)
_TIMEOUT = 5.0  # seconds for the first answer; a class without a network must not wait


def is_hub_id(name: str) -> bool:
    """Say whether `name` looks like `owner/model`.

    >>> is_hub_id("meta-llama/Llama-3.1-8B"), is_hub_id("./folder"), is_hub_id("a/b/c")
    (True, False, False)
    """
    return re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", name) is not None


def hub_folder(hub_id: str, *, say: Say = say_on_stderr) -> Path:
    """Return the folder of a hub model, fetching it with a progress bar where needed.

    Raises `ModelUnavailable` within seconds when there is no network, no such model or no right to
    it, and `UnsafeCheckpoint` before any download when it has pickles only.
    """
    from huggingface_hub import constants, snapshot_download

    cached = cached_folder(hub_id)
    if cached is not None:
        return cached
    if constants.HF_HUB_OFFLINE:
        raise ModelUnavailable(f"{hub_id} is not on this machine and HF_HUB_OFFLINE is set")
    try:
        revision = _revision(hub_id, say)
        return Path(
            snapshot_download(
                hub_id,
                revision=revision,
                allow_patterns=list(_WANTED),
                ignore_patterns=["*/*"],
                etag_timeout=_TIMEOUT,
            )
        )
    except KvlabError:
        raise
    except Exception as error:  # the hub's errors and those of whichever HTTP library it uses
        raise ModelUnavailable(f"{hub_id} could not be fetched: {_advice(error)}") from None


def cached_folder(hub_id: str) -> Path | None:
    """Return the folder of an earlier fetch, if it is whole; asks no network."""
    from huggingface_hub import snapshot_download

    try:
        folder = Path(snapshot_download(hub_id, local_files_only=True))
        weight_files(folder)
    except Exception:  # not there, or only in part: both mean fetching
        return None
    whole = (folder / "config.json").is_file() and (folder / "tokenizer.json").is_file()
    return folder if whole else None


def _revision(hub_id: str, say: Say) -> str | None:
    """Ask what the model holds, refuse pickles, say how much comes; return the exact revision."""
    from huggingface_hub import HfApi

    info = HfApi().model_info(hub_id, files_metadata=True, timeout=_TIMEOUT)
    sizes = {
        file.rfilename: file.size or 0 for file in info.siblings or () if "/" not in file.rfilename
    }
    weights = {name: size for name, size in sizes.items() if name.endswith(".safetensors")}
    if not weights:
        pickles = sorted(name for name in sizes if name.endswith(PICKLES))
        if pickles:
            raise UnsafeCheckpoint(f"{hub_id}: holds only {pickles[0]}; {PICKLE_RULE}")
        raise ModelUnavailable(f"{hub_id}: holds no safetensors file")
    say(f"{hub_id} is fetched from the hub once: {format_bytes(sum(weights.values()))}")
    return info.sha


def _advice(error: Exception) -> str:
    kind = type(error).__name__
    if kind == "GatedRepoError":
        return "its licence must be accepted on its hub page, then log in with `hf auth login`"
    if kind == "RepositoryNotFoundError":
        return "the hub has no such model, or it is private (`hf auth login`)"
    return f"no usable answer from the hub ({kind}); use a folder, 'smollm2' or 'tiny'"
