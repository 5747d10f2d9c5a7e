"""The lines of TensorRT-LLM (its C++ and Python runtimes) that speak of the paged KV cache."""

from kvlab.arithmetic.logs.facts import LinePattern

ENGINE = "tensorrt-llm"

PATTERNS = (
    LinePattern("TensorRT-LLM version", r"TensorRT-LLM version:? (?P<version>[\w.+-]{1,40})", True),
    LinePattern(
        "k/v cache", r"Allocate (?P<cache_bytes><NUM>) (?P<cache_bytes_unit>bytes) for k/v cache"
    ),
    LinePattern(
        "total tokens in paged", r"Using (?P<kv_tokens><NUM>) total tokens in paged KV cache"
    ),
    LinePattern(
        "for max tokens in paged",
        r"Allocated (?P<cache_bytes><NUM>) (?P<cache_bytes_unit><UNIT>) for max tokens in paged"
        r" KV cache \((?P<kv_tokens><NUM>)\)",
    ),
    LinePattern(
        "max tokens in paged kv cache",
        r"max tokens in paged kv cache: total: (?P<total><NUM>) (?P<total_unit><UNIT>),"
        r" available: (?P<available><NUM>) (?P<available_unit><UNIT>)",
    ),
    LinePattern(
        "primary pool", r"Number of blocks in KV cache primary pool: (?P<num_blocks><NUM>)"
    ),
    LinePattern("tokens per block", r"[Nn]umber of tokens per block: (?P<block_size><NUM>)"),
    LinePattern(
        "free_gpu_memory_fraction", r"free_gpu_memory_fraction[=: ]{1,2}(?P<fraction><NUM>)"
    ),
)
"""`cache_bytes` may be printed twice: a small first cache to measure with, then the real one."""
