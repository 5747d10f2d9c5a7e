"""One request to an engine, its tokens as they come: one function for each engine's manner.

Prompts are token ids, so no tokenizer stands between a workload and the cache.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from kvlab.errors import InvalidArgument
from kvlab.serving.engines.endpoint import Endpoint
from kvlab.serving.engines.environments import LLAMACPP, VLLM
from kvlab.serving.request import Request


class Piece(NamedTuple):
    """What one event of a stream brings: tokens, text, and with the last one how it ended."""

    token_ids: list[int]
    text: str
    end_reason: str | None = None
    cached_tokens: int | None = None
    timings: Mapping[str, float] = {}


Client = Callable[[Endpoint, str, Request, float], Iterator[Piece]]


def ask_vllm(endpoint: Endpoint, model: str, request: Request, timeout: float) -> Iterator[Piece]:
    """Yield an answer of vLLM's OpenAI endpoint; token ids are an addition of its own."""
    how = request.sampling
    payload: dict[str, Any] = {
        "model": model,
        "prompt": prompt_ids(request),
        "max_tokens": request.output_tokens or request.max_new_tokens,
        "temperature": how.temperature,
        "seed": how.seed,
        "stream": True,
        "return_token_ids": True,
        "ignore_eos": True,
        "stop_token_ids": sorted(request.stop_ids),
        "cache_salt": request.salt,
        "priority": request.priority,
    }
    payload |= {"top_k": how.top_k} if how.top_k else {}
    payload |= {"top_p": how.top_p} if how.top_p else {}
    said = {key: value for key, value in payload.items() if value not in (None, [])}
    for event in endpoint.events("/v1/completions", said, timeout=timeout):
        if "error" in event:
            raise InvalidArgument("request", request.request_id, str(event["error"])[:300])
        for choice in event.get("choices", ()):
            ids = choice.get("token_ids") or []
            yield Piece(list(ids), choice.get("text") or "", choice.get("finish_reason"))


def ask_llamacpp(
    endpoint: Endpoint, model: str, request: Request, timeout: float
) -> Iterator[Piece]:
    """Yield an answer of llama.cpp's own endpoint, which says tokens and times."""
    how = request.sampling
    payload: dict[str, Any] = {
        "prompt": prompt_ids(request),
        "n_predict": request.output_tokens or request.max_new_tokens,
        "temperature": how.temperature,
        "seed": how.seed,
        "top_k": how.top_k or (1 if not how.temperature else 0),
        "top_p": how.top_p or 1.0,
        "stream": True,
        "return_tokens": True,
        "cache_prompt": True,
        "ignore_eos": not request.stop_ids,
    }
    for event in endpoint.events("/completion", payload, timeout=timeout):
        if "error" in event:
            raise InvalidArgument("request", request.request_id, str(event["error"])[:300])
        reason, timings = None, event.get("timings") or {}
        if event.get("stop"):
            reason = "length" if event.get("stop_type") == "limit" else "stop"
        cached = timings.get("cache_n")
        numbers = {k: float(v) for k, v in timings.items() if isinstance(v, int | float)}
        yield Piece(list(event.get("tokens") or []), event.get("content") or "", reason, cached,
                    numbers if reason else {})  # fmt: skip


CLIENTS: dict[str, Client] = {VLLM: ask_vllm, LLAMACPP: ask_llamacpp}


def prompt_ids(request: Request) -> list[int]:
    """Return the tokens of a prompt; raises `InvalidArgument` where only its length is known.

    >>> from kvlab.serving.request import prompt
    >>> prompt_ids(prompt(1, [5, 6], 4))
    [5, 6]
    """
    if request.prompt_ids is None:
        rule = f"request {request.request_id}: an engine needs the tokens; see with_real_ids"
        raise InvalidArgument("prompt_ids", None, rule)
    return list(request.prompt_ids)
