"""Real engines beside the course: predicted, started, read, loaded, stopped; or replayed.

Nothing is imported here; nothing here knows torch but `transformers_paged`, and it late.

**Runs by name.** `replay.run(name, live=None) -> runs.EngineRun`: live where the engine is
installed, else our recording, and `EngineRun.says` tells which. `replay.recorded()`,
`scenarios.SCENARIOS`, `play.play(name)`, `tasks` (what is asked), `record` (for the recordings).
**An engine of your own.** `vllm.VllmPlan(...)` or `llamacpp.LlamaCppPlan(...)`: `.predict()`,
`.check(...)`, `.command(...)`; `running.start(plan) -> RunningEngine`: `.readings()`, `.report()`,
`.send(requests) -> served.Load`, `.rss_bytes()`, `.stop()`; also as a `with` block.
`transformers_paged.run_transformers_paged(TransformersPlan(...), requests)`: nothing to install.
`same_load.our_schedule(plan, requests)`: the same requests through our own scheduler.
**A server elsewhere.** `probe.probe(url, model=...)`, in a terminal `kvlab probe URL`.
**Parts.** `environments` (where an engine lies), `process` and `guard` (it never outlives us),
`endpoint` (a bounded reader), `exposition`, `readings` (metrics by vLLM's names), `clients`,
`load`, `watch`, `real_ids`, `failures` (refusals explained), `agreement`, `recording`, `machine`.
"""
