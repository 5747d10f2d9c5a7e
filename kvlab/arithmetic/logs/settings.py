"""Options that every engine repeats in its start-up output, under one name each.

A value may follow as `key=value`, `--key value`, `'key': value` or `"key":value`.
"""

from kvlab.arithmetic.logs.facts import LinePattern

_SEP = r"['\"]?\s{0,3}[=: ]\s{0,3}['\"]?"


def _option(needle: str, name: str, value: str, key: str | None = None) -> LinePattern:
    words = (key or needle).replace("_", "[_-]")
    return LinePattern(needle, rf"(?<![A-Za-z_]){words}{_SEP}(?P<{name}>{value})")


def _both(key: str, name: str, value: str) -> tuple[LinePattern, ...]:
    dashed = key.replace("_", "-")
    return tuple(_option(k, name, value, key) for k in dict.fromkeys((key, dashed)))


_WHOLE = r"\d{1,12}"
_NAME = r"[A-Za-z0-9~/][\w./~:+-]{0,240}"
_DTYPE = r"(?:torch\.)?[A-Za-z]\w{1,20}"

PATTERNS = (
    *_both("tensor_parallel_size", "tp", _WHOLE),
    *_both("tp_size", "tp", _WHOLE),
    *_both("pipeline_parallel_size", "pp", _WHOLE),
    *_both("pp_size", "pp", _WHOLE),
    *_both("max_model_len", "max_model_len", _WHOLE),
    *_both("max_seq_len", "max_model_len", _WHOLE),
    *_both("context_length", "max_model_len", _WHOLE),
    *_both("block_size", "block_size", _WHOLE),
    *_both("page_size", "block_size", _WHOLE),
    *_both("max_num_batched_tokens", "max_batched_tokens", _WHOLE),
    *_both("num_speculative_tokens", "speculative_tokens", _WHOLE),
    *_both("kv_cache_memory_bytes", "available", r"[1-9]\d{4,16}"),
    *_both("swap_space", "swap_gib", r"\d{1,6}(?:\.\d{1,3})?"),
    *_both("gpu_memory_utilization", "utilization", r"0?\.\d{1,6}|1(?:\.0{1,6})?"),
    *_both("mem_fraction_static", "utilization", r"0?\.\d{1,6}"),
    *_both("kv_cache_dtype", "cache_dtype", _DTYPE),
    _option("dtype", "dtype", r"(?:torch\.)?(?:bfloat16|float16|float32|half|auto)"),
    *_both("model_path", "model", _NAME),
    LinePattern("vllm serve ", rf"vllm serve (?P<model>{_NAME})"),
    LinePattern(
        "served", r"served[_-]model[_-]name['\"]?[=: ]\s?\[?['\"](?P<model>[^'\"\n]{1,240})"
    ),
    LinePattern("model", r"(?<![A-Za-z_])model['\"]?[=:]\s?['\"](?P<model>[^'\"\n]{1,240})['\"]"),
    LinePattern("--model", rf"--model[ =](?P<model>{_NAME})"),
)
