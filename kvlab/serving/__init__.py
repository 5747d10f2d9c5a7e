"""Many requests, one pool: a scheduler, and two workers that carry out what it plans.

Nothing is imported here; all but `engine` and `llama_worker` know no torch.

**A request.** `request` (Request, Sampling, prompt), `sequence` (Sequence: one answer under way).
**Deciding.** `limits` (Limits), `queue` (WaitingQueue), `memory` (blocks on device and host),
`admission` (in and out), `scheduler.Scheduler(manager, limits, observer=...)`: `add`, `abort`,
`schedule() -> StepPlan`, `complete(plan, tokens)`. `plan` (StepPlan, Move, Chunk, StepLoad),
`events` (what happened, as rows), `counts`.
**Time passing.** `loop.ServingLoop(scheduler, worker, requests)`: arrivals, steps, metrics;
`arrivals`, `metrics` (names of vLLM), `quantiles`, `timeline` (points for a chart).
**Without a model.** `step_clock.StepClock` prices a step by the roofline; `worker.ClockWorker`;
`quiet` takes equal steps together; `simulator.simulate(requests, clock, num_blocks=...)`;
`fleet.plan_fleet`, `fleet.simulate_fleet` (a planned deployment), `report.serving_report`.
**With a model.** `engine.Engine(model, num_blocks=..., block_size=...).serve(requests)`.
**Real engines.** The room `engines`: vLLM and llama.cpp started, read and stopped, or replayed.
**Traffic.** `lengths`, `workloads` (Poisson, burst, shared prompts), `chat` (turns that follow each
other), `trace` (CSV, JSONL), `workload.Workload` (all of it as a terminal says it).
"""
