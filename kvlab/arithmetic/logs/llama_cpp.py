"""The lines of llama.cpp that speak of its caches, old and new, and the model it says it loaded."""

from kvlab.arithmetic.logs.facts import LinePattern

ENGINE = "llama.cpp"

_KV = (
    r"K \((?P<k_type>\w{2,8})\):\s{0,6}(?P<k_bytes><NUM>) (?P<k_bytes_unit>MiB),"
    r" V \((?P<v_type>\w{2,8})\):\s{0,6}(?P<v_bytes><NUM>) (?P<v_bytes_unit>MiB)"
)
_TOTAL = r"size\s{0,4}=\s{0,6}(?P<cache_bytes><NUM>) (?P<cache_bytes_unit>MiB)"


def _info(key: str, name: str, value: str = r"\d{1,12}") -> LinePattern:
    # "new slot, n_ctx" is the share of one slot, printed after the whole context.
    return LinePattern(f"{key} ", rf"(?<![\w.])(?<!slot, ){key}\s{{1,24}}= (?P<{name}>{value})")


PATTERNS = (
    LinePattern("loaded meta data", r"llama_model_loader: loaded meta data", is_start=True),
    LinePattern(
        "llama_kv_cache",
        rf"llama_kv_cache\w{{0,16}}:\s{{1,8}}{_TOTAL} \(\s{{0,8}}(?P<cells><NUM>) cells,"
        r"\s{1,4}(?P<layers><NUM>) layers,\s{1,4}(?P<seqs><NUM>)"
        r"(?:/\s{0,3}(?P<streams><NUM>))? seqs\)"
        rf",?\s?(?:{_KV})?",
    ),
    LinePattern("KV self size", rf"KV self {_TOTAL}(?:, {_KV})?"),
    LinePattern("kv_size = ", r"kv_size = (?P<cells><NUM>)"),
    LinePattern(
        "KV buffer size",
        r"(?P<device>[\w.:\[\]-]{2,60}) KV buffer size =\s{1,8}(?P<buffer_bytes><NUM>)"
        r" (?P<buffer_bytes_unit>MiB)",
    ),
    LinePattern(
        "memory_recurrent",
        r"llama_memory_recurrent:\s{1,4}size =\s{1,8}(?P<state_bytes><NUM>)"
        r" (?P<state_bytes_unit>MiB) \(\s{0,8}(?P<state_cells><NUM>) cells"
        r"(?:,\s{1,4}\d{1,6} layers,\s{1,4}\d{1,6} seqs\s{1,4}(?P<rollbacks><NUM>) rs_seq)?",
    ),
    LinePattern(
        "--swa-full", r"with --swa-full: (?P<process_full><NUM>) (?P<process_full_unit>MiB)"
    ),
    LinePattern(
        "--swa-full", r"without --swa-full: (?P<process_swa><NUM>) (?P<process_swa_unit>MiB)"
    ),
    LinePattern("general.name", r"general\.name str\s{1,40}= (?P<model>[^\n]{1,120})"),
    LinePattern(
        "general.name ", r"print_(?:info|meta): general\.name\s{1,24}= (?P<model>[^\n]{1,120})"
    ),
    LinePattern("llama_model_loader", r"from (?P<file_name>[^\n]{1,300}\.gguf)"),
    _info("arch", "architecture", r"[\w-]{2,40}"),
    _info("n_ctx", "context"),
    _info("n_seq_max", "sequences"),
    _info("n_ubatch", "ubatch"),
    _info("n_layer", "num_layers"),
    _info("n_head", "num_heads"),
    _info("n_head_kv", "num_kv_heads"),
    _info("n_embd_head_k", "k_dim"),
    _info("n_embd_head_v", "v_dim"),
    _info("n_embd_k_gqa", "k_row"),
    _info("n_embd_v_gqa", "v_row"),
    _info("n_swa", "window"),
)
