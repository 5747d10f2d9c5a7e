"""One road for every engine: from a run and a case to findings."""

from collections.abc import Callable, Iterable

from kvlab.arithmetic.logs.case import Case
from kvlab.arithmetic.logs.facts import Run
from kvlab.arithmetic.logs.finding import Finding
from kvlab.arithmetic.logs.predict_llama_cpp import predict_llama_cpp
from kvlab.arithmetic.logs.predict_others import (
    predict_published,
    predict_sglang,
    predict_tensorrt_llm,
)
from kvlab.arithmetic.logs.predict_vllm import predict_vllm

PREDICTORS: dict[str, Callable[[Run, Case], Iterable[Finding]]] = {
    "vllm": predict_vllm,
    "sglang": predict_sglang,
    "llama.cpp": predict_llama_cpp,
    "ollama": predict_llama_cpp,
    "tensorrt-llm": predict_tensorrt_llm,
    "published size": predict_published,
}


def predict(run: Run, case: Case) -> tuple[Finding, ...]:
    """Return one finding for each printed number that follows from the case and the others.

    What several ranks say alike counts once.
    Raises `InvalidArgument` or `Unsupported` for a case that the engine itself would refuse.
    """
    kept: dict[tuple[str, str, float, float], Finding] = {}
    for found in PREDICTORS[run.engine](run, case):
        key = found.quantity, found.fact.printed, found.fact.number, found.estimate.value
        kept.setdefault(key, found)
    return tuple(kept.values())
