"""Which way to take a decode step and a long prompt: measured once a machine and model, then kept.

What is kept is a small JSON file beside the compiled code. If it is lost, damaged or can't be
written, one measures again: a second, nothing else.
"""

import json
import os
import sys
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from time import perf_counter

import torch
from torch import Tensor

from kvlab.cache import make_cache
from kvlab.errors import Unsupported
from kvlab.model.config import LlamaConfig
from kvlab.model.fast_compile import fast_dir, library, machine_key
from kvlab.model.fast_weights import why_not
from kvlab.model.llama import Llama

Step = Callable[[], Tensor]
"""One pass with the same tokens each time: logits, (1, 1, vocab_size)."""

SMALL = 2**20  # numbers in the head; below it no path is measured
ROUNDS = 7
PROMPT, PROMPT_ROUNDS = 128, 3
MOST_ERROR = 1e-3  # of the largest logit: a way that computes something else is no way


_said: set[str] = set()


def choices_file() -> Path:
    """Return the file of remembered choices; it need not exist."""
    return fast_dir() / "choices.json"


def choice_key(config: LlamaConfig, device: torch.device) -> str:
    """Return the name under which a choice is kept: machine, torch, threads, device and sizes.

    >>> config = LlamaConfig(num_layers=2, num_heads=4, num_kv_heads=2, head_dim=8, hidden_size=32,
    ...                      intermediate_size=64, vocab_size=100, max_seq_len=128)
    >>> choice_key(config, torch.device("cpu")).endswith(" cpu 2x32x64x100")
    True
    """
    sizes = (config.num_layers, config.hidden_size, config.intermediate_size, config.vocab_size)
    threads = torch.get_num_threads()
    return f"{machine_key()} {threads} threads {device.type} {'x'.join(map(str, sizes))}"


def choose_path(
    llama: Llama, paths: Sequence[str], make: Callable[[str], Callable[..., Tensor]]
) -> str:
    """Return the fastest of `paths` that can be taken here; the first is the plain one.

    `make` gives the model that takes a path. Why there is none but the plain one is said once.
    """
    config, weight = llama.config, llama.lm_head.weight
    try:
        reason = why_not(llama) if weight.device.type == "cpu" else None
        if reason is not None:
            raise Unsupported(f"fast path: on a CPU it {reason}")
        if weight.device.type == "cpu":
            library()
    except Unsupported as reason:
        _say_once(f"{reason}; the model runs as it does elsewhere")
        return paths[0]
    if config.vocab_size * config.hidden_size < SMALL:
        return paths[1]  # not worth measuring: what takes the time is the calls
    key = choice_key(config, weight.device)
    found = remembered(key, paths)
    return found or choose(key, {path: _step_of(llama, make(path)) for path in paths})


def choose_prefill(
    llama: Llama, path: str, ways: Sequence[str], make: Callable[[str], Callable[..., Tensor]]
) -> str:
    """Return which of `ways` takes a long prompt soonest on `path`; a small model's is the last.

    `make` gives the model that takes a way.
    """
    config = llama.config
    if config.vocab_size * config.hidden_size < SMALL:
        return ways[-1]
    key = f"{choice_key(config, llama.lm_head.weight.device)} {path} prefill"
    if found := remembered(key, ways):
        return found
    return choose(key, {way: _step_of(llama, make(way), PROMPT) for way in ways}, PROMPT_ROUNDS)


def _step_of(llama: Llama, model: Callable[..., Tensor], new: int = 1) -> Step:
    """Return a pass of new tokens, the same each time, behind 32 tokens or as many as fit."""
    new = min(new, llama.config.max_seq_len)
    cache = make_cache("preallocated", num_layers=llama.config.num_layers, capacity=40 + new)
    held = min(32, llama.config.max_seq_len - new)
    device = llama.lm_head.weight.device
    ids = torch.arange(held + new, device=device)[None] % llama.config.vocab_size
    if held:
        model(ids[:, :held], cache=cache, last_token_only=True)

    def step() -> Tensor:
        logits = model(ids[:, held:], cache=cache, last_token_only=True)
        cache.drop_last(new)
        return logits

    return step


def remembered(key: str, among: Container[str]) -> str | None:
    """Return the way chosen earlier, if it is one of these; None where nothing usable is kept."""
    kept = _read().get(key)
    way = kept.get("path") if isinstance(kept, dict) else None
    return way if isinstance(way, str) and way in among else None


def choose(key: str, ways: Mapping[str, Step], rounds: int = ROUNDS) -> str:
    """Measure, remember and return the fastest way; the first one's logits are the right ones.

    Where those are no numbers nothing can be compared: it is the first way, and not remembered.
    """
    right = next(iter(ways.values()))()
    limit = MOST_ERROR * float(right.abs().max())
    same = {n: way for n, way in ways.items() if float((way() - right).abs().max()) <= limit}
    if not same:
        return next(iter(ways))
    seconds = time_in_turn(same, rounds)
    best = min(seconds, key=seconds.__getitem__)
    _remember(key, {"path": best, "ms": {n: round(1000 * s, 3) for n, s in seconds.items()}})
    return best


def time_in_turn(ways: Mapping[str, Step], rounds: int = ROUNDS) -> dict[str, float]:
    """Return the median seconds of each way; they take turns, so a slow moment meets all."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            started = perf_counter()
            int(way().argmax())  # the number on the CPU: a GPU is done by then
            times[name].append(perf_counter() - started)
    return {name: median(seconds) for name, seconds in times.items()}


def read_bandwidth(numbers: Tensor | None = None, *, rounds: int = 7) -> float:
    """Return the bytes a second that all threads together read from memory, the best of rounds.

    `numbers` is what is read, float32 and much larger than the processor's own memory; without it,
    half a GiB is made. Raises `Unsupported` where the C of the fast path can't be compiled.
    """
    read, threads = library().fast_read, torch.get_num_threads()
    numbers = torch.ones(2**27) if numbers is None else numbers
    times = []
    for _ in range(rounds):
        started = perf_counter()
        read(numbers.data_ptr(), numbers.numel(), threads)
        times.append(perf_counter() - started)
    return numbers.nbytes / min(times)


def _read() -> dict[str, object]:
    try:
        kept = json.loads(choices_file().read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return kept if isinstance(kept, dict) else {}


def _remember(key: str, choice: Mapping[str, object]) -> None:
    """Write a whole new file and rename it: a reader sees the old one or the new one."""
    path = choices_file()
    part = path.with_name(f".{os.getpid()}-{path.name}")
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(json.dumps(_read() | {key: choice}, indent=1), encoding="utf-8")
        part.replace(path)


def _say_once(line: str) -> None:
    if line not in _said:
        _said.add(line)
        print(line, file=sys.stderr, flush=True)
