"""One model on several GPUs: which rank keeps which layers and which heads.

Tensor parallelism (tp) splits the heads of every layer, pipeline parallelism (pp) the layers. Data
parallelism copies the model: it divides requests, never the bytes of one.
"""

from collections.abc import Iterable

from kvlab.arithmetic.checks import whole_number
from kvlab.arithmetic.storage import (
    LATENT,
    LayerStorage,
    ModelStorage,
    StateTensor,
    count_stores,
)
from kvlab.errors import InvalidArgument


def heads_on_rank(num_kv_heads: int, tp: int) -> int:
    """Return the KV heads of the fullest rank: max(1, ceil(heads / tp)).

    With more ranks than heads, heads are copied: a rank keeps one, never a part of one. vLLM's
    `get_num_kv_heads` uses max(1, heads // tp) and refuses a tp where neither divides the other;
    where it does accept, both agree.

    >>> [heads_on_rank(8, tp) for tp in (1, 2, 8, 16, 32)]
    [8, 4, 1, 1, 1]
    """
    return -(-num_kv_heads // tp)


def state_elements_on_rank(state: StateTensor, tp: int) -> int:
    """Return the elements of a state on the fullest rank: its units are spread like heads."""
    return -(-state.units // tp) * state.elements_per_unit


def check_tp(model: ModelStorage, tp: object) -> int:
    """Return `tp` as a number of ranks; raises when it does not divide the query heads.

    >>> from kvlab.arithmetic.reader import read_model
    >>> check_tp(read_model("llama-3.1-70b"), 3)
    Traceback (most recent call last):
    kvlab.errors.InvalidArgument: tp=3: must divide the 64 query heads of the model without rest
    """
    ranks = whole_number("tp", tp)
    if model.num_heads is not None and model.num_heads % ranks:
        rule = f"must divide the {model.num_heads} query heads of the model without rest"
        raise InvalidArgument("tp", tp, rule)
    return ranks


def tp_notes(model: ModelStorage, tp: int) -> list[str]:
    """Return what tensor parallelism cannot split, said aloud."""
    if tp == 1:
        return []
    notes = []
    if any(layer.kind == LATENT for layer in model.layers):
        notes.append("latents serve all heads: every tensor-parallel rank keeps them whole")
    heads = sorted({x.num_kv_heads for x in model.layers if x.num_kv_heads and x.kind != LATENT})
    for count in heads:
        if count < tp:
            notes.append(f"{count} KV head(s) over tp {tp}: heads are copied, one on each rank")
        if count % tp and tp % count:
            said = "neither divides the other: engines refuse this, the fullest rank is shown"
            notes.append(f"{count} KV heads and tp {tp}: {said}")
    if model.num_heads is None:
        notes.append("query heads are not in the config: whether tp divides them is not checked")
    return notes


def stage_sizes(num_layers: int, pp: object) -> tuple[int, ...]:
    """Return the layers of each pipeline stage.

    Layers that are left over go to the stages before the last one, as in vLLM's
    `get_pp_indices`.

    >>> stage_sizes(61, 4)
    (15, 15, 16, 15)
    """
    stages = whole_number("pp", pp)
    if stages > num_layers:
        raise InvalidArgument("pp", pp, f"must not exceed the {num_layers} layers of the model")
    each, left = divmod(num_layers, stages)
    sizes = [each] * stages
    for place in range(left):
        sizes[-2 - place] += 1
    return tuple(sizes)


def split_layers(model: ModelStorage, pp: object) -> tuple[tuple[LayerStorage, ...], ...]:
    """Return the stores of each pipeline stage, in the order of the layers.

    >>> from kvlab.arithmetic.reader import read_model
    >>> [len(stage) for stage in split_layers(read_model("llama-3.1-8b"), 4)]
    [8, 8, 8, 8]
    """
    sizes = stage_sizes(max(model.num_layers, 1), pp)
    if len(sizes) == 1:
        return (model.layers,)
    stages, start = [], 0
    for size in sizes:
        stages.append(_between(model.layers, start, start + size))
        start += size
    return tuple(stages)


def counted_stages(
    model: ModelStorage, pp: object
) -> tuple[tuple[tuple[LayerStorage, int], ...], ...]:
    """Return the distinct stores of each pipeline stage with their counts, worked out once."""
    stages = whole_number("pp", pp)
    if stages not in model.stage_counts:
        split = split_layers(model, stages)
        model.stage_counts[stages] = tuple(count_stores(stage) for stage in split)
    return model.stage_counts[stages]


def _between(layers: Iterable[LayerStorage], start: int, end: int) -> tuple[LayerStorage, ...]:
    return tuple(layer for layer in layers if start <= layer.index < end)
