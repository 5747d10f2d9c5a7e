"""Formulas with one thing wrong, by name: what many calculators print, and what it is mistaken for.

Each takes a case and returns the case with its one mistake; predicting from that case gives the
number that the mistake gives. So a mistake is our own formula less one thing.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from kvlab.arithmetic.logs.case import Case
from kvlab.arithmetic.logs.pools import pools_of
from kvlab.arithmetic.logs.vllm_views import full_everywhere
from kvlab.arithmetic.storage import FULL, GROWING, LATENT, STATE, LayerStorage, ModelStorage

Change = Callable[[LayerStorage], LayerStorage]


@dataclass(frozen=True, slots=True)
class NaiveFormula:
    """A formula with one thing wrong; `says` completes "the number of a formula that ..."."""

    name: str
    says: str
    apply: Callable[[Case], Case]


def query_heads_instead_of_kv_heads(case: Case) -> Case:
    """One K and V for each query head, as without grouped-query attention."""
    queries = case.model.num_heads if case.model else None
    if not queries:
        return case
    return _each_layer(case, lambda x: replace(x, num_kv_heads=queries))


def head_dim_from_hidden_size(case: Case) -> Case:
    """A head as wide as hidden_size / num_heads, though the config says head_dim."""
    model = case.model
    if model is None or not model.hidden_size or not model.num_heads:
        return case
    width = model.hidden_size // model.num_heads
    return _each_layer(case, lambda x: replace(x, k_dim=width, v_dim=width))


def forgot_factor_two(case: Case) -> Case:
    """Keys without values."""
    return _each_layer(case, lambda x: replace(x, v_dim=0)).setting(equal_widths=False)


def doubled_kv_heads(case: Case) -> Case:
    """Twice the KV heads: of a checkpoint that stores each head twice, or a factor 2 too many."""
    return _each_layer(case, lambda x: replace(x, num_kv_heads=2 * x.num_kv_heads))


def ignored_tp(case: Case) -> Case:
    """The whole cache on every rank."""
    return case.setting(tp=1)


def divided_heads_below_one(case: Case) -> Case:
    """KV heads / tp even where that is less than one head: no rank keeps half a head."""
    tp = case.settings.tp

    def split(layer: LayerStorage) -> LayerStorage:
        heads = layer.num_kv_heads
        if heads >= tp or layer.kind == LATENT:
            return layer
        k_dim, v_dim = layer.k_dim * heads // tp, layer.v_dim * heads // tp
        return replace(layer, k_dim=k_dim, v_dim=v_dim)

    return _each_layer(case, split)


def divided_latent_by_tp(case: Case) -> Case:
    """A latent spread over the ranks: it serves all heads, so each rank keeps it whole."""
    tp = case.settings.tp

    def split(layer: LayerStorage) -> LayerStorage:
        if layer.kind != LATENT:
            return layer
        return replace(layer, k_dim=layer.k_dim // tp, v_dim=layer.v_dim // tp)

    return _each_layer(case, split)


def heads_of_a_latent_model(case: Case) -> Case:
    """K and V of every head, 64 wide, as the config of a latent-attention model seems to say."""
    heads = case.model.num_heads if case.model else None

    def expand(layer: LayerStorage) -> LayerStorage:
        if layer.kind != LATENT or not heads:
            return layer
        return replace(layer, kind=FULL, num_kv_heads=heads, k_dim=layer.v_dim)

    return _each_layer(case, expand)


def every_layer_full(case: Case) -> Case:
    """Every layer keeps every token: windows are ignored."""
    return case.remodelled(full_everywhere)


def every_layer_attends(case: Case) -> Case:
    """Layers with a fixed state are charged as attention layers."""
    model = case.model
    attention = next((x for x in model.layers if x.kind in GROWING), None) if model else None
    if model is None or attention is None:
        return case
    layers = tuple(
        replace(attention, index=x.index) if x.kind == STATE else x for x in model.layers
    )
    return replace(case, model=replace(model, layers=layers))


def tokens_over_length(case: Case) -> Case:
    """Concurrency as tokens / length, though windowed layers and states need less or else."""
    return case.setting(every_request_alike=True)


def cross_attention_at_source_length(case: Case, frames: int = 1500) -> Case:
    """Cross-attention charged at one source's positions, not at the engine's encoder budget."""
    return case.setting(source_length=frames)


def values_as_they_are(case: Case) -> Case:
    """Values at their own width in an engine that gives them rows as wide as keys."""
    return case.setting(equal_widths=False)


def _each_layer(case: Case, change: Change) -> Case:
    def changed(model: ModelStorage) -> ModelStorage:
        layers = tuple(change(x) if x.kind in GROWING else x for x in model.layers)
        return replace(model, layers=layers)

    return case.remodelled(changed)


_FORMULAS = (
    (query_heads_instead_of_kv_heads, "counts query heads instead of KV heads"),
    (head_dim_from_hidden_size, "takes hidden_size / num_heads for head_dim"),
    (forgot_factor_two, "counts keys and forgets values"),
    (doubled_kv_heads, "counts every KV head twice"),
    (ignored_tp, "does not divide the heads by tp"),
    (divided_heads_below_one, "lets a rank keep a part of a KV head"),
    (divided_latent_by_tp, "divides the latent by tp"),
    (heads_of_a_latent_model, "expands the latent to K and V of every head"),
    (every_layer_full, "ignores the windows"),
    (every_layer_attends, "charges states as if they were attention layers"),
    (tokens_over_length, "divides tokens by the length of a request"),
    (cross_attention_at_source_length, "charges cross-attention at 1,500 source positions"),
    (values_as_they_are, "keeps values narrower than keys"),
)
NAIVE = {f.__name__: NaiveFormula(f.__name__, says, f) for f, says in _FORMULAS}
"""Name -> formula."""


def naive_case(name: str, case: Case) -> Case:
    """Return the case as the formula called `name` sees it."""
    return NAIVE[name].apply(case)


def bytes_per_token(case: Case) -> int:
    """Return the bytes of one token on one rank, while every layer still grows.

    >>> from kvlab.arithmetic.logs.case import Settings
    >>> from kvlab.arithmetic.reader import read_model
    >>> case = Case(read_model("llama-3.1-70b"), Settings())
    >>> bytes_per_token(case), bytes_per_token(naive_case("forgot_factor_two", case))
    (327680, 163840)
    """
    pools = pools_of(case)
    return pools[0].cell_bytes if pools else 0
