"""The fixed states of recurrent and convolutional layers, read from their fields.

Shapes and dtypes are those that transformers 5.24.0 keeps: a convolution keeps its whole kernel
(vLLM one position less) in the dtype of the model, a recurrence its matrix in fp32 unless the
config says otherwise. Units are what tensor parallelism spreads.
"""

from collections.abc import Callable

from kvlab.arithmetic.config_fields import Config
from kvlab.arithmetic.config_forms import refuse
from kvlab.arithmetic.storage import StateTensor

States = tuple[StateTensor, ...]
CONV, RECURRENT = "conv", "recurrent"


def state_tensors(config: Config) -> States:
    """Return the tensors that one such layer keeps for each sequence.

    >>> fields = {"mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2, "hidden_size": 4096}
    >>> [(s.name, s.elements, s.dtype) for s in state_tensors(Config(fields, []))]
    [('conv', 32768, None), ('recurrent', 131072, 'fp32')]
    """
    for applies, reader in FAMILIES:
        if applies(config):
            return reader(config)
    config.note("a recurrent layer's fixed state could not be sized from this config: left out")
    return ()


def recurrent_dtype(config: Config) -> str:
    """Return the dtype of a recurrent state: as the config says, else fp32."""
    for key in ("mamba_ssm_dtype", "mamba_ssm_cache_dtype", "ssm_dtype"):
        if isinstance(config.raw.get(key), str) and config.raw[key] != "auto":
            return str(config.raw[key])
    return "fp32"


def _gated_delta(config: Config) -> States:
    """Qwen3-Next and kin: heads of keys and values, a matrix for each value head."""
    keys, values = config.count("linear_num_key_heads"), config.count("linear_num_value_heads")
    k_dim, v_dim = config.count("linear_key_head_dim"), config.count("linear_value_head_dim")
    kernel = config.count("linear_conv_kernel_dim", default=4)
    return (
        StateTensor(CONV, keys, 2 * k_dim * kernel, None, kernel),
        StateTensor(CONV, values, v_dim * kernel, None, kernel),
        StateTensor(RECURRENT, values, k_dim * v_dim, recurrent_dtype(config)),
    )


def _kimi_delta(config: Config) -> States:
    """Kimi-Linear and kin: q, k and v each pass a short convolution; a square matrix a head.

    Checkpoints nest the sizes in `linear_attn_config`; Bailing takes those of its attention.
    """
    nested = config.raw.get("linear_attn_config")
    nested = nested if isinstance(nested, dict) else {}
    names = {"num_heads": "linear_num_heads", "head_dim": "linear_head_dim"}
    inner = config.overlay({names[k]: v for k, v in nested.items() if k in names} | nested)
    heads = inner.count(_first(inner, ("linear_num_heads",)) or "num_attention_heads")
    width = inner.count(_first(inner, ("linear_head_dim",)) or "head_dim")
    kernel_key = _first(inner, ("short_conv_kernel_size", "linear_conv_kernel_dim"))
    kernel = inner.count(kernel_key or "short_conv_kernel_size", default=4)
    return (
        StateTensor(CONV, heads, 3 * width * kernel, None, kernel),
        StateTensor(RECURRENT, heads, width * width, recurrent_dtype(config)),
    )


def _mamba2(config: Config) -> States:
    heads = config.count(_first(config, MAMBA2_HEADS))
    state = config.count(_first(config, STATE_SIZES))
    groups_key = _first(config, ("mamba_n_groups", "mamba_ngroups", "n_groups"))
    groups = config.count(groups_key, default=1) if groups_key else 1
    width = _mamba2_head_dim(config, heads)
    kernel = _kernel(config)
    return (
        StateTensor(CONV, heads, width * kernel, None, kernel),
        StateTensor(CONV, groups, 2 * state * kernel, None, kernel),
        StateTensor(RECURRENT, heads, width * state, recurrent_dtype(config)),
    )


def _mamba2_head_dim(config: Config, heads: int) -> int:
    if config.value("mamba_d_ssm") is not None:
        return config.count("mamba_d_ssm") // heads
    key = _first(config, ("mamba_d_head", "mamba_head_dim", "mamba_headdim"))
    if key and config.value(key) != "auto":
        return config.count(key)
    if config.model_type == "mamba2":
        return config.count("head_dim")
    return _inner(config) // heads


