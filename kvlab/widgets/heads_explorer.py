"""From one KV head a query head to one for all: drag the number of KV heads of a real model."""

from functools import lru_cache

import ipywidgets as widgets

from kvlab.arithmetic.catalogue import find_model
from kvlab.arithmetic.head_sharing import kv_head_choices, sharing_kind
from kvlab.arithmetic.plan_dense import read_weights
from kvlab.arithmetic.reader import read_model
from kvlab.arithmetic.request import size_request
from kvlab.arithmetic.storage import ModelStorage
from kvlab.arithmetic.units import format_bytes
from kvlab.figures.comparison import Bar
from kvlab.figures.head_groups import head_groups
from kvlab.widgets.base import Frame
from kvlab.widgets.controls import button, dropdown, powers
from kvlab.widgets.follows_model import FollowsModel

MODELS = ("smollm2", "tinyllama-1.1b-chat-v1.0", "llama-3.1-8b", "llama-3.1-70b", "llama-3.1-405b")
RANKS = 8
_READING = "A cell is one vector of one token. Dashed: with a KV head for each query head."


@lru_cache(maxsize=64)
def twin(model: str, num_kv_heads: int) -> tuple[ModelStorage, int]:
    """Return the stores and the parameters of a Llama that differs in nothing but its KV heads.

    >>> twin("llama-3.1-8b", 32)[1] - twin("llama-3.1-8b", 8)[1]
    805306368
    """
    config = {**find_model(model).config, "num_key_value_heads": num_kv_heads}
    return read_model(config), read_weights(config).parameters or 0


@lru_cache(maxsize=64)
def _as_made(model: str) -> ModelStorage:
    """Return the stores of a model as it was made; its config is read once."""
    return read_model(model)


def own_kv_heads(model: str) -> int:
    """Return the KV heads that a model was made with.

    >>> own_kv_heads("llama-3.1-70b")
    8
    """
    return _as_made(model).max_kv_heads()


def query_heads(model: str) -> int:
    """Return the query heads of a model.

    >>> query_heads("llama-3.1-70b")
    64
    """
    return _as_made(model).num_heads or 0


def heads_frame(model: str, num_kv_heads: int, context: int, *, scale: float = 1.0) -> Frame:
    """Return the grouping of a model's heads, and what follows for bytes and weights.

    >>> heads_frame("llama-3.1-70b", 1, 8192).readout["a token"]
    '40.00 KiB (40.96 kB)'
    """
    queries, name = query_heads(model), find_model(model).id.rsplit("/", 1)[-1]
    (made, weights), (most, most_weights) = (twin(model, n) for n in (num_kv_heads, queries))
    token, full = (size_request(stores, context=1).request_bytes for stores in (made, most))
    readout = {
        "kind": sharing_kind(queries, num_kv_heads),
        "query heads on a KV head": f"{queries // num_kv_heads}",
        "a token": format_bytes(token),
        f"{context:,} tokens": format_bytes(size_request(made, context=context).request_bytes),
        "parameters": f"{weights:,}",
        "fewer than with MHA": f"{most_weights - weights:,}",
    } | _on_ranks(made)
    words = f"{token / 1024:,.5g} of {full / 1024:,.5g} KiB"
    bars = [Bar("cache, a token", token, words, "value", ghost=full)]
    words = f"{weights / 1e9:,.2f} of {most_weights / 1e9:,.2f} x 10^9"
    bars.append(Bar("all parameters", weights, words, "weights", ghost=most_weights))
    changed = "" if num_kv_heads == own_kv_heads(model) else ", changed"
    picture = head_groups(
        queries,
        num_kv_heads,
        bars=bars,
        title=f"One layer of {name}{changed}",
        reading=_READING,
        scale=scale,
    )
    return Frame(picture, readout, _event(name, queries, num_kv_heads))


def _on_ranks(made: ModelStorage) -> dict[str, str]:
    """The bytes of a token on each of eight ranks, where eight divides the query heads."""
    if not made.num_heads or made.num_heads % RANKS:
        return {}
    size = size_request(made, context=1, tp=RANKS).bytes_per_token_per_rank
    return {f"a token on each of {RANKS} GPUs": format_bytes(size)}


def _event(name: str, queries: int, num_kv_heads: int) -> str:
    """What is drawn, in words."""
    shared = queries // num_kv_heads
    heads = f"{num_kv_heads} KV head" + ("s" if num_kv_heads > 1 else "")
    each = "one for each query head" if shared == 1 else f"{shared} query heads read the same one"
    return f"{name} with {heads}: {each}. Cache in 16 bit, payload."


class HeadsExplorer(FollowsModel):
    """The explorer; another model brings its own numbers of KV heads."""

    def __init__(self, model: str, context: int, *, scale: float = 1.0) -> None:
        self._shown_model = model
        heads = widgets.SelectionSlider(
            options=_choices(model),
            value=own_kv_heads(model),
            description="KV heads",
            style={"description_width": "initial"},
            layout=widgets.Layout(width="380px"),
        )
        names = tuple((find_model(name).id.rsplit("/", 1)[-1], name) for name in MODELS)
        controls: dict[str, widgets.Widget] = {
            "model": dropdown("model", names, model),
            "num_kv_heads": heads,
            "context": powers("context, tokens", context, 1, 2**17, width="300px"),
        }
        home = button("back to the example", self.reset)

        def draw(**values: object) -> Frame:
            return heads_frame(**values, scale=scale)  # type: ignore[arg-type]

        super().__init__(controls, draw, kind="heads-explorer", extras=[home])

    def heads_of(self, model: str) -> tuple[list[tuple[str, int]], object]:
        """Return the numbers of KV heads that a model's query heads allow, and its own."""
        return _choices(model), own_kv_heads(model)


def _choices(model: str) -> list[tuple[str, int]]:
    return [(f"{n}", n) for n in kv_head_choices(query_heads(model))]


def heads_explorer(
    model: str = "llama-3.1-70b", *, context: int = 8192, scale: float = 1.0
) -> HeadsExplorer:
    """Return the explorer; controls are `model`, `num_kv_heads` and `context`.

    >>> show = heads_explorer()
    >>> show.controls["num_kv_heads"].value = 64
    >>> show.numbers["a token"], show.numbers["kind"]
    ('2.50 MiB (2.62 MB)', 'MHA')
    """
    return HeadsExplorer(model, context, scale=scale)
