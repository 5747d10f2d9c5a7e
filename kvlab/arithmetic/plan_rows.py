"""Every rank of one replica, not only the fullest of each stage: which heads it keeps, and copies.

Sizes are those of `plan_ranks`; this adds who keeps what. Left out: how an engine numbers ranks
over machines.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from kvlab.arithmetic.plan_ranks import RankPlan
from kvlab.arithmetic.sizing import Plan
from kvlab.arithmetic.storage import LATENT, LayerStorage


@dataclass(frozen=True, slots=True)
class RankRow:
    """One rank: its number in the replica, what it keeps in words, and the sizes of its stage.

    `is_copy` tells that another rank of the stage keeps the same bytes of every request.
    """

    number: int
    keeps: str
    is_copy: bool
    sizes: RankPlan


def rank_rows(plan: Plan) -> tuple[RankRow, ...]:
    """Return one row for each rank of a replica, stage by stage.

    >>> from kvlab.arithmetic.sizing import plan
    >>> rows = rank_rows(plan("llama-3.1-70b", gpu="H100", tp=16, context=8192))
    >>> [(row.keeps, row.is_copy) for row in rows[:3]]
    [('KV head 0', False), ('KV head 0', True), ('KV head 1', False)]
    """
    return tuple(_rows(plan))


def _rows(plan: Plan) -> Iterator[RankRow]:
    tp, stages = plan.inputs.deployment.tp, plan.inputs.deployment.stages
    for sizes in plan.ranks:
        stores = [s for s in stages[sizes.stage] if s.num_kv_heads]
        for place in range(tp):
            said = [_kept(store, place, tp) for store in stores]
            keeps = " and ".join(dict.fromkeys(words for words, _ in said)) or "no heads"
            is_copy = bool(said) and all(copied for _, copied in said)
            yield RankRow(tp * sizes.stage + place, keeps, is_copy, sizes)


def _kept(store: LayerStorage, place: int, tp: int) -> tuple[str, bool]:
    """What a rank keeps of one store, and whether an earlier rank keeps it too."""
    if store.kind == LATENT:
        return "all latents", place > 0
    heads = store.num_kv_heads
    if heads <= tp:
        head = place * heads // tp
        earlier = place > 0 and (place - 1) * heads // tp == head
        return f"KV head {head}", earlier
    first, last = place * heads // tp, (place + 1) * heads // tp - 1
    return (f"KV heads {first} to {last}" if last > first else f"KV head {first}"), False
