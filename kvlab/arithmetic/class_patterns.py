"""The layers that a config leaves to its class: one small rule for each model type.

Source: the configuration classes of transformers 5.24.0. A rule gives one type name a layer, or
None when it does not apply.
"""

from collections.abc import Callable

from kvlab.arithmetic.config_fields import Config
from kvlab.arithmetic.config_forms import flag, listed

Pattern = Callable[[Config, int], list[str] | None]

FULL, SLIDING, CHUNKED = "full_attention", "sliding_attention", "chunked_attention"
LINEAR, INDEXED, HYBRID = "linear_attention", "indexed_attention", "hybrid"


def _all(name: str) -> Pattern:
    return lambda config, count: [name] * count


def _last_of(period: int, other: str = SLIDING, chosen: str = FULL) -> Pattern:
    """Every `period`-th layer is `chosen`, counted from 1."""
    return lambda config, count: [other if (i + 1) % period else chosen for i in range(count)]


def _first_of(period: int, other: str = SLIDING) -> Pattern:
    """Layers 0, `period`, ... are full."""
    return lambda config, count: [other if i % period else FULL for i in range(count)]


def _first_of_written(config: Config, count: int) -> list[str]:
    """ModernBERT: the period is a field of the config."""
    return _first_of(config.count("global_attn_every_n_layers", default=3))(config, count) or []


def _and_last(pattern: Pattern) -> Pattern:
    def forced(config: Config, count: int) -> list[str]:
        return [*(pattern(config, count) or [])[:-1], FULL]

    return forced


def _cycle(*names: str) -> Pattern:
    return lambda config, count: [names[i % len(names)] for i in range(count)]


def _from_window_layer(config: Config, count: int) -> list[str]:
    """Qwen2 and Qwen3: with use_sliding_window, layers from max_window_layers on are windowed."""
    first = _window_start(config, count)
    return [SLIDING if first is not None and i >= first else FULL for i in range(count)]


def _alternate_below_window_layer(config: Config, count: int) -> list[str]:
    """Qwen2-MoE: with use_sliding_window, even layers below max_window_layers are windowed."""
    first = _window_start(config, count)
    below = 0 if first is None else first
    return [SLIDING if i % 2 == 0 and i < below else FULL for i in range(count)]


def _window_start(config: Config, count: int) -> int | None:
    if not flag(config, "use_sliding_window", default=config.model_type == "dots1"):
        return None
    if not config.value("sliding_window"):
        return None
    return config.count("max_window_layers", default=count, minimum=0)


def _no_rope_chunks(config: Config, count: int) -> list[str]:
    """Llama 4: layers with RoPE attend inside a chunk, each 4th (without RoPE) to everything."""
    with_rope = listed(config, "no_rope_layers")
    if not with_rope:
        interval = config.count("no_rope_layer_interval", default=4)
        with_rope = [(i + 1) % interval != 0 for i in range(count)]
    chunked = config.value("attention_chunk_size") is not None
    return [CHUNKED if flag and chunked else FULL for flag in with_rope]


def _no_rope_windows(config: Config, count: int) -> list[str]:
    """SmolLM3: with use_sliding_window, layers without RoPE are windowed."""
    flags = listed(config, "no_rope_layers")
    if not flags:
        interval = config.count("no_rope_layer_interval", default=4)
        flags = [(i + 1) % interval != 0 for i in range(count)]
    windowed = flag(config, "use_sliding_window") and config.value("sliding_window")
    return [SLIDING if windowed and not flag else FULL for flag in flags]


def _mimo(config: Config, count: int) -> list[str]:
    return [FULL if i == 0 or (i + 1) % 6 == 0 else SLIDING for i in range(count)]


def _flint(config: Config, count: int) -> list[str]:
    return [FULL if i < 2 or i % 4 == 1 or i == count - 1 else SLIDING for i in range(count)]


def _muse(config: Config, count: int) -> list[str]:
    return [SLIDING if (count - 1 - i) % 4 else FULL for i in range(count)]


def _lfm3(config: Config, count: int) -> list[str]:
    kinds = {0: SLIDING, 1: "conv", 2: FULL, 3: "conv"}
    return ["conv" if i == 0 else kinds[i % 4] for i in range(count)]


def _zamba(config: Config, count: int) -> list[str]:
    period = config.count("attn_layer_period", default=6)
    offset = config.count("attn_layer_offset", default=4, minimum=0)
    rest = [HYBRID if i % period == offset else LINEAR for i in range(count - 3)]
    return [LINEAR, LINEAR, HYBRID, *rest][:count]


