"""The same rows on a GPU, where CUDA is there: decode beside its memory, prefill beside its units.

Written from the documentation and never run: we had no such machine. Each line says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kvlab.bench import peer_transformers as hf
from kvlab.bench.limits import decode_bytes, seconds_to_read
from kvlab.bench.lines import Line, compared, joined
from kvlab.bench.ours import OurDecoder
from kvlab.bench.rates import Reader, matrix_rate, multipliers
from kvlab.bench.setting import Setting
from kvlab.bench.timing import Work, interleaved

if TYPE_CHECKING:
    from kvlab.model.load import LoadedModel

UNTRIED = "written without such a GPU and never tried"
NO_GPU = "no CUDA device here: not measured"
BATCHES = (1, 64)


def decode_lines(setting: Setting) -> Iterator[Line]:
    """Yield decode on a GPU at batch 1 and 64; without one, a line that says so."""
    loaded = _loaded(setting)
    for batch in BATCHES:
        work = f"decode: GPU, batch {batch}, {setting.prompt_tokens} + {setting.new_tokens} tokens"
        if loaded is None:
            yield Line(work, unit="ms a step", note=NO_GPU)
        else:
            yield _decode_line(setting, loaded, work, batch)


def prefill_lines(setting: Setting) -> Iterator[Line]:
    """Yield prefill on a GPU; without one, a line that says so."""
    loaded, work = _loaded(setting), f"prefill: GPU, {setting.prompt_tokens} tokens"
    if loaded is None:
        yield Line(work, unit="ms", note=NO_GPU)
        return
    yield _prefill_line(setting, loaded, work)


def _loaded(setting: Setting) -> LoadedModel | None:
    import torch

    from kvlab.model.load import load_model

    return load_model(setting.model, device="cuda") if torch.cuda.is_available() else None


def _decode_line(setting: Setting, loaded: LoadedModel, work: str, batch: int) -> Line:
    from kvlab.model.sample_text import sample_ids

    prompt, new = setting.prompt_tokens, setting.new_tokens
    ids = sample_ids(loaded, prompt).repeat(batch, 1)
    ours = OurDecoder(loaded, max_seq_len=prompt + new, batch=batch)
    model = setting.peer(loaded)
    works: dict[str, Work] = {"ours": lambda: ours.write(ids, new).step_seconds}
    for way in hf.WAYS:
        works[f"transformers {way}"] = lambda way=way: (
            hf.generate(model, ids, new, way).step_seconds
        )
    reader = Reader(max(ours.weight_bytes(), 2**31), loaded.dtype, "cuda")
    times = interleaved(works | {"read": reader}, setting.times(3))
    per_token = ours.cache_bytes_per_token() * batch
    read = decode_bytes(ours.weight_bytes(), per_token, prompt_tokens=prompt, new_tokens=new)
    rate = reader.rate(times["read"])
    note = f"{ours.name}; limit: {read / 1e6:,.0f} MB a step at {rate / 1e9:,.0f} GB/s; {UNTRIED}"
    peers = {name: times[name] for name in works if name != "ours"}
    limit = 1000 * seconds_to_read(read, rate)
    return compared(work, "ms a step", times["ours"], peers, scale=1000, limit=limit, note=note)


def _prefill_line(setting: Setting, loaded: LoadedModel, work: str) -> Line:
    from kvlab.bench.rows_prefill import our_prefill, prefill_flops
    from kvlab.model.sample_text import sample_ids

    ids, model = sample_ids(loaded, setting.prompt_tokens), setting.peer(loaded)
    rates = multipliers(loaded.dtype, "cuda")
    works: dict[str, Work] = {
        "ours": our_prefill(loaded, setting.prompt_tokens),
        "transformers": lambda: hf.generate(model, ids, 1).prefill_seconds,
        **rates,
    }
    times = interleaved(works, setting.times(5))
    rate, flops = matrix_rate(rates, times), prefill_flops(loaded, setting.prompt_tokens)
    note = joined([f"limit: {flops / 1e9:,.0f} GFLOP at {rate / 1e12:.1f} TFLOP/s", UNTRIED])
    return compared(
        work, "ms", times["ours"], {"transformers": times["transformers"]},
        scale=1000, limit=1000 * flops / rate, note=note,
    )  # fmt: skip
