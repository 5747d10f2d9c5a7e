"""What claims, questions and checks of chapter 05 need: shared heads, twins, ranks and latents."""

from collections.abc import Callable
from typing import Any

from kvlab.arithmetic.catalogue import find_model
from kvlab.arithmetic.head_sharing import catalogue_sharing
from kvlab.arithmetic.plan_dense import read_weights
from kvlab.arithmetic.plan_pooled import assumption_steps
from kvlab.arithmetic.reader import read_model
from kvlab.arithmetic.request import size_request
from kvlab.arithmetic.sizing import plan

GB = 10**9


def _twin(model: str, kv_heads: int) -> dict[str, Any]:
    """The config of a Llama with another number of KV heads."""
    return {**find_model(model).config, "num_key_value_heads": kv_heads}


def parameters_saved(model: str) -> int:
    """Return how many parameters fewer a Llama has than its twin with a KV head a query head.

    >>> parameters_saved("llama-3.1-8b")
    805306368
    """
    config = find_model(model).config
    most = read_weights(_twin(model, int(config["num_attention_heads"]))).parameters
    own = read_weights(dict(config)).parameters
    assert most is not None and own is not None, "a Llama's parameters can be counted"
    return most - own


def percent_of_mha_parameters_saved(model: str) -> float:
    """Return the same as a share of the twin's parameters, in percent."""
    saved = parameters_saved(model)
    return 100 * saved / (saved + (find_model(model).parameters or 0))


def sessions_pooled_and_by_rank(kv_heads: int, context: int) -> list[int]:
    """Return the whole sessions of a 70B shape on eight nominal 80 GB cards: pooled, and by rank.

    Nothing is reserved, and the weights are those of the model with 8 KV heads.

    >>> sessions_pooled_and_by_rank(1, 131_072)
    [92, 11]
    """
    name = "llama-3.1-70b"
    box: dict[str, Any] = {"gpu_bytes": 80 * GB, "gpus": 8, "context": context, "utilization": 1}
    made = plan(_twin(name, kv_heads), parameters=find_model(name).parameters, **box)
    steps = assumption_steps(made)
    return [int(steps[0].concurrency), int(steps[-1].concurrency)]


def sessions_by_rank(kv_heads: int, context: int) -> int:
    """Return the second of these numbers alone."""
    return sessions_pooled_and_by_rank(kv_heads, context)[1]


def session_gb(kv_heads: int, context: int) -> float:
    """Return the GB of a session of a 70B shape with so many KV heads, cache in 16 bit."""
    made = read_model(_twin("llama-3.1-70b", kv_heads))
    return size_request(made, context=context).request_bytes / GB


def queries_on_a_kv_head(models: list[str]) -> list[float]:
    """Return the query heads on one KV head of models of the catalogue.

    >>> queries_on_a_kv_head(["falcon-7b", "falcon-40b"])
    [71, 16]
    """
    found = {row.name: row.queries_per_kv_head or 0 for row in catalogue_sharing()}
    shared = [found[find_model(model).id] for model in models]
    return [int(value) if value == int(value) else value for value in shared]


def heads_of(models: list[str]) -> list[int]:
    """Return query heads and most KV heads of each model, one after the other."""
    found = {row.name: row for row in catalogue_sharing()}
    rows = [found[find_model(model).id] for model in models]
    return [n for row in rows for n in (row.num_heads, row.kv_heads[0])]


def cut_percent(model: str, before: str, bits: int) -> float:
    """Return by how many percent a token of `model` in so many bits is less than one of `before`.

    `before` is counted in 16 bit.

    >>> round(cut_percent("deepseek-v2", "deepseek-llm-67b-base", 16), 1)
    82.2
    """
    new, old = (read_model(name).elements_per_token for name in (model, before))
    return 100 * (1 - new * bits / (old * 16))


def latent_in_kv_heads(latent: int, rope: int, head_dim: int) -> float:
    """Return how many KV heads take as many numbers as a latent and its RoPE key.

    >>> latent_in_kv_heads(512, 64, 128)
    2.25
    """
    return (latent + rope) / (2 * head_dim)


def kv_projection_parameters(hidden: int, kv_heads: int, head_dim: int, layers: int = 1) -> int:
    """Return the parameters of the key and value projections, without biases."""
    return 2 * layers * hidden * kv_heads * head_dim


ALL: tuple[Callable[..., Any], ...] = (
    parameters_saved,
    percent_of_mha_parameters_saved,
    sessions_pooled_and_by_rank,
    sessions_by_rank,
    session_gb,
    queries_on_a_kv_head,
    heads_of,
    cut_percent,
    latent_in_kv_heads,
    kv_projection_parameters,
)
