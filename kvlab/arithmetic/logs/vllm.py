"""The lines of vLLM (V0 and V1, its plugins for other hardware too) that speak of memory."""

from kvlab.arithmetic.logs.facts import LinePattern

ENGINE = "vllm"

_SIZE = r"(?P<{0}><NUM>)\s?(?P<{0}_unit><UNIT>)"


def _sized(text: str, *names: str) -> str:
    for name in names:
        text = text.replace("<SIZE>", _SIZE.format(name), 1)
    return text


PATTERNS = (
    LinePattern("LLM engine (v", r"LLM engine \(v?(?P<version>[\w.+-]{1,40})\)", is_start=True),
    LinePattern("vLLM API server", r"vLLM API server version (?P<version>[\w.+-]{1,40})", True),
    LinePattern("KV cache memory", _sized(r"Available KV cache memory: <SIZE>", "available")),
    LinePattern("KV cache size:", r"KV cache size:\s{0,3}(?P<kv_tokens><NUM>) tokens"),
    LinePattern(
        "Maximum concurrency",
        r"Maximum concurrency for (?P<concurrency_length><NUM>) tokens per request:"
        r"\s{0,3}(?P<max_concurrency><NUM>)x",
    ),
    LinePattern("blocks:", r"# (?!CPU)\w{2,8} blocks:\s{0,3}(?P<num_blocks><NUM>)"),
    LinePattern("# CPU blocks:", r"# CPU blocks:\s{0,3}(?P<cpu_blocks><NUM>)"),
    LinePattern("num_gpu_blocks", r"num_gpu_blocks(?: is)?[:=]\s{0,2}(?P<num_blocks><NUM>)"),
    LinePattern("KV cache is needed", _sized(r"<SIZE> KV cache is needed", "needed")),
    LinePattern(
        "KV cache is needed",
        _sized(r"available\s{1,6}KV cache memory\s{1,6}\(<SIZE>\)", "available"),
    ),
    LinePattern(
        "estimated maximum model length",
        r"estimated maximum model length is (?P<estimated_max_len><NUM>)"
        r"(?P<estimated_max_len_unit>k)?",
    ),
    LinePattern(
        "that can be stored in KV cache",
        r"max seq len \((?P<max_model_len><NUM>)\) is larger than the maximum number of tokens"
        r" that can be stored in KV cache \((?P<kv_tokens><NUM>)\)",
    ),
    LinePattern("max seq len", r"models?(?:'s)? max seq len\s{1,6}\((?P<max_model_len><NUM>)\)"),
    LinePattern(
        "Setting attention block size",
        r"Setting attention block size to (?P<block_size><NUM>) tokens",
    ),
    LinePattern(
        "Desired GPU memory utilization",
        _sized(r"Desired GPU memory utilization is \((?P<utilization><NUM>), <SIZE>\)", "budget"),
    ),
    LinePattern(
        "Actual usage is",
        _sized(
            r"Actual usage is <SIZE> for weights?, <SIZE> for peak activation, <SIZE> for"
            r" non-torch memory, and <SIZE> for CUDAGraph memory",
            "weights",
            "activation",
            "non_torch",
            "graphs",
        ),
    ),
    LinePattern("kv cache memory in use", _sized(r"kv cache memory in use is <SIZE>", "available")),
    LinePattern(
        "total_gpu_memory",
        _sized(
            r"total_gpu_memory \(<SIZE>\) x gpu_memory_utilization"
            r" \((?P<utilization><NUM>)\) = <SIZE>",
            "total",
            "budget",
        ),
    ),
    LinePattern("model weights take", _sized(r"model weights take <SIZE>", "weights")),
    LinePattern("non_torch_memory", _sized(r"non_torch_memory takes <SIZE>", "non_torch")),
    LinePattern("activation peak", _sized(r"activation peak memory takes <SIZE>", "activation")),
    LinePattern("reserved for KV Cache", _sized(r"reserved for KV Cache is <SIZE>", "available")),
    LinePattern("Model loading took", _sized(r"Model loading took <SIZE>", "weights")),
    LinePattern(
        "Graph capturing",
        _sized(r"Graph capturing finished in \d{1,6} secs?, took <SIZE>", "graphs"),
    ),
    LinePattern("vllm_metal", r"(?P<platform>vllm_metal)"),
)
"""`available` is what one worker may use for its cache; every worker prints its own."""
