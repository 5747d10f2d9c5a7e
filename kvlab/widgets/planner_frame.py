"""A plan as bars, numbers and sentences: what the planner shows, without any control."""

from collections.abc import Mapping
from typing import Any

from kvlab.arithmetic.plan_rows import RankRow, rank_rows
from kvlab.arithmetic.sizing import Plan
from kvlab.arithmetic.units import GB, format_bytes
from kvlab.figures.bars import Segment
from kvlab.figures.ranks import RankBar, rank_bars
from kvlab.figures.svg import Picture
from kvlab.widgets.base import Frame

MOST_BARS = 8
"""More GPUs than this are drawn as the fullest one of each stage."""


def rank_segments(plan: Plan, row: RankRow) -> list[Segment]:
    """Return the parts of one GPU: weights, caches of the requests to place, room, the rest."""
    sizes, placed = row.sizes, _placed(plan)
    held = placed * sizes.request_bytes
    room = max(sizes.left_bytes - held, 0)
    requests = f"{placed} request{'' if placed == 1 else 's'}"
    shown = f"{requests} (copy)" if row.is_copy else requests
    parts = [
        ("weights", sizes.weight_bytes, "weights", False),
        (shown, held, "wasted" if row.is_copy else "value", row.is_copy),
        ("room", room, "free", False),
        ("overhead", sizes.overhead_bytes, "shared", True),
    ]
    if sizes.left_bytes >= held:
        parts.append(("spare", sizes.memory_bytes - sizes.usable_bytes, "free", True))
    return [Segment(n, b, role, f"{b / GB:.1f} GB", hatched) for n, b, role, hatched in parts if b]


def _placed(plan: Plan) -> int:
    """Requests drawn on a replica: the users asked for, or as many as fit."""
    if plan.inputs.users:
        return plan.users_per_replica
    return plan.admission_bound or 0


def rank_picture(
    plan: Plan,
    *,
    title: str = "",
    numbers: Mapping[str, str] | None = None,
    lines: Mapping[str, str] | None = None,
    width: float = 960,
    scale: float = 1.0,
) -> Picture:
    """Return one replica as bars to scale: each GPU, or the fullest of each stage when many.

    >>> from kvlab.arithmetic.sizing import plan
    >>> rank_picture(plan("llama-3.1-8b", gpu="H100", context=8192, utilization=1)).label
    'GPU 0 of 85.52 GB: weights 16.06 GB, 64 requests 68.72 GB, room 0.7408 GB.'
    """
    bars = [
        RankBar(name, rank_segments(plan, row), row.sizes.memory_bytes, row.keeps)
        for name, row in _named(plan)
    ]
    reading = "Each bar is one GPU to scale. Green is cache, hatched orange a copy of cache that "
    reading += "another GPU holds too."
    return rank_bars(
        bars,
        title=title,
        reading=reading,
        numbers=numbers,
        lines=lines,
        width=width,
        scale=scale,
    )


def _named(plan: Plan) -> list[tuple[str, RankRow]]:
    rows, tp = rank_rows(plan), plan.inputs.deployment.tp
    if len(rows) <= MOST_BARS:
        return [(f"GPU {row.number}", row) for row in rows]
    if tp > 1 and len(plan.ranks) == 1:
        return [(f"GPU {row.number}", row) for row in rows[: MOST_BARS - 1]] + [
            (f"GPU {rows[-1].number}", rows[-1])
        ]
    firsts = [row for row in rows if row.number % tp == 0]
    return [(f"stage {row.sizes.stage}, {tp} GPUs", row) for row in firsts][:MOST_BARS]


def plan_frame(plan: Plan, report: Mapping[str, Any], *, scale: float = 1.0) -> Frame:
    """Return bars, numbers and sentences of a plan and its `plan_report`."""
    numbers, lines = plan_numbers(report), plan_lines(report)
    title = f"{report['model'].rsplit('/', 1)[-1]} on {report['gpus']} x {_card(plan)}"
    picture = rank_picture(plan, title=title, numbers=numbers, lines=lines, width=620, scale=scale)
    return Frame(picture, {**numbers, **lines}, report["verdict"], numbers_in_picture=True)


def _card(plan: Plan) -> str:
    gpu, memory = plan.inputs.gpu, plan.inputs.memory_bytes
    return gpu.name if gpu and gpu.driver_bytes == memory else f"{memory / GB:g} GB"


def plan_numbers(report: Mapping[str, Any]) -> dict[str, str]:
    """Return the numbers of a report, written: counts, bytes and the least times."""
    replicas, bound = report["dp"], report["admission_bound"]
    many = "any number" if bound is None else f"{bound:,}"
    if replicas > 1 and bound is not None:
        many = f"{replicas} x {bound:,} = {report['total_admission_bound']:,}"
    return {
        "requests at their peak": many,
        "with the fraction": _count(report["concurrency"]),
        "counted as one pool": _count(report["pooled_concurrency"]),
        "cache of a token, on a GPU": f"{report['bytes_per_token_per_rank']:,} B",
        "left for caches, on a GPU": _size(report["budget_bytes_per_rank"]),
        "tokens in a replica": _whole(report["capacity_tokens"]),
        "first token after": _seconds(report["ttft_seconds"]),
        "each token after": _seconds(report["tpot_seconds"]),
    }


def plan_lines(report: Mapping[str, Any]) -> dict[str, str]:
    """Return the sentences of a report: the verdict, what binds, the next change, the command."""
    lines = {}
    if (report["pooled_concurrency"] or 0) - (report["concurrency"] or 0) > 0.01:
        lines["why one pool promises more"] = "; ".join(report["pooled_reasons"])
    lines |= {"what binds": report["binds"], "next change": _next(report)}
    refused = report["no_command"]
    none = "nothing: it does not fit" if refused == report["verdict"] else f"nothing: {refused}"
    return lines | {"start": report["command"] or none}


def _next(report: Mapping[str, Any]) -> str:
    found = next((c for c in report["changes"] if c["change"] == report["next_change"]), None)
    if found is None:
        return "no single step helps"
    gained, end = found["gained_requests"], "" if found["fits"] else "; still none fits"
    gain = f"{gained:+,} requests" if gained else "less is missing"
    return f"{found['change']} ({found['cost']}): {gain}{end}"


def _count(value: float | None) -> str:
    return "no bound" if value is None else f"{value:,.2f}"


def _whole(value: int | None) -> str:
    return "no bound" if value is None else f"{value:,}"


def _size(num_bytes: int) -> str:
    return format_bytes(num_bytes, digits=1)


def _seconds(value: float | None) -> str:
    if value is None:
        return "none fits"
    return f"{value:,.2f} s or more" if value >= 1 else f"{1000 * value:,.1f} ms or more"
