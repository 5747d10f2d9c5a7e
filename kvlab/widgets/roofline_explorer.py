"""Prefill and decode of any model on any device: what they wait for, and what a step moves."""

from functools import cache, lru_cache

import ipywidgets as widgets

from kvlab.arithmetic.catalogue import load_models
from kvlab.arithmetic.gpus import find_gpu, load_gpus
from kvlab.arithmetic.plan_deployment import Deployment
from kvlab.arithmetic.roofline import Device, PassTime, time_decode, time_prefill
from kvlab.arithmetic.roofline_work import decode_work
from kvlab.arithmetic.units import format_bytes
from kvlab.errors import InvalidArgument, KvlabError
from kvlab.figures.roofline import Dot, Roof, roofline
from kvlab.figures.svg import Picture
from kvlab.widgets.base import Explorer, Frame
from kvlab.widgets.controls import button, dropdown, powers

THIS_MACHINE = "this machine"
MAX_TOKENS, MAX_BATCH = 2**17, 2**10
_WAITS = {"compute": "arithmetic", "memory": "memory"}


@lru_cache(maxsize=256)
def deployment(model: str, dtype: str) -> Deployment:
    """Return a model of the catalogue on one device, weights and cache in one dtype."""
    return Deployment.of(model, weights_dtype=dtype, cache_dtype=dtype)


@cache
def model_choices() -> tuple[tuple[str, str], ...]:
    """Return the models of the catalogue that can be timed, as (short name, id)."""
    found = []
    for row in load_models():
        try:
            time_decode(deployment(row.id, "bf16"), Device("any", 1.0, 1.0), context=1)
        except KvlabError:
            continue
        found.append((row.id.rsplit("/", 1)[-1], row.id))
    return tuple(found)


def device_choices() -> tuple[str, ...]:
    """Return this machine and every GPU of the catalogue with a 16-bit matrix rate."""
    return (THIS_MACHINE, *(gpu.name for gpu in load_gpus() if gpu.matrix_tflops))


def roofline_frame(
    model: str,
    device: str,
    context: int,
    batch: int,
    *,
    measured: tuple[Device, str] | None = None,
    scale: float = 1.0,
) -> Frame:
    """Return the times, what each phase waits for, and the roofline.

    A request's prompt and its cache at the step shown are both `context` tokens. `measured` is
    this machine and the dtype it was measured with; all others compute in bf16.

    >>> frame = roofline_frame("llama-3.1-8b", "H100", 8192, 16)
    >>> frame.readout["cache overtakes weights at"], frame.readout["decode waits for"]
    ('15 requests of 8,192', 'memory')
    """
    chosen, dtype = _device(device, measured)
    one = deployment(model, dtype)
    reading = time_prefill(one, chosen, prompt_tokens=context)
    writing = time_decode(one, chosen, context=context, batch=batch)
    numbers = _numbers(one, context, reading, writing) | _overtakes(one, context)
    name = one.model.name or model
    numbers |= _fits(one, device, context, batch)
    event = (
        f"{name}, {dtype}, on {chosen.name}: least times, all weights counted, launches left out."
    )
    return Frame(_picture(reading, writing, chosen, context, batch, scale), numbers, event)


def _device(name: str, measured: tuple[Device, str] | None) -> tuple[Device, str]:
    if name != THIS_MACHINE:
        return Device.of(name), "bf16"
    if measured is None:
        rule = "was not measured: give roofline_explorer the result of measure_device()"
        raise InvalidArgument("device", name, rule)
    return measured


def _numbers(one: Deployment, context: int, reading: PassTime, writing: PassTime) -> dict[str, str]:
    (work,) = writing.stages
    return {
        "TTFT, prompt alone": _seconds(reading.seconds),
        "prefill waits for": _WAITS[reading.bound],
        "TPOT, whole batch": _seconds(writing.seconds),
        "decode waits for": _WAITS[writing.bound],
        "decode stops climbing near": _ceiling(one, context),
        "throughput": f"{writing.tokens_per_second:,.0f} tokens/s",
        "weights moved a step": format_bytes(work.weight_bytes),
        "cache moved a step": format_bytes(work.cache_bytes),
    }


