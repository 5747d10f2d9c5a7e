"""The lines of ollama itself: its estimate before it starts llama.cpp, and its own engine's."""

from kvlab.arithmetic.logs.facts import LinePattern

ENGINE = "ollama"

PATTERNS = (
    LinePattern(
        "memory.required.kv",
        r"memory\.required\.kv=\"(?P<estimate_bytes><NUM>) (?P<estimate_bytes_unit><UNIT>)\"",
        is_start=True,
    ),
    LinePattern(
        "kv cache",
        r"msg=\"kv cache\" device=(?P<device>[\w:.-]{1,40})"
        r" size=\"(?P<buffer_bytes><NUM>) (?P<buffer_bytes_unit><UNIT>)\"",
    ),
    LinePattern("--ctx-size", r"--ctx-size (?P<context><NUM>)"),
    LinePattern("KvSize:", r"KvSize:(?P<context><NUM>)"),
    LinePattern("--parallel", r"--parallel (?P<sequences><NUM>)"),
    LinePattern("Parallel:", r"\bParallel:(?P<sequences><NUM>)"),
    LinePattern("--batch-size", r"--batch-size (?P<ubatch><NUM>)"),
    LinePattern("--kv-cache-type", r"--kv-cache-type (?P<cache_dtype>\w{2,8})"),
    LinePattern("KvCacheType:", r"KvCacheType:(?P<cache_dtype>\w{2,8})"),
    LinePattern(
        "source=server.go", r"msg=\"starting (?P<runner>llama server|ollama engine|runner)\""
    ),
)
