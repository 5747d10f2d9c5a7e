"""Memory, work and time by exact arithmetic: whole numbers in, whole numbers out, no torch.

Nothing is imported here, so that asking for one formula costs one file. The map of the room:

**Units and checks.** `units` (GIB, GB, format_bytes), `checks` (whole_number).

**A model as storage.**
`reader.read_model(source, *, include_mtp=False, allow_hub=False) -> ModelStorage`: `source` is a
dict, a path to a config.json or its folder, a name in the catalogue, or a hub id (`allow_hub`).
`storage.ModelStorage`: name, model_type, layers, notes, num_heads, hidden_size, max_seq_len,
weights_dtype, text_block; properties num_layers, groups, elements_per_token.
`storage.LayerStorage`: index, kind (full, windowed, chunked, latent, shared, cross, state, none),
num_kv_heads, k_dim, v_dim, window, index_elements, states; property elements_per_token.
One layer of the model may own several of them (attention beside a state, self beside cross).
`dtypes.cache_dtype(name) -> CacheDtype`: name, block, block_bytes; `.bytes_for(elements)`.

The road of a config: `config_source` -> `text_block` -> `layer_types` (with `layer_lists`,
`class_patterns`) -> `layer_blocks` -> `families` (with `latent_family`, `state_families`) ->
`sharing` -> `unknown_types`; every field is read through `config_fields`, flags, lists and tables
through `config_forms`.

**Three accountings, in bytes.**
`request.size_request(model, *, context, batch=1, cache_dtype="bf16", value_dtype=None, tp=1, pp=1,
source_length=0) -> RequestSize`: bytes_per_token, bytes_per_token_per_rank, kv_bytes, state_bytes,
cross_bytes, index_bytes, request_bytes, request_bytes_per_rank, reserved_bytes,
reserved_bytes_per_rank, stages (one StageSize a pipeline stage), notes.
`ranks.split_layers(model, pp)`, `ranks.heads_on_rank(heads, tp)`, `ranks.check_tp(model, tp)`.
`accounting.accountings(model, *, context, batch=1, cache_type="bf16", ...) -> Accountings`: these
two and the charges of vLLM and llama.cpp, side by side.
`vllm_pages.vllm_layout(model, *, block_size=16, cache_dtype="bf16", tp=1, pp=1, stage=0) ->
VllmLayout` (groups, page_bytes, block_bytes, block_size), then
`.blocks_per_request(max_model_len, max_batched_tokens)`, `.capacity(budget_bytes, max_model_len,
max_batched_tokens) -> VllmCapacity(num_blocks, tokens, concurrency)`.
`llama_cpp.llama_cpp_bytes(model, *, context, sequences=1, cache_dtype, value_dtype, ubatch=512,
swa_full=False) -> LlamaCppCache(kv_bytes, swa_bytes, state_bytes, cells, swa_cells)`.

**Planning.** `sizing.plan(model, *, context, gpu | gpu_bytes, gpus, tp, pp, dp, output, users,
cache_dtype, weights_dtype, utilization, overhead_bytes, block_size, ttft_target, tpot_target) ->
Plan`: ranks, tightest, concurrency, admission_bound, capacity_tokens, fits, verdict, notes. On a
plan: `plan_rows.rank_rows` (every rank and what it keeps), `plan_pooled` (pooled_plan,
assumption_steps), `plan_timing` (time_plan, what_binds), `plan_changes` (next_changes,
cheapest_change), `plan_engine.engine_capacity`, `plan_command.vllm_command`,
`plan_report.plan_report` (all as one dict). `plan_search.gpus_needed`: users in, GPUs out.
`plan_ranks.fit_in_budget`: a budget that is known already. `preemption.preemption_cost`.
Under these: `plan_inputs`, `plan_deployment`, `plan_weights` (`plan_dense`, `plan_experts`),
`plan_pages` (what vLLM's pages charge where windows or states make it more than the bytes),
`plan_checks`, `plan_notes`; `roofline` (with `roofline_work`) for the times.

**Logs.** `logs` reads what an engine printed at its start, predicts each number from the config and
explains what differs: `logs.report.explain_log(text, *, model=None, config=None) -> LogReport`,
`logs.rows.load_engine_rows()`, `logs.naive.NAIVE`. Its own map is in `logs/__init__.py`.

**Smaller caches.** `quantized_bytes` (quantized_bytes, compression, bits_per_element; options in
`quantized_options`, formats in `quantized_formats`, the 256 values of FP8 in `float8_values`),
`latent_work` (LatentShape, latent_work, absorbing_pays_up_to), `cache_cuts` (cache_cut,
fewer_parameters_than_mha), `head_sharing` (who shares KV heads), `tier_times` (PCIe and NVMe
against prefilling again).

**Prices.** `prices` (load_prices, find_price -> CachePrice): cached prompt tokens, dated.

**Facts.** `catalogue` (load_models, find_model -> CatalogueRow, with `parameters`), `gpus`
(load_gpus, find_gpu -> Gpu).

**Dense Llamas.** `shapes` (ModelShape), `memory` (kv_bytes), `flops`, `flop_steps`.
"""