def _ceiling(one: Deployment, context: int) -> str:
    """FLOPs a byte of a step whose batch is so large that its weights no longer count."""
    small, large = (decode_work(one, context, batch=2**n)[0] for n in (24, 25))
    moved = large.bytes - small.bytes
    return f"{(large.flops - small.flops) / moved:,.3g} FLOPs a byte" if moved else "nowhere"


def _overtakes(one: Deployment, context: int) -> dict[str, str]:
    """The first batch whose step moves more cache than weights, by bisection."""

    def more_cache(batch: int) -> bool:
        (work,) = time_decode(one, Device("any", 1.0, 1.0), context=context, batch=batch).stages
        return work.cache_bytes > work.weight_bytes

    low, high = 0, 1
    while high < 2**24 and not more_cache(high):
        low, high = high, 2 * high
    if high >= 2**24:
        return {"cache overtakes weights at": "no batch"}
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if more_cache(middle) else (middle, high)
    words = f"{high:,} request{'' if high == 1 else 's'} of {context:,}"
    return {"cache overtakes weights at": words}


def _fits(one: Deployment, device: str, context: int, batch: int) -> dict[str, str]:
    if device == THIS_MACHINE:
        return {}
    needed = sum(one.weight_bytes) + one.request(context, batch).request_bytes
    room = find_gpu(device).driver_bytes
    words = "fits" if needed <= room else "does not fit: times as if it did"
    return {"weights and cache": f"{needed / 1e9:,.1f} of {room / 1e9:,.1f} GB: {words}"}


def _seconds(seconds: float) -> str:
    return f"{seconds:,.2f} s" if seconds >= 1 else f"{1000 * seconds:,.2f} ms"


def _picture(
    reading: PassTime, writing: PassTime, device: Device, context: int, batch: int, scale: float
) -> Picture:
    dots = [
        Dot(f"prefill, {context:,}", reading.stages[0].intensity, None, "query", "P"),
        Dot(f"decode, batch {batch:,}", writing.stages[0].intensity, None, "value", "D"),
    ]
    (work,) = writing.stages
    moved = [(n, format_bytes(n)) for n in (work.weight_bytes, work.cache_bytes)]
    return roofline(
        Roof(device.name, device.flops_per_second, device.bytes_per_second),
        dots,
        title=f"Roofline of {device.name}",
        reading="Left of the ridge a pass waits for memory, right of it for arithmetic.",
        width=620,
        height=220,
        traffic=(moved[0], moved[1]),
        scale=scale,
    )


def roofline_explorer(
    model: str = "meta-llama/Llama-3.1-8B",
    *,
    device: str = "H100 SXM5",
    context: int = 8192,
    batch: int = 16,
    measured: tuple[Device, str] | None = None,
    scale: float = 1.0,
) -> Explorer:
    """Return the explorer; controls are `model`, `device`, `context` and `batch`.

    >>> show = roofline_explorer()
    >>> show.controls["batch"].value = 512
    >>> show.numbers["decode waits for"]
    'memory'
    """
    devices = device_choices() if measured else device_choices()[1:]
    controls: dict[str, widgets.Widget] = {
        "model": dropdown("model", model_choices(), model),
        "device": dropdown("device", devices, device),
        "context": powers("context, tokens", context, 1, MAX_TOKENS, width="300px"),
        "batch": powers("batch, requests", batch, 1, MAX_BATCH, width="300px"),
    }

    def draw(**values: object) -> Frame:
        return roofline_frame(**values, measured=measured, scale=scale)  # type: ignore[arg-type]

    home = button("back to the example", lambda: show.reset())
    show = Explorer(controls, draw, kind="roofline-explorer", extras=[home], beside=True)
    return show
