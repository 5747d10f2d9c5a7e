"""Where a config comes from: a dict, a file, a folder, the catalogue, or the hub when asked.

The hub is read only on request, with the standard library, and only `config.json`.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kvlab._paths import data_dir
from kvlab.errors import InvalidArgument, KvlabError, ModelUnavailable

MAX_BYTES = 8 * 2**20
"""A config.json is a few KiB; anything larger than this is something else."""


def find_config(source: object, *, allow_hub: bool = False) -> tuple[str, Mapping[str, Any]]:
    """Return the model's name and its config.

    >>> find_config("smollm2")[0]
    'HuggingFaceTB/SmolLM2-135M-Instruct'
    """
    if isinstance(source, Mapping):
        return str(source.get("_name_or_path") or "config"), source
    if isinstance(source, Path):
        return _from_path(source)
    if not isinstance(source, str):
        rule = "must be a config (a JSON object), a path or the name of a model"
        raise InvalidArgument("config", source, rule)
    path = Path(source).expanduser()
    if source.endswith(".json") or (path / "config.json").is_file():
        return _from_path(path)
    return _by_name(source, allow_hub)


def parse(text: str, where: str) -> Mapping[str, Any]:
    """Return the JSON object in `text`, or raise an error that names `where`."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise KvlabError(f"{where} is not valid JSON: {error}") from None
    if not isinstance(document, dict):
        kind = type(document).__name__
        raise InvalidArgument(where, kind, "must hold a JSON object, the content of config.json")
    return document


def _from_path(path: Path) -> tuple[str, Mapping[str, Any]]:
    file = path / "config.json" if path.is_dir() else path
    try:
        with file.open("rb") as stream:  # bounded: a device says that its size is 0
            content = stream.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            rule = f"is larger than {MAX_BYTES // 2**20} MiB: no config.json"
            raise InvalidArgument("config", str(file), rule)
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise KvlabError(f"{file.name} is not text in UTF-8") from None
    except OSError as error:
        raise KvlabError(f"cannot read {file}: {error.strerror}") from None
    config = parse(text, file.name)
    stem = file.parent.name if file.name == "config.json" else file.stem
    return str(config.get("_name_or_path") or stem or file.name), config


def _by_name(name: str, allow_hub: bool) -> tuple[str, Mapping[str, Any]]:
    from kvlab.arithmetic.catalogue import find_model

    try:
        row = find_model(name)
    except InvalidArgument:
        bundled = data_dir() / name.lower() / "config.json"
        if name.replace("-", "").isalnum() and bundled.is_file():
            return name.lower(), _from_path(bundled)[1]
        if allow_hub and name.count("/") == 1:
            return name, _from_hub(name)
        raise
    return row.id, row.config


def _from_hub(name: str) -> Mapping[str, Any]:
    from urllib.error import URLError
    from urllib.request import urlopen

    url = f"https://huggingface.co/{name}/resolve/main/config.json"
    try:
        with urlopen(url, timeout=10) as answer:
            text = answer.read(MAX_BYTES).decode("utf-8")
    except (URLError, OSError, ValueError) as error:
        said = f"{name} is not in the catalogue and the hub could not be read ({error})"
        raise ModelUnavailable(f"{said}; save its config.json and give its path") from None
    return parse(text, f"config.json of {name}")
