"""The lines of SGLang that speak of its memory pools. What it calls GB is 2**30 bytes."""

from kvlab.arithmetic.logs.facts import LinePattern

ENGINE = "sglang"

PATTERNS = (
    LinePattern("ServerArgs(", r"server_args=(?:ServerArgs|PortArgs)\(", is_start=True),
    LinePattern(
        "KV Cache is allocated",
        r"KV Cache is allocated\.(?: dtype: (?P<cache_dtype>[\w.]{2,24}),)?"
        r" ?#tokens: (?P<kv_tokens><NUM>), K size: (?P<k_bytes><NUM>) (?P<k_bytes_unit>GB),"
        r" V size: (?P<v_bytes><NUM>) (?P<v_bytes_unit>GB)",
    ),
    LinePattern(
        "KV Cache is allocated",
        r"KV Cache is allocated\.(?: dtype: (?P<cache_dtype>[\w.]{2,24}),)?"
        r" ?#tokens: (?P<kv_tokens><NUM>), KV size: (?P<kv_bytes><NUM>) (?P<kv_bytes_unit>GB)",
    ),
    LinePattern(
        "swa size",
        r"swa size: (?P<windowed_tokens><NUM>),? full size: (?P<full_tokens><NUM>)",
    ),
    LinePattern("KV cache dtype:", r"Using KV cache dtype: (?P<cache_dtype>[\w.]{2,24})"),
    LinePattern("swa_full_tokens_ratio", r"swa_full_tokens_ratio=(?P<swa_ratio><NUM>)"),
    LinePattern(
        "Mamba Cache is allocated",
        r"Mamba Cache is allocated\. max_mamba_cache_size: (?P<slots><NUM>),"
        r" conv_state size: (?P<conv_bytes><NUM>) ?(?P<conv_bytes_unit>GB),"
        r" ssm_state size: (?P<ssm_bytes><NUM>) ?(?P<ssm_bytes_unit>GB)",
    ),
    LinePattern("max_total_num_tokens=", r"max_total_num_tokens=(?P<pool_tokens><NUM>)"),
)
BINARY_UNITS = {"GB": "GiB", "MB": "MiB"}
"""Printed unit -> what is meant."""
