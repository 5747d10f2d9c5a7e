"""What a layer of each type stores: the table from type names to small readers of fields.

A reader gets what one layer sees of the config and gives its stores. The index of the layer is set
later. Recurrent states have a file of their own (`state_families`).
"""

from collections.abc import Callable
from dataclasses import replace

from kvlab.arithmetic import storage
from kvlab.arithmetic.config_fields import Config
from kvlab.arithmetic.config_forms import flag, window
from kvlab.arithmetic.latent_family import compressed, latent
from kvlab.arithmetic.state_families import state_tensors
from kvlab.arithmetic.storage import LayerStorage
from kvlab.errors import InvalidArgument

Stores = list[LayerStorage]
Reader = Callable[[Config], Stores]


def stores_of(config: Config, type_name: str) -> Stores:
    """Return the stores of one layer of the given type.

    >>> fields = {"num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64}
    >>> stores_of(Config(fields, []), "full_attention")[0].elements_per_token
    256
    """
    reader = TYPES.get(type_name.casefold())
    if reader is None:
        config.note(f"layer type {type_name!r} is unknown: read as attention to the whole context")
        reader = full
    return reader(config)


def kv_heads(config: Config, *, windowed: bool = False) -> int:
    """Return the KV heads of a layer: the flags of multi-query models first, then the field.

    `multi_query` without `new_decoder_architecture` is one head, whatever else is written
    (Falcon-7B, GPT-BigCode). ChatGLM writes its groups as `multi_query_group_num`; without them
    `multi_query_attention` is one head (OLMo).
    """
    if windowed and config.value("swa_num_key_value_heads") is not None:
        return config.count("swa_num_key_value_heads")
    if windowed and config.model_type.startswith("mimo_v2"):
        config.note("windowed layers have twice the KV heads: a rule of the mimo_v2 class")
        return 2 * config.count("num_key_value_heads")
    if flag(config, "multi_query") and not flag(config, "new_decoder_architecture"):
        return 1
    if flag(config, "multi_query_attention") and not config.has("num_key_value_heads"):
        return config.count("multi_query_group_num", default=1)
    nested = config.raw.get("attn_config")
    if isinstance(nested, dict):
        if nested.get("attn_type") == "multiquery_attention":
            return 1
        if nested.get("kv_n_heads") is not None:
            return config.overlay({"num_key_value_heads": nested["kv_n_heads"]}).count(
                "num_key_value_heads"
            )
    if config.value("num_key_value_heads") is None:
        return config.count("num_attention_heads")
    return config.count("num_key_value_heads")


def head_dim(config: Config, *, windowed: bool = False) -> int:
    """Return the width of a key: the field, else hidden size / query heads."""
    if windowed and config.value("swa_head_dim") is not None:
        return config.count("swa_head_dim")
    if config.value("head_dim") is not None:
        return config.count("head_dim")
    hidden, heads = config.count("hidden_size"), config.count("num_attention_heads")
    if config.model_type in ("zamba", "zamba2"):  # attention sees two hidden states side by side
        hidden *= 2
    if hidden % heads:
        name = f"config.{config.block}{config.key('hidden_size')}"
        rule = f"must be a multiple of the {heads} heads when head_dim is not given"
        raise InvalidArgument(name, hidden, rule)
    return hidden // heads


def attention(config: Config, *, windowed: bool = False) -> LayerStorage:
    """Return a full store of this layer's heads; K and V may differ in width.

    Also refuses KV heads that do not divide the query heads.
    """
    heads, k_dim = kv_heads(config, windowed=windowed), head_dim(config, windowed=windowed)
    queries = config.value("num_attention_heads")
    if isinstance(queries, int) and queries % heads and not windowed:
        name = f"config.{config.block}{config.key('num_key_value_heads')}"
        raise InvalidArgument(name, heads, f"must divide the {queries} query heads without rest")
    v_field = "swa_v_head_dim" if windowed and config.has("swa_v_head_dim") else "v_head_dim"
    v_dim = config.optional(v_field) or k_dim
    return LayerStorage(0, storage.FULL, heads, k_dim, v_dim)


