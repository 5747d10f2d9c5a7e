"""The names under which engines say their numbers, and which numbers cannot be."""

USAGE = "vllm:kv_cache_usage_perc"
QUERIES, HITS = "vllm:prefix_cache_queries_total", "vllm:prefix_cache_hits_total"
COUNTED = (
    "vllm:num_requests_running",
    "vllm:num_requests_waiting",
    "vllm:num_preemptions_total",
    "vllm:prefix_cache_queries_total",
    "vllm:prefix_cache_hits_total",
    "vllm:prompt_tokens_total",
    "vllm:generation_tokens_total",
    "vllm:request_success_total",
)
TIMES = (
    "time_to_first_token_seconds",
    "request_time_per_output_token_seconds",
    "request_queue_time_seconds",
)
SUMMED = (*COUNTED, *(f"vllm:{name}_{end}" for name in TIMES for end in ("sum", "count")))
FROM_LLAMACPP = {
    "vllm:num_requests_running": ("llamacpp:requests_processing",),
    "vllm:num_requests_waiting": ("llamacpp:requests_deferred",),
    "vllm:prefix_cache_hits_total": ("llamacpp:prompt_tokens_cached_total",),
    "vllm:prefix_cache_queries_total": (
        "llamacpp:prompt_tokens_total", "llamacpp:prompt_tokens_cached_total",
    ),
    "vllm:prompt_tokens_total": (
        "llamacpp:prompt_tokens_total", "llamacpp:prompt_tokens_cached_total",
    ),
    "vllm:generation_tokens_total": ("llamacpp:tokens_predicted_total",),
}  # fmt: skip
COUNTS = ("num_gpu_blocks", "block_size", "kv_cache_size_tokens", "kv_cache_memory_bytes")
CONCURRENCY = "kv_cache_max_concurrency"
MOST = 10**18
"""No pool and no counter is larger: beyond it a number is taken for nonsense."""


def can_be(name: str, value: float) -> bool:
    """Whether a sample can be a count, a sum of seconds or, of the pool, a share."""
    return 0 <= value <= (1.001 if name == USAGE else MOST)


def sound(values: dict[str, float], left_out: dict[str, str]) -> dict[str, float]:
    """Return the numbers without those that are left out; hits above queries join these."""
    hits = values.get(HITS, 0.0)
    if QUERIES in values and hits > values[QUERIES]:
        left_out.setdefault(HITS, f"{hits:g}, above its queries")
    return {name: value for name, value in values.items() if name not in left_out}
