"""A model type nobody told this reader about: say what was assumed, in one clear note."""

from collections.abc import Sequence

from kvlab.arithmetic.config_fields import Config, class_defaults
from kvlab.arithmetic.state_families import MAMBA2_HEADS, STATE_SIZES
from kvlab.arithmetic.storage import GROWING, STATE, LayerStorage

ALSO_KNOWN = (
    "chatglm", "nemotron-nas", "deci", "hunyuan", "deepseek", "kimi_k2", "kimi_k3", "minimax_m3",
    "minimax_text_01", "mimo", "mimo_v2", "baichuan", "internlm2", "internlm", "mistral_large3",
    "phi-msft", "RefinedWeb", "RefinedWebModel", "qwen", "openelm", "stablelm_epoch", "xverse",
    "aquila", "orion", "yi", "deepseek_vl_v2", "minicpm", "mixformer-sequential",
)  # fmt: skip
"""Types that transformers 5.24.0 does not know, whose configs this reader was checked against."""

PARTLY_KNOWN = (
    "dots3_note", "dots3_note_text", "dory", "hy_v4", "hy_v4_text", "mistral_large4_text", "zaya",
    "inkling2_loop_text", "olmo_hybrid", "deepseek_v4", "glm5_next_text", "qwen4_exp_text",
)  # fmt: skip
"""Types whose classes fill in values layer by layer that this reader does not all know."""


def describe_unknown(config: Config, layers: Sequence[LayerStorage]) -> None:
    """Add a note to a config of an unknown type that says how it was read."""
    if not config.model_type:
        config.note("the config names no model_type: it was read by its fields alone")
        return
    if config.model_type in PARTLY_KNOWN and not config.has("layer_types"):
        config.note(
            f"{config.model_type} fills in values by layer when they are absent: check them"
        )
    if config.model_type in class_defaults() or config.model_type in ALSO_KNOWN:
        return
    kinds = ", ".join(sorted({layer.kind for layer in layers}))
    store = next((layer for layer in layers if layer.kind in GROWING), None)
    heads = "" if store is None else f", {store.num_kv_heads} head(s) of {store.k_dim}"
    heads += "" if store is None else f" + {store.v_dim} elements"
    config.note(
        f"model_type {config.model_type!r} is unknown: read by its fields alone as {kinds} layers"
        f"{heads}; check this against the model's own code"
    )
    _describe_unread(config, kinds)


def _describe_unread(config: Config, kinds: str) -> None:
    """Say that a config of an unknown type writes the sizes of states, and none was found."""
    keys = (*MAMBA2_HEADS[:3], *STATE_SIZES, "linear_num_value_heads", "conv_L_cache", "lru_width")
    written = [key for key in keys if config.has(key)]
    if written and STATE not in kinds:
        said = f"{', '.join(written)} written, but no field says which layers keep a state"
        config.note(f"{said}: all were read as attention, some may not be")