def is_latent(config: Config) -> bool:
    """Return whether the layer keeps a latent (MLA): asked before any head is counted."""
    if not flag(config, "use_mla", default=True):
        return False
    return config.optional("kv_lora_rank") is not None


def full(config: Config) -> Stores:
    """Attention to the whole context, of heads or of a latent."""
    return [latent(config) if is_latent(config) else attention(config)]


def indexed(config: Config) -> Stores:
    """Full attention that first picks tokens with an indexer, whose keys are kept as well."""
    (store,) = full(config)
    if config.raw.get("indexer_type") == "shared":
        return [store]
    key = "index_head_dim" if config.value("index_head_dim") is not None else "indexer_head_dim"
    width = config.optional(key)
    if width is None:
        config.note("the indexer's key width is not in the config: its cache is left out")
    return [_changed(store, index_elements=width or 0)]


def windowed(config: Config) -> Stores:
    """Attention to the last `sliding_window` tokens."""
    kept = window(config)
    if kept is None:
        config.note("a windowed layer without a window was read as attention to everything")
        return full(config)
    if is_latent(config):
        return [_changed(latent(config), window=kept)]
    return [_changed(attention(config, windowed=True), kind=storage.WINDOWED, window=kept)]


def chunked(config: Config) -> Stores:
    """Attention inside a chunk: never more than `attention_chunk_size` tokens are needed."""
    size = config.optional("attention_chunk_size")
    if size is None:
        return full(config)
    return [_changed(attention(config), kind=storage.CHUNKED, window=size)]


def cross(config: Config) -> Stores:
    """Attention to an encoder's or an image's positions: fixed by the source."""
    return [_changed(attention(config), kind=storage.CROSS)]


def state(config: Config) -> Stores:
    """A recurrent or convolutional state: fixed for each sequence."""
    return [LayerStorage(0, storage.STATE, states=state_tensors(config))]


def hybrid(config: Config) -> Stores:
    """Attention and a state in the same layer."""
    return [*full(config), *state(config)]


def hybrid_sliding(config: Config) -> Stores:
    """Windowed attention and a state in the same layer."""
    return [*windowed(config), *state(config.overlay({"in_window": True}))]


def shared(config: Config) -> Stores:
    """A layer that reads the keys and values of an earlier one."""
    return [LayerStorage(0, storage.SHARED)]


def nothing(config: Config) -> Stores:
    """A layer without attention and without state (an MLP or experts)."""
    return [LayerStorage(0, storage.NONE)]


def _changed(store: LayerStorage, **changes: object) -> LayerStorage:
    return replace(store, **changes)  # type: ignore[arg-type]


TYPES: dict[str, Reader] = {
    **dict.fromkeys(("full_attention", "attention", "full", "global", "softmax"), full),
    **dict.fromkeys(("global_attention", "self_attention", "mla", "default"), full),
    **dict.fromkeys(("sliding_attention", "sliding", "local", "swa", "local_attention"), windowed),
    **dict.fromkeys(("sliding_window", "sliding_window_attention", "window_attention"), windowed),
    **dict.fromkeys(("chunked_attention", "chunked"), chunked),
    **dict.fromkeys(("indexed_attention", "deepseek_sparse_attention"), indexed),
    **dict.fromkeys(("qwen_sparse_attention", "minimax_m3_sparse", "dsa"), indexed),
    **dict.fromkeys(("compressed_sparse_attention", "heavily_compressed_attention"), compressed),
    **dict.fromkeys(("linear_attention", "linear", "mamba", "mamba2", "recurrent", "m"), state),
    **dict.fromkeys(("conv", "short_conv", "lightning", "gated_deltanet", "gdn", "kda"), state),
    **dict.fromkeys(("deltanet", "rwkv", "ssm", "lightning_attention"), state),
    **dict.fromkeys(("hybrid", "g"), hybrid),
    "hybrid_sliding": hybrid_sliding,
    **dict.fromkeys(("cross_attention", "cross"), cross),
    **dict.fromkeys(("none", "moe", "mlp", "dense", "sparse", "no_op", "identity"), nothing),
    **dict.fromkeys(("shared", "dummy", "reuse", "kv_shared"), shared),
}
"""Type name -> reader of its fields."""
