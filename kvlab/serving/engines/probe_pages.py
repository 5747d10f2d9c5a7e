"""What other pages of a server say of the model: name, version, longest request, slots."""

from collections.abc import Mapping
from typing import Any

from kvlab.serving.engines.endpoint import Endpoint
from kvlab.serving.engines.faults import NoAnswer, printable
from kvlab.serving.engines.readings import LLAMACPP


def served_model(endpoint: Endpoint, engine: str) -> dict[str, Any]:
    """Return what the pages say, by name; nothing for those that are not there."""
    served: dict[str, Any] = {}
    if engine == LLAMACPP:
        props = _page(endpoint, "/props")
        settings = props.get("default_generation_settings")
        each = _count(settings.get("n_ctx")) if isinstance(settings, Mapping) else None
        slots = _count(props.get("total_slots"))
        served |= {"slots": slots, "length": each, "version": _said(props.get("build_info"))}
        served["model"] = _said(props.get("model_path") or props.get("model_alias"))
        served["context"] = each * (slots or 1) if each else None
        return served
    rows = _page(endpoint, "/v1/models").get("data")
    first = rows[0] if isinstance(rows, list) and rows and isinstance(rows[0], Mapping) else {}
    served["model"] = _said(first.get("id"))
    served["root"] = _said(first.get("root"))
    served["length"] = _count(first.get("max_model_len"))
    served["version"] = _said(_page(endpoint, "/version").get("version"))
    return served


def _page(endpoint: Endpoint, path: str) -> Mapping[str, Any]:
    try:
        found = endpoint.json(path)
    except NoAnswer:
        return {}
    return found if isinstance(found, Mapping) else {}


def _said(value: object) -> str | None:
    return printable(value, 200) if isinstance(value, str) and value.strip() else None


def _count(value: object) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**12
    return int(value) if is_count else None  # type: ignore[call-overload]
