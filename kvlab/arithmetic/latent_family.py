"""Layers that keep a compressed form of keys and values instead of heads.

Multi-head latent attention keeps one latent for all heads and one RoPE key: no factor 2, and
nothing that tensor parallelism could split.
"""

from kvlab.arithmetic.config_fields import Config
from kvlab.arithmetic.storage import LATENT, LayerStorage
from kvlab.errors import InvalidArgument


def latent(config: Config) -> LayerStorage:
    """Return the store of an MLA layer: `kv_lora_rank` + `qk_rope_head_dim` elements a token.

    `num_key_value_heads` and `head_dim` of such configs describe the heads after expansion and do
    not enter. A latent without its RoPE part is refused.

    >>> fields = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "num_key_value_heads": 128}
    >>> latent(Config(fields, [])).elements_per_token
    576
    """
    rank = config.count("kv_lora_rank")
    rope = config.value("qk_rope_head_dim") if config.nested else config.written("qk_rope_head_dim")
    if rope is None:
        name = f"config.{config.block}qk_rope_head_dim"
        rule = "is missing: a latent (kv_lora_rank) is kept together with its RoPE key"
        raise InvalidArgument(name, None, rule)
    rope_dim = config.count("qk_rope_head_dim", minimum=0)
    return LayerStorage(0, LATENT, num_kv_heads=1, k_dim=rank, v_dim=rope_dim)


def compressed(config: Config) -> list[LayerStorage]:
    """Return the stores of a DeepSeek-V4 layer: a window of tokens and the compressed past.

    One vector of `head_dim` serves as key and value. The past keeps one entry for every
    `compress_rate` tokens; the sparse kind keeps an indexer key beside each entry. Tokens that
    wait to fill an entry are left out.
    """
    heads, width = config.count("num_key_value_heads", default=1), config.count("head_dim")
    recent = LayerStorage(0, LATENT, heads, width, 0, window=config.optional("sliding_window"))
    rate = config.count("compress_rate")
    index = config.count("index_head_dim", default=0, minimum=0)
    sparse = bool(config.raw.get("compress_indexed"))
    config.note("key and value are one vector; tokens that wait to be compressed are left out")
    past = LayerStorage(
        0, LATENT, heads, width, 0, stride=rate, index_elements=index if sparse else 0
    )
    return [recent, past]