def _mamba1(config: Config) -> States:
    """Mamba: a config that writes `state_size` writes the inner width as `intermediate_size`.

    With prefixed keys (`mamba_d_state`) that field belongs to an MLP, and `expand` counts.
    """
    state = config.count(_first(config, STATE_SIZES))
    own = config.has("state_size") and config.has("intermediate_size")
    inner = config.count("intermediate_size") if own else _inner(config)
    kernel = _kernel(config)
    return (
        StateTensor(CONV, inner, kernel, None, kernel),
        StateTensor(RECURRENT, inner, state, recurrent_dtype(config)),
    )


def _rg_lru(config: Config) -> States:
    """RecurrentGemma: one number a channel, and a short convolution."""
    width = config.count("lru_width", default=config.count("hidden_size"))
    kernel = config.count("conv1d_width", default=4)
    return StateTensor(CONV, width, kernel - 1), StateTensor(RECURRENT, width, 1, "fp32")


def _short_conv(config: Config) -> States:
    kernel = config.count("conv_L_cache")
    return (StateTensor(CONV, config.count("hidden_size"), kernel, None, kernel),)


def _four_convs(config: Config) -> States:
    """Inkling: short convolutions over keys, values and twice over the hidden states, in fp32."""
    windowed = config.raw.get("in_window") and config.value("swa_num_key_value_heads") is not None
    heads = config.count("swa_num_key_value_heads" if windowed else "num_key_value_heads")
    width = config.count("swa_head_dim" if windowed else "head_dim")
    kernel = config.count("conv_kernel_size")
    return (
        StateTensor(CONV, heads, 2 * width * kernel, "fp32", kernel),
        StateTensor(CONV, config.count("hidden_size"), 2 * kernel, "fp32", kernel),
    )


def _lightning(config: Config) -> States:
    """MiniMax-Text-01: a square matrix a query head, in the dtype of the model."""
    heads = config.count("num_attention_heads")
    width = config.count("head_dim", default=config.count("hidden_size") // heads)
    return (StateTensor(RECURRENT, heads, width * width),)


def _kernel(config: Config) -> int:
    key = _first(config, ("mamba_d_conv", "conv_kernel", "conv_kernel_size", "d_conv"))
    return config.count(key or "mamba_d_conv", default=4)


def _inner(config: Config) -> int:
    key = _first(config, ("mamba_expand", "expand"))
    expand = config.value(key) if key else 2
    number = isinstance(expand, (int, float)) and not isinstance(expand, bool)
    if not number or not 0 < expand < 1000:
        raise refuse(config, key, "must be a number above 0 and below 1,000")
    return int(expand * config.count("hidden_size"))


MAMBA2_HEADS = ("mamba_n_heads", "mamba_num_heads", "n_mamba_heads", "num_heads")
STATE_SIZES = ("mamba_d_state", "ssm_state_size", "state_size", "d_state")


def _first(config: Config, keys: tuple[str, ...]) -> str:
    return next((key for key in keys if config.value(key) is not None), "")


def _is_mamba2(config: Config) -> bool:
    """Mamba-2 counts heads; Zamba counts them too, but keeps the states of Mamba-1."""
    heads = _first(config, MAMBA2_HEADS if config.model_type == "mamba2" else MAMBA2_HEADS[:3])
    return bool(heads and _first(config, STATE_SIZES)) and config.model_type != "zamba"


FAMILIES: tuple[tuple[Callable[[Config], bool], Callable[[Config], States]], ...] = (
    (lambda c: c.value("linear_num_value_heads") is not None, _gated_delta),
    (lambda c: isinstance(c.raw.get("linear_attn_config"), dict), _kimi_delta),
    (lambda c: c.value("linear_num_heads") is not None, _kimi_delta),
    (lambda c: c.value("short_conv_kernel_size") is not None, _kimi_delta),
    (lambda c: c.model_type.startswith("inkling"), _four_convs),
    (_is_mamba2, _mamba2),
    (lambda c: bool(_first(c, STATE_SIZES)), _mamba1),
    (lambda c: c.value("conv_L_cache") is not None, _short_conv),
    (lambda c: c.value("lru_width") is not None or c.model_type == "recurrent_gemma", _rg_lru),
    (lambda c: c.model_type.startswith("minimax") or c.has("attn_type_list"), _lightning),
)
