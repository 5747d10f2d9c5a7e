"""The whole answer to a pasted log: every run, what was found, and what could not be said."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvlab.arithmetic.checks import whole_number
from kvlab.arithmetic.dtypes import cache_dtype
from kvlab.arithmetic.logs.case import Case, case_of
from kvlab.arithmetic.logs.explain import explain
from kvlab.arithmetic.logs.facts import Fact, Run, unique
from kvlab.arithmetic.logs.finding import DIFFERS, Finding
from kvlab.arithmetic.logs.models import FoundModel, find_model_of, models_with
from kvlab.arithmetic.logs.naive import bytes_per_token
from kvlab.arithmetic.logs.read import SIZES, read_log
from kvlab.arithmetic.units import GIB, format_bytes
from kvlab.errors import InvalidArgument, KvlabError, Unsupported


@dataclass(frozen=True)
class RunReport:
    """One start of one engine: its model, the case, the findings and remarks about the whole."""

    run: Run
    found: FoundModel | None
    case: Case
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]

    @property
    def bytes_per_token(self) -> int | None:
        """Bytes of one token on one rank; None without a model or with a tp that it refuses."""
        try:
            return bytes_per_token(self.case) if self.found else None
        except KvlabError:
            return None

    @property
    def given(self) -> tuple[Fact, ...]:
        """Sizes that were read and taken as they are: nothing in the log leads to them."""
        used = {(f.fact.name, f.fact.value) for f in self.findings}
        facts = [f for f in unique(self.run.facts) if f.name in SIZES]
        return tuple(f for f in facts if (f.name, f.value) not in used)

    def to_dict(self) -> dict[str, Any]:
        """Return what `--json` prints of a run."""
        settings = self.case.settings
        return {
            "engine": self.run.engine,
            "version": self.run.text("version"),
            "model": self.found.storage.name if self.found else None,
            "model_found": self.found.how if self.found else None,
            "tp": settings.tp,
            "block_size": settings.block_size,
            "cache_dtype": settings.cache_dtype,
            "assumed": list(settings.assumed),
            "bytes_per_token_per_rank": self.bytes_per_token,
            "findings": [finding.to_dict() for finding in self.findings],
            "given": {fact.name: fact.printed for fact in self.given},
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class LogReport:
    """All runs of a paste, and what they say when held beside each other."""

    runs: tuple[RunReport, ...]
    notes: tuple[str, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of every run."""
        return tuple(finding for run in self.runs for finding in run.findings)

    def to_dict(self) -> dict[str, Any]:
        """Return what `--json` prints."""
        return {"runs": [run.to_dict() for run in self.runs], "notes": list(self.notes)}


def explain_log(
    text: str,
    *,
    model: str | None = None,
    config: "Mapping[str, Any] | str | Path | None" = None,
    **settings: Any,
) -> LogReport:
    """Return what an engine's start-up output says, predicted and explained.

    `model` and `config` say whose cache it is where the log does not; `settings` (tp, block_size,
    cache_dtype, max_model_len ...) win over the log's. Raises `InvalidArgument` when the text holds
    nothing of any engine.

    >>> report = explain_log('''Initializing a V1 LLM engine (v0.11.0) with config:
    ... model='meta-llama/Llama-3.1-8B', tensor_parallel_size=1, dtype=torch.bfloat16
    ... Available KV cache memory: 3.81 GiB
    ... GPU KV cache size: 31,232 tokens''')
    >>> report.findings[0].verdict, report.findings[0].estimate.value
    ('equal within rounding', 31200)
    """
    _check(settings)
    reports = tuple(_run_report(run, model, config, settings) for run in read_log(text))
    return LogReport(reports, tuple(_side_by_side(reports)))


def _check(settings: dict[str, Any]) -> None:
    """Refuse a setting that cannot be, whatever the log says."""
    for name, value in settings.items():
        if value is not None and name in ("cache_dtype", "value_dtype"):
            cache_dtype(value)
        elif value is not None and name != "platform":
            whole_number(name, value)


def _run_report(run: Run, model: Any, config: Any, settings: dict[str, Any]) -> RunReport:
    found = find_model_of(run, model, config)
    case, notes = case_of(run, found, settings), list(found.storage.notes if found else ())
    try:
        findings = explain(run, case)
    except (InvalidArgument, Unsupported) as error:
        findings = ()
        notes.append(f"no prediction: {error}")
    if not any(fact.name in SIZES for fact in run.facts):
        notes.append("no size of a cache is in what was pasted: paste more of the start-up output")
    elif found is None:
        notes += _without_model(run)
    return RunReport(run, found, case, findings, tuple(notes))


def _without_model(run: Run) -> list[str]:
    named = run.text("model")
    said = f"names {named}, which the catalogue does not have" if named else "names no model"
    notes = [f"the log {said}: say whose cache it is with --model or --config"]
    tokens = run.last("kv_tokens")
    size = run.last("cache_bytes") or run.last("kv_bytes") or run.last("available")
    if tokens and size and tokens.number:
        each, half = size.number / tokens.number, size.half_step / tokens.number
        said = f"{size.printed} for {tokens.printed} tokens are about {each:,.0f} bytes a token"
        likely = models_with(each, max(half / each, 0.002))
        also = f"; on one rank in 16 bit that fits {', '.join(likely)}" if likely else ""
        notes.append(said + also)
    return notes


def _side_by_side(reports: tuple[RunReport, ...]) -> list[str]:
    """Two engines with one model: what a token costs, and how much memory each one gave."""
    sized = [r for r in reports if r.bytes_per_token and r.run.last("kv_tokens")]
    models = {r.found.storage.name for r in sized if r.found}
    if len({r.run.engine for r in sized}) < 2 or len(models) != 1:
        return []
    each = {r.bytes_per_token for r in sized if r.bytes_per_token}
    parts = []
    for report in sized:
        tokens = report.run.whole("kv_tokens") or 0
        pool = tokens * (report.bytes_per_token or 0)
        parts.append(f"{report.run.engine} {tokens:,} tokens ({pool / GIB:.2f} GiB a rank)")
    same = "the same" if len(each) == 1 else "not the same"
    cost = " and ".join(format_bytes(size) for size in sorted(each))
    why = "the pools differ because the memory given to them differs, not the layout of the cache"
    said = f"bytes a token are {same} in both ({cost}): {'; '.join(parts)}"
    return [f"{said}; {why}" if len(each) == 1 else said]


def disagreements(report: LogReport) -> tuple[Finding, ...]:
    """Return the findings whose printed number does not follow from the model and the log."""
    return tuple(finding for finding in report.findings if finding.verdict == DIFFERS)
