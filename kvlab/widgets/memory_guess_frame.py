"""What the room's memory bar shows: before the look a question and a ghost, after it the sizes."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from kvlab.arithmetic.catalogue import find_model
from kvlab.arithmetic.head_sharing import kv_head_choices
from kvlab.arithmetic.plan_pooled import PooledPlan, pooled_plan
from kvlab.arithmetic.reader import read_model
from kvlab.arithmetic.sizing import Plan, plan
from kvlab.arithmetic.storage import FULL
from kvlab.arithmetic.units import GB, MIB, format_bytes
from kvlab.course.published_table import MODEL as TABLE_MODEL
from kvlab.course.published_table import PRINTED_MIB
from kvlab.errors import InvalidArgument
from kvlab.figures.bar_parts import Marker, Segment
from kvlab.figures.guess_bar import guess_bar
from kvlab.widgets.base import Frame
from kvlab.widgets.memory_frame import read_guess
from kvlab.widgets.planner_inputs import NOMINAL, NOMINAL_BYTES, TWIN, model_source

AS_MADE, AS_MANY = 0, 0
"""The choice of the KV heads that a model was made with, and of as many users as fit."""

GUESS, TABLE = "the class's guess", "a published table (Llama 3 8B)"
GHOSTS = (GUESS, TABLE)
_READING = "The bar is one GPU, to scale; no overhead is counted."


@lru_cache(maxsize=256)
def head_choices(model: str) -> tuple[tuple[str, int], ...]:
    """Return the KV heads that a model can be given, as (words, number); 0 is as it was made.

    >>> head_choices("meta-llama/Llama-3.1-8B")[:3]
    (('8, as made', 0), ('32', 32), ('16', 16))
    """
    storage = read_model(model_source(model))
    kinds = {layer.kind for layer in storage.layers}
    made = {layer.num_kv_heads for layer in storage.layers}
    plain = kinds == {FULL} and len(made) == 1 and "num_key_value_heads" in _config(model)
    if not plain or not storage.num_heads:
        return (("as made", AS_MADE),)
    (own,) = made
    others = [n for n in kv_head_choices(storage.num_heads) if n != own]
    return ((f"{own}, as made", AS_MADE), *((f"{n}", n) for n in others))


def _config(model: str) -> Mapping[str, Any]:
    source = model_source(model)
    return source if isinstance(source, Mapping) else find_model(model).config


@lru_cache(maxsize=512)
def deployed(
    model: str, num_kv_heads: int, cache_dtype: str, context: int, gpu: str, tp: int
) -> tuple[Plan, PooledPlan]:
    """Return the plan of a replica over `tp` GPUs, all their memory used, and its pooled count.

    >>> both = deployed(TWIN, 0, "bf16", 131_072, NOMINAL, 8)
    >>> both[0].admission_bound, int(both[1].pooled)
    (11, 92)
    """
    source: Any = model_source(model)
    if num_kv_heads != AS_MADE:
        source = {**_config(model), "num_key_value_heads": num_kv_heads, "_name_or_path": model}
    memory = {"gpu_bytes": NOMINAL_BYTES} if gpu == NOMINAL else {"gpu": gpu}
    made = plan(
        source, context=context, gpus=tp, tp=tp, utilization=1, cache_dtype=cache_dtype, **memory
    )
    return made, pooled_plan(made)


def guess_frame(
    made: tuple[Plan, PooledPlan], values: Mapping[str, Any], *, scale: float = 1.0
) -> Frame:
    """Return the bar of the tightest GPU; what is computed is left out while `shown` is False.

    >>> names = ("model", "num_kv_heads", "cache_dtype", "context", "gpu", "tp")
    >>> made = deployed(*(chosen := ("llama-3.1-8b", 0, "bf16", 8192, "H100", 1)))
    >>> asks = dict(zip(names, chosen)) | {"users": 0, "ghost": GUESS, "guess": "9", "shown": True}
    >>> guess_frame(made, asks).readout["users that fit"]
    '64'
    """
    planned, pooled = made
    rank, shown = planned.tightest, values["shown"]
    placed = values["users"] or (planned.admission_bound or 0)
    held = placed * rank.request_bytes
    segments = [Segment("weights", rank.weight_bytes, "weights", _gb(rank.weight_bytes))]
    room = max(rank.memory_bytes - rank.weight_bytes, 0)
    if shown:
        words = "1 user" if placed == 1 else f"{placed:,} users"
        segments.append(Segment(words, held, "value", _gb(held)))
        room -= held
    if room > 0:
        name = "free" if shown else "how much of this?"
        segments.append(Segment(name, room, "free", _gb(room) if shown else "", not shown))
    ghost = _ghost(values, rank.request_bytes)
    picture = guess_bar(
        segments,
        capacity=rank.memory_bytes,
        title=_title(planned, values),
        reading=f"{_people(values)}. {_READING}",
        guess=ghost,
        guess_start=rank.weight_bytes,
        scale=scale,
    )
    numbers = _numbers(planned, pooled, held) if shown else {}
    return Frame(picture, numbers, _event(planned, pooled, values, held))


def _ghost(values: Mapping[str, Any], each: int) -> Marker | None:
    """The ghost: what the class typed, or what the published table makes of these users."""
    if values["ghost"] == TABLE:
        printed = PRINTED_MIB.get(values["context"])
        if printed is None or values["model"] != TABLE_MODEL:
            return None
        size = round(printed * MIB) * (values["users"] or 1)
        return Marker(f"published: {_gb(size)}", size)
    typed = values["guess"].strip()
    if not typed:
        return None
    size = guessed_bytes(typed, each, counts_users=values["users"] == AS_MANY)
    unit = " users" if typed.replace(",", "").isdigit() and not values["users"] else ""
    return Marker(f"guess: {typed[:24]}{unit}", size)


def guessed_bytes(typed: str, each: int, *, counts_users: bool) -> int:
    """Return a guess in bytes on a GPU: "40 users", "20 GB", or a bare number of what is asked.

    `each` are the bytes of one user there. Raises `InvalidArgument` for what is neither.

    >>> guessed_bytes("40", 10**9, counts_users=True), guessed_bytes("40", 7, counts_users=False)
    (40000000000, 40000000000)
    """
    words = typed.casefold().replace(",", "").removesuffix("s").removesuffix("user").strip()
    spoken = words != typed.casefold().replace(",", "").strip()
    if words.isdigit() and (spoken or counts_users):
        return min(int(words) * each, 10**15)
    size = read_guess(typed)
    if size is None:
        raise InvalidArgument("guess", typed, 'must be a number such as "40 users" or "20 GB"')
    return size


def _title(planned: Plan, values: Mapping[str, Any]) -> str:
    name, tp = planned.inputs.deployment.model.name.rsplit("/", 1)[-1], values["tp"]
    heads = f", {values['num_kv_heads']} KV heads" if values["num_kv_heads"] else ""
    where = f"each of {tp} GPUs" if tp > 1 else "one GPU"
    card = "80 GB" if values["gpu"] == NOMINAL else values["gpu"]
    name = TWIN if values["model"] == TWIN else name
    return f"{name}{heads}, {values['cache_dtype']} cache, on {where} ({card})"


def _people(values: Mapping[str, Any]) -> str:
    users, context = values["users"], f"{values['context']:,} tokens"
    if users == AS_MANY:
        return f"Users of {context} each"
    return f"1 user of {context}" if users == 1 else f"{users:,} users of {context} each"


def _numbers(planned: Plan, pooled: PooledPlan, held: int) -> dict[str, str]:
    rank, bound = planned.tightest, planned.admission_bound
    return {
        "one token": format_bytes(rank.bytes_per_token),
        "one user": format_bytes(rank.request_bytes),
        "all caches": format_bytes(held),
        "weights": format_bytes(rank.weight_bytes),
        "users that fit": "any number" if bound is None else f"{bound:,}",
        "counted as one pool": f"{pooled.pooled:,.2f}",
    }


def _event(planned: Plan, pooled: PooledPlan, values: Mapping[str, Any], held: int) -> str:
    """The question before the look, the verdict after it."""
    users, context = values["users"], f"{values['context']:,}"
    if not values["shown"]:
        asks = "How many bytes do their caches take?" if users else "How many fit?"
        return f"{_people(values)}. {asks}"
    rank = planned.tightest
    if users and held > max(rank.left_bytes, 0):
        return f"{users:,} users do not fit: {_gb(held - rank.left_bytes)} are missing on a GPU."
    bound = planned.admission_bound
    said = "any number of users fit" if bound is None else f"{bound:,} users fit"
    why = "; ".join(pooled.reasons)
    return f"Of {context} tokens each, {said}.{f' Why fewer than the pool: {why}.' if why else ''}"


def _gb(num_bytes: int) -> str:
    return f"{num_bytes / GB:,.1f} GB"
