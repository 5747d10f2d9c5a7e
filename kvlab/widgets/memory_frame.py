"""One frame of the memory explorer: the bar, the numbers and the formula in words."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from kvlab.arithmetic.dtypes import cache_dtype
from kvlab.arithmetic.gpus import find_gpu
from kvlab.arithmetic.memory_split import MemorySplit, split_memory
from kvlab.arithmetic.plan_weights import weights_format
from kvlab.arithmetic.storage import LATENT, ModelStorage
from kvlab.arithmetic.units import GB, GIB, format_bytes
from kvlab.course.typed import Typed, read_typed
from kvlab.course.typed_units import read_unit
from kvlab.figures.bars import Marker, Segment, memory_bar
from kvlab.figures.svg import Picture
from kvlab.widgets.base import Frame
from kvlab.widgets.memory_model import uniform_factors

READING = "The bar is the memory of the GPUs, to scale. Users and tokens move the green part alone."


def memory_frame(
    storage: ModelStorage,
    title: str,
    values: Mapping[str, Any],
    *,
    parameters: int | None = None,
    scale: float = 1.0,
) -> Frame:
    """Return the frame for a model and the values of the controls.

    `parameters` is the exact count, where the control's billions are that of a known model.
    """
    gpu = find_gpu(values["gpu"])
    typed = round(values["parameters"] * 1e9)
    count = parameters if parameters and abs(parameters - typed) <= 5e6 else typed
    split = split_memory(
        storage,
        context=values["context"],
        users=values["users"],
        weights_bytes=weights_format(values["weights_dtype"]).bytes_for(count),
        capacity_bytes=values["gpus"] * gpu.driver_bytes,
        overhead_bytes=round(values["overhead"] * GB),
        cache_dtype=values["cache_dtype"],
    )
    formula = formula_in_words(storage, values["cache_dtype"])
    cards = f"{values['gpus']} x {gpu.name}" if values["gpus"] > 1 else gpu.name
    where = f"{title}, {values['cache_dtype']} cache, on {cards}: {_gb(split.capacity_bytes)}"
    picture = _bar(split, values, where, scale)
    return Frame(picture, _numbers(split), f"{title}: {formula}")


def formula_in_words(storage: ModelStorage, dtype: str) -> str:
    """Return the formula of a token with the numbers of a model.

    >>> from kvlab.arithmetic.reader import read_model
    >>> formula_in_words(read_model("llama-3.1-8b"), "bf16")
    '2 x 32 layers x 8 KV heads x 128 numbers x 2 bytes = 131,072 bytes a token.'
    """
    kind = cache_dtype(dtype)
    each = f"{kind.bits_per_element / 8:g} bytes"
    factors = uniform_factors(storage)
    if factors:
        layers, heads, dim = factors.values()
        total = layers * 2 * kind.bytes_for(heads * dim)
        words = f"2 x {layers} layers x {heads} KV heads x {dim} numbers x {each}"
        return f"{words} = {total:,} bytes a token."
    parts = []
    for group in storage.groups:
        window = f", window {group.window:,}" if group.window else ""
        alike = " (no factor 2)" if group.kind == LATENT else ""
        parts.append(f"{group.count} {group.kind}{alike}{window}: {group.elements_per_token:,}")
    return (
        f"its layers differ, so no slider fits. Numbers a token adds to each: {'; '.join(parts)}."
    )


def read_guess(text: str) -> int | None:
    """Return a guess such as "20 GB" in bytes; a bare number counts GB; None if it can't be read.

    >>> read_guess("20 GiB"), read_guess("3"), read_guess("many")
    (21474836480, 3000000000, None)
    """
    typed = read_typed(text)
    if not isinstance(typed, Typed):
        return None
    units = [unit for unit in read_unit(typed.unit or "GB") if unit.family == "bytes"]
    if not units or not typed.readings[0] > 0:
        return None
    return int(min(typed.readings[0] * units[0].factor, Decimal(10**15)))


def _numbers(split: MemorySplit) -> dict[str, str]:
    known = split.weights_bytes > 0
    return {
        "one token": format_bytes(split.bytes_per_token),
        "one user": format_bytes(split.request_bytes),
        "all users": format_bytes(split.cache_bytes),
        "weights": format_bytes(split.weights_bytes) if known else "not given",
        "cache = weights at": f"{split.users_at_weights:,.2f} users" if known else "not known",
        "users that fit": f"{split.users_that_fit:,}{'' if known else ', without weights'}",
    }


def _bar(split: MemorySplit, values: Mapping[str, Any], where: str, scale: float) -> Picture:
    both = f"{split.cache_bytes / GB:,.1f} GB = {split.cache_bytes / GIB:,.1f} GiB"
    users = f"{values['users']:,} x {values['context']:,} tokens"
    overhead = Segment("overhead", split.overhead_bytes, "free", _gb(split.overhead_bytes), True)
    segments = [
        Segment("weights", split.weights_bytes, "weights", _gb(split.weights_bytes)),
        Segment(users, split.cache_bytes, "value", both),
    ]
    if split.free_bytes > 0:
        more = split.users_that_fit - split.users
        name = f"room for {more:,} more" if more else "free"
        segments.append(Segment(name, split.free_bytes, "free", _gb(split.free_bytes)))
    segments.append(overhead)
    end = max(split.capacity_bytes, sum(segment.num_bytes for segment in segments))
    markers = []
    if 0 < 2 * split.weights_bytes <= end:
        said = f"cache = weights at {split.users_at_weights:,.2f} users"
        markers.append(Marker(said, 2 * split.weights_bytes))
    guessed = read_guess(values["guess"])
    ghost = Marker(f"guess: {values['guess'].strip()[:24]}", guessed) if guessed else None
    return memory_bar(
        segments,
        capacity=split.capacity_bytes,
        title="Where the memory goes",
        reading=READING,
        caption=where,
        markers=markers,
        guess=ghost,
        guess_start=split.weights_bytes,
        scale=scale,
    )


def _gb(num_bytes: int) -> str:
    return f"{num_bytes / GB:,.1f} GB"
