"""Layers that store nothing because they read another layer's keys and values."""

from kvlab.arithmetic.config_fields import Config
from kvlab.arithmetic.config_forms import flag


def sharing_layers(config: Config, types: list[str]) -> frozenset[int]:
    """Return the numbers of the layers that store nothing of their own.

    Three spellings: the last `num_kv_shared_layers` (Gemma 3n and 4); every layer but the first
    of each `cla_share_factor`, only where `use_cla` is true (Hunyuan-Large; others carry the
    factor and do not use it); and a list that names each layer's source.

    >>> config = Config({"use_cla": True, "cla_share_factor": 2}, [])
    >>> sorted(sharing_layers(config, ["full_attention"] * 4))
    [1, 3]
    """
    count = len(types)
    if flag(config, "use_cla"):
        factor = config.count("cla_share_factor", default=1)
        return frozenset(i for i in range(count) if i % factor)
    tail = config.optional("num_kv_shared_layers") or 0
    if tail:
        return frozenset(range(max(count - tail, 0), count))
    return frozenset()
