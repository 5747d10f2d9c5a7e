"""What deserves a word even where a prediction holds: copies, padding, groups, views."""

from collections.abc import Iterator

from kvlab.arithmetic.logs.case import Case
from kvlab.arithmetic.logs.facts import Run
from kvlab.arithmetic.logs.finding import DIFFERS, Finding
from kvlab.arithmetic.logs.vllm_views import METAL, View, views
from kvlab.arithmetic.payload import CacheTypes, entry_bytes
from kvlab.arithmetic.request import size_request
from kvlab.arithmetic.storage import CROSS, FULL, GROWING, LATENT, STATE, ModelStorage
from kvlab.arithmetic.units import format_bytes


def remarks(run: Run, case: Case, finding: Finding) -> Iterator[str]:
    """Give what explains a number beyond its rule; nothing where the rule says it all."""
    if finding.verdict not in (DIFFERS, "equal"):
        yield from _rounding(finding)
    if run.engine == "vllm":
        yield from _vllm(case, finding)
    if run.engine in ("llama.cpp", "ollama"):
        yield from _llama_cpp(case, finding)
    if run.engine == "tensorrt-llm" and finding.quantity == "cache_bytes":
        yield from _padded_values(case.model)
    if finding.quantity == "k_bytes":
        yield from _widths(case.model)
    if " read as " in finding.estimate.rule:
        unit = finding.estimate.rule.rsplit(" ", 1)[-1]
        yield f"the unit is named loosely: the number fits in {unit} only"


def _rounding(finding: Finding) -> Iterator[str]:
    estimate, fact = finding.estimate, finding.fact
    if estimate.high > estimate.low:
        low, high = (f"{x / fact.scale:,.6g}" for x in (estimate.low, estimate.high))
        yield f"the digits printed for its inputs allow {low} to {high}"
    elif fact.half_step:
        exact = estimate.value / fact.scale
        if f"{exact:.6g}" != f"{fact.number / fact.scale:.6g}":
            yield f"exactly {exact:,.6g}, printed with fewer digits"


def _vllm(case: Case, finding: Finding) -> Iterator[str]:
    pool = views(case)
    if pool is None or case.model is None:
        return
    if finding.quantity == "kv_tokens":
        yield from _groups(case, pool[0], finding)
    if finding.quantity in ("kv_tokens", "needed", "num_blocks"):
        yield from _copies(case)
        yield from _padding(case, pool[0])
    if finding.quantity == "max_concurrency" and pool[0].num_groups > 1:
        yield "not tokens / length: windows, states and sources need other numbers of blocks"
    if case.settings.platform == METAL and finding.quantity == "needed":
        length = case.settings.max_model_len or 1
        least = size_request(case.model, context=length, cache_dtype=case.settings.cache_dtype)
        yield (
            "this plugin reports every layer as full attention: windows save nothing here; with"
            f" them one request would need {format_bytes(least.kv_bytes)}"
        )


def _groups(case: Case, view: View, finding: Finding) -> Iterator[str]:
    kinds = [group.kind for group in view.layout.groups]
    if len(kinds) < 2:
        return
    named = ", ".join(f"{kinds.count(kind)} x {kind}" for kind in dict.fromkeys(kinds))
    size, groups = view.layout.group_size, len(kinds)
    yield (
        f"{groups} groups of {size} layers ({named}) take blocks from one pool, so the printed"
        f" tokens are the blocks / {groups}: as if all layers kept every token"
    )
    if kinds.count(FULL) == 1 and STATE in kinds:
        tokens = int(finding.fact.number) * groups
        yield f"states take one slot a request: the attention layers could hold about {tokens:,}"
    if CROSS in kinds:
        yield "cross-attention is charged at the encoder budget, not at the length of its source"


def _copies(case: Case) -> Iterator[str]:
    tp, model = case.settings.tp, case.model
    if tp == 1 or model is None:
        return
    if any(layer.kind == LATENT for layer in model.layers):
        yield f"a latent serves all heads: each of the {tp} ranks keeps it whole"
    heads = {x.num_kv_heads for x in model.layers if x.kind in GROWING and x.kind != LATENT}
    for count in sorted(heads):
        if count < tp:
            yield f"{count} KV head(s) on {tp} ranks: heads are copied, each rank keeps one"


def _padding(case: Case, view: View) -> Iterator[str]:
    """Pages that were made equal cost more than the layers need."""
    if case.model is None or STATE in (group.kind for group in view.layout.groups):
        return
    types = CacheTypes.of(case.settings.cache_dtype)
    needs = sum(
        entry_bytes(x, types, case.settings.tp) // x.stride
        for x in case.model.layers
        if x.kind in GROWING
    )
    pays = view.block_bytes * view.num_groups / view.block_size
    if pays > needs and view.num_groups > 1 and CROSS not in (g.kind for g in view.layout.groups):
        yield (
            f"all pages are made equal: a printed token stands for {format_bytes(int(pays))}, the"
            f" layers need {format_bytes(needs)}"
        )


def _llama_cpp(case: Case, finding: Finding) -> Iterator[str]:
    model = case.model
    if model is None:
        return
    if finding.quantity == "cache_bytes":
        if model.model_type in ("bert", "nomic_bert", "roberta", "xlm-roberta"):
            yield "an encoder needs no KV cache: this version allocated one anyway"
        if "streams" in finding.estimate.rule:
            yield "the printed cells are of one stream; every stream has as many"
        if "without a window" in finding.estimate.rule:
            yield "windowed layers have a cache of their own, printed on another line"
        if any(x.kind == STATE for x in model.layers):
            yield "layers with a fixed state have no row here; their states are printed apart"
        if any(x.kind == LATENT for x in model.layers):
            yield "one latent and one RoPE key a token and layer: no factor 2"
    if finding.quantity == "state_bytes":
        yield "states grow with the sequences (or snapshots) kept, never with the context"


def _padded_values(model: ModelStorage | None) -> Iterator[str]:
    if model and any(x.k_dim != x.v_dim for x in model.layers if x.kind in GROWING):
        yield "this engine gives values rows as wide as keys: the narrower ones are padded"


def _widths(model: ModelStorage | None) -> Iterator[str]:
    growing = [x for x in model.layers if x.kind in GROWING] if model else []
    if any(x.k_dim != x.v_dim for x in growing if x.kind != LATENT):
        yield 'keys and values have different widths: "2 x" would be wrong'
