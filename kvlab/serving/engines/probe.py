"""Reads a server that runs elsewhere: what its cache holds, who waits, whether the formulas fit.

Only GET is sent, a few times, each bounded in bytes and seconds; nothing is asked to work.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kvlab.arithmetic.checks import whole_number
from kvlab.arithmetic.dtypes import cache_dtype as known_dtype
from kvlab.arithmetic.llama_cpp import llama_cpp_bytes
from kvlab.arithmetic.ranks import check_tp
from kvlab.arithmetic.reader import read_model
from kvlab.arithmetic.storage import ModelStorage
from kvlab.arithmetic.units import format_bytes
from kvlab.serving.engines.addresses import hidden
from kvlab.serving.engines.endpoint import Endpoint
from kvlab.serving.engines.faults import NoAnswer
from kvlab.serving.engines.probe_checks import pool_checks
from kvlab.serving.engines.probe_pages import served_model
from kvlab.serving.engines.reading_names import USAGE
from kvlab.serving.engines.readings import VLLM, Readings, read_metrics
from kvlab.serving.engines.runs import Agreement

OTHERS = {"sglang:": "SGLang", "trtllm": "TensorRT-LLM", "tgi_": "TGI"}


@dataclass(frozen=True)
class ProbeReport:
    """What a server said of itself, and what the formulas say; `notes` are in words."""

    address: str
    engine: str
    version: str | None
    model: str | None
    max_model_len: int | None
    slots: int | None
    readings: Readings
    checks: tuple[Agreement, ...]
    notes: tuple[str, ...] = field(default=())

    @property
    def agrees(self) -> bool | None:
        """Whether every number that could be held against a formula agrees; None without any."""
        return all(check.agrees for check in self.checks) if self.checks else None

    def to_dict(self) -> dict[str, Any]:
        """Return what `--json` prints."""
        told = self.readings
        return {
            "address": self.address,
            "engine": self.engine,
            "version": self.version,
            "model": self.model,
            "max_model_len": self.max_model_len,
            "slots": self.slots,
            "num_blocks": told.num_blocks,
            "block_size": told.block_size,
            "tokens": told.tokens,
            "concurrency": told.concurrency,
            "budget_bytes": told.budget_bytes,
            "block_use": told.values.get(USAGE),
            "running": told.values.get("vllm:num_requests_running"),
            "waiting": told.values.get("vllm:num_requests_waiting"),
            "preemptions": told.values.get("vllm:num_preemptions_total"),
            "prefix_hit_rate": told.prefix_hit_rate,
            "metrics": told.as_vllm() | {n: None for n in told.odd if n.startswith("vllm:")},
            "checks": [check.to_dict() for check in self.checks],
            "agrees": self.agrees,
            "notes": list(self.notes),
        }


def probe(
    url: str,
    *,
    model: str | None = None,
    config: str | Path | None = None,
    cache_dtype: str | None = None,
    tp: int = 1,
    timeout: float = 5.0,
) -> ProbeReport:
    """Return what the server at `url` says, beside what the formulas say of `model` or `config`.

    The metrics tell neither the model's shape nor its dtype, nor the ranks: without `model` its
    name is looked for in the catalogue, without `cache_dtype` the config's dtype is taken. Raises
    `InvalidArgument` for what is no address or setting, before the server is asked, and `NoAnswer`
    where no engine answers.
    """
    endpoint = Endpoint(url, timeout=timeout)
    named = _checked_settings(model, config, cache_dtype, tp)
    reply = endpoint.get("/metrics")
    address = f"{endpoint.base}/metrics"
    if reply.status in range(300, 400):
        where = f"leads elsewhere, to {hidden(reply.location) or 'an address that it does not say'}"
        raise NoAnswer(address, f"{where}; ask there, if you trust it")
    if reply.status != 200:
        raise NoAnswer(address, f"answers {reply.status}: no metrics of an engine there")
    told = read_metrics(reply.text)
    if told is None:
        other = next((name for start, name in OTHERS.items() if start in reply.text), None)
        said = f"this is {other}, whose metrics are not read yet" if other else "no engine we know"
        raise NoAnswer(address, said)
    return _report(endpoint, told, named, cache_dtype, tp)


def _checked_settings(
    model: str | None, config: str | Path | None, cache_dtype: str | None, tp: int
) -> ModelStorage | None:
    """Refuse what is wrong whatever the server says; return what a model named here stores."""
    whole_number("tp", tp)
    if cache_dtype not in (None, "auto"):
        known_dtype(cache_dtype)
    source = model if config is None else Path(config).expanduser()
    if source is None:
        return None
    storage = read_model(source)
    check_tp(storage, tp)
    return storage


def _report(
    endpoint: Endpoint,
    told: Readings,
    named: ModelStorage | None,
    cache_dtype: str | None,
    tp: int,
) -> ProbeReport:
    served = served_model(endpoint, told.engine)
    notes = [f"left out, for it can't be: {name} {said}" for name, said in told.odd.items()]
    storage = named or _served_storage(served, notes)
    dtype = cache_dtype or told.config.get("cache_dtype") or "auto"
    checks: list[Agreement] = []
    if told.engine == VLLM:
        checks = pool_checks(told, served.get("length"), storage, dtype, tp, notes)
    elif storage is not None and served.get("context"):
        dtype = cache_dtype or "f16"
        size = llama_cpp_bytes(
            storage, context=served["context"], sequences=served["slots"] or 1, cache_dtype=dtype
        )
        notes.append(
            f"all its cells together, kept in {dtype}, take {format_bytes(size.total_bytes)};"
            " its metrics don't say a size to hold against it"
        )
    return ProbeReport(
        endpoint.base, told.engine, served.get("version"), served.get("model"),
        served.get("length"), served.get("slots"), told, tuple(checks), tuple(notes),
    )  # fmt: skip


def _served_storage(served: Mapping[str, Any], notes: list[str]) -> ModelStorage | None:
    """Return what the model stores, by the name that it is served as."""
    from kvlab.arithmetic.logs.models import catalogue_row

    for name in (served.get("root"), served.get("model")):
        row = catalogue_row(name) if name else None
        if row is not None:
            notes.append(f"served as {name}: taken to have the shape of {row.id}")
            return read_model(row.id)
    notes.append("the model's shape is not known: name it with --model or --config for its bytes")
    return None