def _zamba2(config: Config, count: int) -> list[str] | None:
    hybrids = {6, 12, 18, 24, 30, 36, 42, 47, 51}
    return [HYBRID if i in hybrids else LINEAR for i in range(count)] if count == 54 else None


def _compressed(config: Config, count: int) -> list[str]:
    """DeepSeek-V4: two heavily compressed layers, then both kinds in turn."""
    heavy, sparse = "heavily_compressed_attention", "compressed_sparse_attention"
    return [heavy if i < 2 or i % 2 == 0 else sparse for i in range(count)]


CLASS_PATTERNS: dict[str, Pattern] = {
    **dict.fromkeys(("cohere2", "cohere2_moe", "exaone4", "exaone_moe", "afmoe"), _last_of(4)),
    **dict.fromkeys(("olmo3", "dory"), _last_of(4)),
    **dict.fromkeys(("gemma2", "gpt_oss", "vaultgemma", "t5gemma"), _last_of(2)),
    **dict.fromkeys(("gemma3", "gemma3_text", "t5gemma2", "diffusion_gemma"), _last_of(6)),
    **dict.fromkeys(("gemma4", "gemma4_text", "gemma4_unified_text"), _and_last(_last_of(6))),
    **dict.fromkeys(("beam", "neomme", "embedding_gemma2"), _and_last(_last_of(6))),
    **dict.fromkeys(("gemma3n", "gemma3n_text", "kolibri1"), _last_of(5)),
    **dict.fromkeys(("cwm", "granite_swa", "granitemoe_swa"), _first_of(4)),
    "modernbert-decoder": _first_of_written,
    **dict.fromkeys(("mimo_v2_flash", "mimo_v2"), _mimo),
    "flint": _flint,
    "muse_spark_text": _muse,
    "muse_glimmer_text": _muse,
    **dict.fromkeys(("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"), _last_of(4, LINEAR)),
    "olmo_hybrid": _and_last(_last_of(4, LINEAR)),
    "qwen4_exp_text": _last_of(4, LINEAR, INDEXED),
    "glm5_next": _last_of(4, LINEAR, INDEXED),
    "bailing_hybrid": _last_of(6, LINEAR),
    "kimi_linear": lambda config, count: [
        FULL if i and i % 4 == 0 else LINEAR for i in range(count)
    ],
    "minimax": _cycle(FULL, LINEAR),
    "recurrent_gemma": _cycle(LINEAR, LINEAR, SLIDING),
    "lara_mini": _cycle(LINEAR, SLIDING, LINEAR, FULL, SLIDING),
    "jamba": lambda config, count: [FULL if i % 8 == 4 else LINEAR for i in range(count)],
    "zamba": _zamba,
    "zamba2": _zamba2,
    "lfm3": _lfm3,
    **dict.fromkeys(("falcon_h1", "zaya"), _all(HYBRID)),
    **dict.fromkeys(("laguna", "mellum", "cohere_compass_text"), _all(FULL)),
    "gpt_neo": _cycle(FULL, SLIDING),
    "mllama_text_model": lambda config, count: [
        "cross_attention" if i % 5 == 3 else FULL for i in range(count)
    ],
    **dict.fromkeys(("bamba", "granitemoehybrid", "mamba", "mamba2", "falcon_mamba"), _all(LINEAR)),
    **dict.fromkeys(("xlstm", "rwkv"), _all(LINEAR)),
    **dict.fromkeys(("inkling_text", "inkling2_text"), _last_of(6, "hybrid_sliding", HYBRID)),
    **dict.fromkeys(("deepseek_v32", "glm_moe_dsa", "axk2", "mistral_large4"), _all(INDEXED)),
    **dict.fromkeys(("hy_v4", "hy_v4_text"), _all(INDEXED)),
    "deepseek_v4": _compressed,
    **dict.fromkeys(("qwen2", "qwen3", "qwen2_vl", "qwen2_vl_text", "dots1"), _from_window_layer),
    **dict.fromkeys(("qwen2_5_vl", "qwen2_5_vl_text", "qwen2_5_omni_text"), _from_window_layer),
    "qwen2_moe": _alternate_below_window_layer,
    **dict.fromkeys(("llama4", "llama4_text"), _no_rope_chunks),
    "smollm3": _no_rope_windows,
}
"""Model type -> the rule of its class, for configs that do not list their layers."""
