"""Why a prediction and a printed number differ, or agree though one might not expect it."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from kvlab.arithmetic.logs.alternatives import alternatives
from kvlab.arithmetic.logs.case import Case
from kvlab.arithmetic.logs.facts import Run
from kvlab.arithmetic.logs.finding import DIFFERS, Finding
from kvlab.arithmetic.logs.naive import NAIVE
from kvlab.arithmetic.logs.predict import predict
from kvlab.arithmetic.logs.remarks import remarks
from kvlab.arithmetic.units import GIB
from kvlab.errors import KvlabError

RANK_GAP = 0.03
"""Ranks of one engine differ in free memory by less than this share."""


@dataclass(frozen=True, slots=True)
class Variant:
    """Another case, in words, and how many printed numbers follow from it."""

    says: str
    is_mistake: bool
    findings: tuple[Finding, ...]

    @property
    def score(self) -> int:
        """How many printed numbers this case gives."""
        return sum(finding.verdict != DIFFERS for finding in self.findings)

    def gives(self, finding: Finding) -> bool:
        """Whether this case gives the number that `finding` could not."""
        mine = [f for f in self.findings if f.quantity == finding.quantity]
        mine = [f for f in mine if f.fact == finding.fact]
        return bool(mine) and all(f.verdict != DIFFERS for f in mine)


def explain(run: Run, case: Case) -> tuple[Finding, ...]:
    """Return the findings of a run, each with the reasons that could be found for it."""
    findings = predict(run, case)
    if all(finding.verdict != DIFFERS for finding in findings):
        variants: list[Variant] = []
    else:
        variants = list(_variants(run, case))
    return tuple(f.because(*_reasons(run, case, f, variants)) for f in findings)


def _variants(run: Run, case: Case) -> Iterator[Variant]:
    """Settings that the log may not show, then mistakes, each with what it gives."""
    chosen = [(says, False, other) for says, other in alternatives(run, case)]
    for formula in NAIVE.values():
        chosen.append((f"{formula.says} ({formula.name})", True, formula.apply(case)))
    for says, is_mistake, other in chosen:
        if other != case:
            with suppress(KvlabError):
                yield Variant(says, is_mistake, predict(run, other))


def _reasons(run: Run, case: Case, finding: Finding, variants: list[Variant]) -> Iterator[str]:
    yield from remarks(run, case, finding)
    if finding.verdict != DIFFERS:
        return
    giving = [variant for variant in variants if variant.gives(finding)]
    found = []
    if settings := [variant for variant in giving if not variant.is_mistake]:
        likely = max(settings, key=lambda variant: variant.score)
        found.append(f"the printed number fits {likely.says}")
    found += [f"a formula that {v.says} gives the printed number" for v in giving if v.is_mistake]
    found += [*_other_rank(run, case, finding), *_process_totals(finding)]
    yield from found or [f"not explained: {_factor(finding)}"]


def _other_rank(run: Run, case: Case, finding: Finding) -> list[str]:
    """With several ranks, the memory printed and the tokens printed may be of different ranks."""
    memory = run.last("available")
    per_memory = finding.quantity in ("kv_tokens", "num_blocks") and memory is not None
    if not per_memory or case.settings.tp * case.settings.pp == 1:
        return []
    if abs(finding.relative_error) > RANK_GAP or memory is None:
        return []
    ratio = finding.fact.number / finding.estimate.value
    more = "more" if ratio > 1 else "less"
    return [
        f"a guess: the memory printed ({memory.printed}) and the count are of different ranks. The"
        f" pool follows the rank with least memory, each rank prints its own; this count takes"
        f" {memory.number * ratio / GIB:.2f} GiB, {abs(ratio - 1):.2%} {more}"
    ]


def _process_totals(finding: Finding) -> list[str]:
    if finding.quantity != "saved_by_windows":
        return []
    return [
        "both totals are of the whole process: compute buffers and attention masks change with the"
        f" cells too, so only about this size can be expected ({abs(finding.relative_error):.0%}"
        " apart)"
    ]


def _factor(finding: Finding) -> str:
    printed = finding.fact.number
    ratio = finding.estimate.value / printed if printed else float("inf")
    return f"the prediction is {ratio:.3g} times the printed number and no known cause fits"
