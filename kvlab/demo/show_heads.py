"""The demo `kv-heads`: one model from a KV head a query head to one for all, and everybody else."""

from collections.abc import Mapping

from kvlab.demo.stages import Preset, Stage, put
from kvlab.widgets.base import Explorer
from kvlab.widgets.catalogue_explorer import catalogue_explorer
from kvlab.widgets.heads_explorer import RANKS, heads_explorer

MODEL = "llama-3.1-70b"


def _ranks(show: Explorer) -> Mapping[str, str]:
    """The bytes of a token on each of eight GPUs, and of the context that is chosen."""
    context = f"{show.values['context']:,} tokens"
    return {
        "ranks": f"{RANKS}",
        "each": show.numbers[f"a token on each of {RANKS} GPUs"],
        "held": show.numbers[context],
    }


HEADS = (
    Stage(
        "one model",
        heads_explorer,
        "num_kv_heads",
        (
            Preset(
                "A head for each (MHA)",
                put(model=MODEL, num_kv_heads=64, context=8192),
                "{v[num_kv_heads]} KV heads: {n[a token]} a token, {held} for {v[context]} tokens.",
                _ranks,
            ),
            Preset(
                "As it was made (GQA)",
                put(model=MODEL, num_kv_heads=8, context=8192),
                "{n[query heads on a KV head]} query heads read one KV head: {n[a token]} a token, "
                "{each} on each of {ranks} GPUs. It also has {n[fewer than with MHA]} parameters "
                "less.",
                _ranks,
            ),
            Preset(
                "One for all (MQA)",
                put(model=MODEL, num_kv_heads=1, context=8192),
                "A token is down to {n[a token]}, but on each of {ranks} GPUs it stays at {each}: "
                "one KV head can't be split.",
                _ranks,
            ),
        ),
    ),
    Stage(
        "the catalogue",
        catalogue_explorer,
        "first",
        (
            Preset(
                "Who costs most a token?",
                put(order="bytes a token", largest_first=True, kind="all kinds", first=1,
                    mark="nobody"),
                "Of all models here {n[MHA]} have a KV head for each query head, {n[GQA]} share "
                "them in groups, {n[MQA]} have one, and {n[latent]} keep a latent.",
            ),
            Preset(
                "Who has one KV head?",
                put(order="bytes a token", largest_first=True, kind="MQA", first=1, mark="nobody"),
                "Only {n[MQA]} of them. The saving ends where a head can't be split over GPUs.",
            ),
            Preset(
                "Falcon 40B is not MQA",
                put(order="query heads per KV head", largest_first=True, kind="all kinds", first=1,
                    mark="tiiuae/falcon-40b"),
                "Falcon has {n[tiiuae/falcon-40b]}. Its smaller sister has one KV head: read the "
                "config, not the family name.",
            ),
        ),
    ),
)  # fmt: skip
