"""Row decode-lowbit: one stream with fewer bits a weight, beside transformers and llama.cpp."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvlab.bench.gguf_q8 import write_q8
from kvlab.bench.limits import mean_context, seconds_to_read
from kvlab.bench.lines import Line, compared, joined
from kvlab.bench.ours import OurDecoder, read_bandwidths
from kvlab.bench.rates import Reader
from kvlab.bench.rows_decode import MS, decode_side_by_side
from kvlab.bench.setting import Setting, reason
from kvlab.bench.timing import Times, Work, interleaved

if TYPE_CHECKING:
    from kvlab.model.load import LoadedModel


def rows(setting: Setting) -> Iterator[Line]:
    """Yield bfloat16 beside transformers, then our narrowest weights beside llama.cpp's."""
    from kvlab.model.device import cpu_has_bf16

    has = cpu_has_bf16()
    words = "bfloat16" if has else "bfloat16, on a processor without bf16 instructions"
    loaded = setting.loaded("bfloat16")
    yield from decode_side_by_side(setting, loaded, "decode-lowbit", words, rounds=2)
    yield from llama_cpp_lines(setting)


def llama_cpp_lines(setting: Setting) -> Iterator[Line]:
    """Yield ours beside llama.cpp with Q4_1 and Q8_0 weights; without it, lines that say so."""
    names = ("Q4_1", "Q8_0")
    works = {n: f"decode-lowbit: beside llama.cpp {n}, {_answer(setting)}" for n in names}
    why = llama_cpp_absent()
    if why:
        yield from (Line(work, unit=MS, note=why) for work in works.values())
        return
    with tempfile.TemporaryDirectory(prefix="kvlab-") as folder:
        for name in names:
            try:
                yield _beside(setting, works[name], name, Path(folder))
            except Exception as error:  # an engine that does not start is a note
                yield Line(works[name], unit=MS, note=f"llama.cpp: {reason(error)}")


def llama_cpp_absent() -> str:
    """Return why llama.cpp can't be measured here, "" where it can.

    >>> isinstance(llama_cpp_absent(), str)
    True
    """
    from importlib.util import find_spec

    if find_spec("kvlab.serving.engines") is None:
        return "llama.cpp: this package starts no engines"
    from kvlab.serving.engines.environments import find_environment

    if find_environment("llamacpp") is None:
        return "llama.cpp is not installed beside the course: not measured"
    return ""


def _answer(setting: Setting) -> str:
    return f"{setting.prompt_tokens} + {setting.new_tokens} tokens"


def _beside(setting: Setting, work: str, name: str, folder: Path) -> Line:
    """Measure ours and one form of llama.cpp's weights in the same rounds, with equal threads."""
    import torch

    from kvlab.model.sample_text import sample_ids
    from kvlab.serving.engines.llamacpp import LlamaCppPlan
    from kvlab.serving.engines.models import gguf_file
    from kvlab.serving.engines.running import start

    loaded = setting.loaded()
    prompt, new = setting.prompt_tokens, setting.new_tokens
    ids = sample_ids(loaded, prompt)
    file = gguf_file("smollm2")
    model = "smollm2" if name == "Q4_1" else str(write_q8(file, folder / "q8.gguf"))
    read = file.stat().st_size if name == "Q4_1" else Path(model).stat().st_size
    plan = LlamaCppPlan(model=model, context=1024, threads=torch.get_num_threads())
    ours = OurDecoder(loaded, max_seq_len=prompt + new)
    reader = Reader(max(read, ours.weight_bytes()))
    with start(plan, progress=False) as engine:
        works: dict[str, Work] = {
            "ours": lambda: ours.write(ids, new).step_seconds,
            f"llama.cpp {name}": lambda: _step_seconds(engine, ids[0].tolist(), new),
            "read": reader,
        }
        setting.say(f"decode-lowbit: ours, llama.cpp {name}")
        times = interleaved(works, setting.times(3))
    peer = times[f"llama.cpp {name}"]
    bandwidth = max([reader.rate(times["read"]), *read_bandwidths()])
    note = gap(loaded, ours, read, peer, bandwidth, mean_context(prompt, new), name)
    own = ours.weight_bytes() + ours.cache_bytes_per_token() * mean_context(prompt, new)
    limit = 1000 * seconds_to_read(own, bandwidth)
    peers = {f"llama.cpp {name}": peer}
    return compared(work, MS, times["ours"], peers, scale=1000, limit=limit, note=note)


def gap(
    loaded: LoadedModel,
    ours: OurDecoder,
    file_bytes: int,
    peer: Times,
    bandwidth: float,
    context: float,
    name: str,
) -> str:
    """Return in words what the two read at a step, and how near the peer is to its own limit."""
    mine = ours.weight_bytes() / 1e6
    cache = ours.cache_bytes_per_token() * context / 1e6
    theirs = (file_bytes + ours.cache_bytes_per_token() * context / 2) / 1e6
    reached = seconds_to_read(1e6 * theirs, bandwidth) / peer.median
    return joined([
        f"ours ({ours.name}) reads {mine:,.0f} MB of weights and {cache:,.0f} MB of cache a step",
        f"llama.cpp {name} {theirs:,.0f} MB, its cache in 16 bits, {reached:.0%} of its own limit",
        "it multiplies in 8-bit integers, ours in float32",
    ])  # fmt: skip


def _step_seconds(engine: Any, ids: list[int], new: int) -> float:
    """Return the seconds of a token as llama.cpp itself took them; else as its client saw them."""
    from kvlab.serving.request import prompt

    load = engine.send([prompt(0, ids, new)], remap=False, watch_every=60.0)
    answer = load.answers[0]
    told = answer.timings.get("predicted_per_token_ms")
    if told:
        return float(told) / 1000
    if answer.tpot is None:
        raise RuntimeError(answer.error or "llama.cpp wrote too few tokens")
    return float(answer.tpot)
