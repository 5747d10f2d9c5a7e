# %% [markdown]
# # 10 Serving under pressure
#
# [Open in Colab](https://colab.research.google.com/github/kvlab/kvlab/blob/main/chapters/10_serving_under_pressure.ipynb)
#
# **The question.** What happens when the memory is full?

# %% [markdown]
# **After this chapter you can**
#
# - say what a queue waits for from four gauges: running, waiting, pool use, preemptions;
# - explain continuous batching step by step: who comes in, who grows, who gives way and what that costs;
# - order the defences against a burst, and say what a rising preemption counter does not tell you.
#
# The results of a run are saved in this page. To guess before you see them, choose *Edit > Clear Outputs of All Cells*.

# %% tags=["setup"]
import sys

if "google.colab" in sys.modules:  # your own machine needs nothing here
    from IPython import get_ipython

    get_ipython().run_line_magic("pip", "install -q gguf pint")
    source = "git+https://github.com/kvlab/kvlab@main"
    get_ipython().run_line_magic("pip", f"install -q --no-deps {source}")
    from kvlab.doctor.colab import prepare

    print(prepare(weights=False))

# %%
from kvlab.figures.course_map import chapter_line

chapter_line("10")

# %% [markdown]
# **Core** 20 minutes, **deep dives** 20 minutes. You need blocks from chapter 06 (pieces of the cache, all of one size, handed out on demand), TTFT and TPOT from chapter 04, and for one deep dive shared prefixes from chapter 07.
#
# A real Llama comes along: the bundled `tiny`, on the processor and in float64, so that no rounding can turn one token into another.

# %% tags=["setup"]
import copy

from IPython.display import display

from kvlab.model.load import load_model
from kvlab.widgets.predict import predict, reveal

loaded = load_model("tiny", device="cpu", dtype="float32")
model = copy.deepcopy(loaded.model).double()
loaded

# %% [markdown]
# <a id="one-works"></a>
# ## 1. One works, twelve wait
# **Core · 3 minutes**
#
# An **engine** is the program that runs a model for many users at once. Its **pool** is all the blocks it has for keys and values. Ours is small on purpose: 20 blocks of 8 tokens. First a single request, then twelve of the same kind, all at once.

# %% tags=["timing", "nbval-ignore-output"]
from kvlab.model.sample_text import sample_ids
from kvlab.serving.engine import Engine
from kvlab.serving.request import prompt

ids = sample_ids(loaded, 400)[0].tolist()
requests = [prompt(i, ids[11 * i : 11 * i + 24 + 3 * (i % 4)], 24) for i in range(12)]
engine = Engine(model, num_blocks=20, block_size=8, prefix_caching=False)
one_wait = engine.start(requests[:1], {}).run().ttft.percentile(100)
print(f"one request: its first token after {1000 * one_wait:.1f} ms")

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "Twelve at once. How many times as long as that one does the last of them wait for its first token?",
    unit="x",
    key="10-burst",
)

# %% [markdown]
# `Watch` looks at the engine after every step, as a dashboard does.

# %% tags=["timing", "nbval-ignore-output"]
from kvlab.serving.watch import Watch

answers, burst = {}, Watch()
last_wait = engine.start(requests, answers, on_step=burst).run().ttft.percentile(100)
print(f"all {len(answers)} answered; the last one's first token after {1000 * last_wait:.0f} ms")
reveal("10-burst", f"{last_wait / one_wait:.0f}x", measured=True, remark="No error, no warning.")

# %% [markdown]
# Nothing failed, and no message says why it was slow. Four gauges do. **Running**: requests that hold blocks and get a token each step. **Waiting**: requests in the queue, with no block of their own. **Pool use**: the share of blocks that somebody holds. **Preemption**: a running request loses its blocks and waits again.
#
# Before you read on: which of the four tells you what the twelve waited for?

# %%
from kvlab.figures.serving_tracks import serving_tracks

reading = "The same burst, step by step: who runs and waits, the pool, preemptions so far."
serving_tracks(burst.looks, by_step=True, times=False, title="Twelve at once", reading=reading)

# %% [markdown]
# Pool use does. It is high for as long as anybody waits, and the queue shortens only when somebody ends. The next cell puts numbers to it.

# %%
first, last = burst.looks[0], burst.looks[-1]
print(f"step 1: {first.running} run, {first.waiting} wait, pool {first.block_use:.0%} in use")
queue = [seen.block_use for seen in burst.looks if seen.waiting]
print(f"while a queue stood: {sum(queue) / len(queue):.0%} in use on average")
print(f"after step {last.step}: {last.preemptions} preemptions")
need = [-(-r.peak_tokens // 8) for r in requests]
print(f"at its end a request holds {min(need)} to {max(need)} blocks, all twelve {sum(need)}")

# %% [markdown]
# Look at the preemptions: five came in at step 1 because their **prompts** fit. Then every answer grew, the pool did not, and one of the five had to go.

# %% [markdown]
# <a id="scheduler"></a>
# ## 2. The scheduler in fifteen lines
# **Core · 4 minutes**
#
# **Continuous batching**: the batch is put together anew for every step. Whoever ends leaves at once, and whoever waits may join at once; nobody waits for a batch to finish. A **scheduler** decides each step:
#
# 1. Each running request gets one token. It takes a new block when its last one is full.
# 2. No block left? The youngest running request is **preempted**: it gives its blocks back and goes to the front of the queue. By **recompute**, it will prefill everything again, its own words included.
# 3. If nobody had to go, the head of the queue (the first in line) is **admitted** (let in) while its blocks are free. First come, first served: nobody overtakes.


# %%
def serve(requests, num_blocks, block_size):
    def blocks(batch):
        return sum(-(-tokens // block_size) for tokens, _ in batch)

    waiting, running, gauges = list(requests), [], []  # of pairs (tokens now, tokens to write)
    while waiting or running:
        someone_left = False
        while blocks(running) > num_blocks:
            waiting.insert(0, running.pop())
            someone_left = True
        while waiting and not someone_left and blocks([*running, waiting[0]]) <= num_blocks:
            running.append(waiting.pop(0))
        gauges.append((len(running), len(waiting)))
        running = [(tokens + 1, left - 1) for tokens, left in running if left > 1]
    return gauges


# %% [markdown]
# Is that really it? The package's scheduler gets the same twelve requests, as lengths alone. It knows no model and no clock: it makes a plan, somebody carries the plan out, and it is told that it is done.

# %%
from kvlab.paging import BlockManager
from kvlab.serving.request import Request
from kvlab.serving.scheduler import Scheduler

lengths = [(r.prompt_tokens, r.max_new_tokens) for r in requests]
scheduler = Scheduler(BlockManager(20, 8))
for number, (tokens, answer_tokens) in enumerate(lengths):
    scheduler.add(Request(number, tokens, answer_tokens))
theirs = []
while scheduler.has_work:
    plan = scheduler.schedule()
    theirs.append((plan.batch, len(scheduler.waiting)))
    scheduler.complete(plan)
assert serve(lengths, 20, 8) == theirs
print(f"{len(theirs)} steps, {scheduler.counts.preemptions} preemptions: equal in every step")

# %% [markdown]
# What the package adds: prompts longer than a step's **token budget** (the most tokens computed in one step) are cut into chunks, a limit of seats (section 4), priorities, swapping (section 9), shared prefixes (section 10), several samples of one prompt. A request that could never fit is refused at the door, and one that outgrows the whole pool alone ends with an error.

# %%
tiny_pool = Scheduler(BlockManager(4, 8))
for tokens, answer_tokens in ((40, 5), (24, 20)):
    tiny_pool.add(Request(tokens, tokens, answer_tokens))
while tiny_pool.has_work:
    tiny_pool.complete(tiny_pool.schedule())
for seq in tiny_pool.take_ended():
    print(seq.error)

# %% [markdown]
# <a id="two-workers"></a>
# ## 3. One scheduler, two workers
# **Core · 3 minutes**
#
# In section 1 this scheduler drove a real model. It can also drive a **clock**: a worker that computes nothing and says how long a step takes at least, by the roofline of chapter 04. First the real one again, with arrivals spread out; then each request by itself, with a plain cache that grows and no engine at all.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "Twelve answers, some of them preempted half-way. How many differ from the same request run alone?",
    unit="",
    key="10-differ",
)

# %%
from dataclasses import replace

from kvlab.arithmetic.roofline import Device
from kvlab.model.decode import generate
from kvlab.model.phase_timing import deployment_of
from kvlab.serving.step_clock import StepClock

clock = StepClock(deployment_of(loaded), Device("a slow machine", 1e9, 0.5e9), block_size=8)
spread = [replace(r, arrival_seconds=0.005 * r.request_id) for r in requests]
real_events, answers = [], {}
timed = Engine(model, num_blocks=20, block_size=8, clock=clock, observer=real_events.append)
real = timed.start(spread, answers)
real.run()
by_itself = {}
for r in spread:
    steps = generate(model, list(r.prompt_ids), max_new_tokens=r.max_new_tokens)
    by_itself[r.request_id] = [int(step.token_ids[0]) for step in steps]
differ = sum(answers[i, 0].token_ids != tokens for i, tokens in by_itself.items())
preempted = sum(answer.num_preemptions > 0 for answer in answers.values())
assert differ == 0 and preempted > 0
reveal("10-differ", differ, remark=f"{preempted} of them were preempted on the way.")

# %% [markdown]
# Tokens never depend on the pool, on who else runs, or on giving way. That is the first promise. The second: the same requests, with the clock in place of the model. The tokens are replayed, because shared prefixes are found by tokens.

# %%
from kvlab.serving.simulator import make_loop, simulate
from kvlab.serving.worker import as_written

written = {name: answer.token_ids for name, answer in answers.items()}
clocked_events = []
clocked = simulate(
    [as_written(r, written) for r in spread],
    clock,
    num_blocks=20,
    observer=clocked_events.append,
)
assert clocked_events == real_events
assert clocked.metrics.ttft.summary() == real.metrics.ttft.summary()
print(f"{len(real_events)} events (in, preempted, back, ended): the same in the same step")
print(f"{real.scheduler.counts.preemptions} preemptions, {real.scheduler.counts.steps} steps, both")

# %% [markdown]
# So what you learn from the clock about **who runs, waits and gives way** is what the real engine does. The **seconds** are lower bounds: launches, sampling, Python and the talk between GPUs are left out.

# %% [markdown]
# <a id="load"></a>
# ## 4. Thousands of requests in seconds
# **Core · 4 minutes**
#
# Now a real size, with the clock: Llama 3.1 8B in bf16 on one H100. The planner of chapter 11 says what is left for the pool.

# %%
from kvlab.serving.fleet import plan_fleet

card = plan_fleet("llama-3.1-8b", gpu="H100", typical_tokens=1300)
card_clock = card.clock()
print(card.pool_said)

# %% [markdown]
# Requests come at random moments, so many a second on average. Prompts have 1,000 tokens on average, answers 300, both with a long tail. At 20 a second half of the first tokens come within some 20 ms.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "50 a second arrive in place of 20. How many times as long is the median wait for the first token?",
    unit="x",
    key="10-rush",
)

# %%
from kvlab.figures.tables import table
from kvlab.serving.workloads import make_requests, poisson_arrivals

rows, median = [], {}
for rate in (10, 20, 30, 40, 50):
    sizes = {"prompt_tokens": "lognormal:1000:0.8", "output_tokens": "lognormal:300:0.7"}
    traffic = make_requests(1500, **sizes, arrivals=poisson_arrivals(rate, seed=1), seed=1)
    done = simulate(traffic, card_clock, num_blocks=card.num_blocks).metrics
    median[rate] = done.ttft.percentile(50)
    ms = [1000 * times.percentile(p) for times in (done.ttft, done.tpot) for p in (50, 95)]
    gauges = (done.sustained_batch, done.tokens_per_second, done.peak_waiting)
    rows.append((f"{rate} a second", *(f"{value:,.0f}" for value in (*gauges, *ms))))
header = ["arrivals", "batch", "tokens/s", "most waiting", "TTFT p50", "p95", "TPOT p50", "p95"]
display(reveal("10-rush", f"{median[50] / median[20]:.0f}x", remark="See the queue grow."))
table(header, rows, numeric=range(1, 8), caption="1,500 requests each; times in ms")

# %% [markdown]
# Tokens a second stop rising: the server is **saturated**. TPOT rises with the batch and then stands still, because the batch can't grow any more: all 256 **seats** are taken, the most requests that this engine lets run at once (section 5). Here seats run out before blocks do. TTFT explodes, because from there on time is spent in the queue, and it grows for as long as the rush lasts. p50, the median, means that half were faster, p95 that 19 of 20 were: users remember p95.
#
# Now your turn. 240 requests on the same card with a smaller pool. Turn arrivals up until a queue stands; find out what it waits for; then double the pool. **How to read it:** the dashed line is now, pale is later; drag the time or press play.

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.serving_explorer import serving_explorer

serving_explorer(start=40)

# %% [markdown]
# Three things to try. Arrivals 32, then each pool size: when do preemptions stop, and when does the queue? Prompts of 128 with 64 arrivals: is anything short? Then let in only who finds room for prompt and stated answer, and compare the sustained batch.

# %% [markdown]
# <a id="diagnose"></a>
# ## 5. What are they waiting for?
# **Core · 4 minutes**
#
# Besides blocks a server has seats, as we saw. And a step has its token budget. Three servers, the same model and card as in section 4, and at each **20 requests a second** arrive. In all three a queue stands and the first token is late. They differ in pool, seats or traffic. Only the gauges are shown.

# %%
from collections import Counter

from kvlab.serving.limits import Limits

LONG = {"prompt_tokens": 4000, "output_tokens": 20}
MIXED = {"prompt_tokens": "uniform:200:800", "output_tokens": "uniform:100:500"}
servers = {
    "1": (MIXED, 1500, Limits()),
    "2": (MIXED, card.num_blocks, Limits(max_running=32)),
    "3": (LONG, card.num_blocks, Limits()),
}
rows, lacking, RATE = [], {}, 20
for name, (sizes, num_blocks, limits) in servers.items():
    traffic = make_requests(800, **sizes, arrivals=poisson_arrivals(RATE, seed=1), seed=1)
    seen = Watch()
    loop = simulate(traffic, card_clock, num_blocks=num_blocks, limits=limits, on_step=seen)
    middle = seen.looks[len(seen.looks) // 2]
    lacking[name] = Counter(look.waits_for for look in seen.looks if look.waiting).most_common(1)[0]
    tpot = f"{1000 * loop.metrics.tpot.percentile(50):.1f} ms"
    gauges = (middle.running, middle.waiting, f"{middle.block_use:.0%}", middle.preemptions)
    rows.append((name, *map(str, gauges), f"{loop.metrics.ttft.percentile(50):.1f} s", tpot))
header = ["server", "running", "waiting", "pool use", "preemptions", "TTFT p50", "TPOT p50"]
table(header, rows, numeric=range(1, 7), caption="20 arrivals a second; half-way")

# %% [markdown]
# The gauges are those half-way, p50 is over all 800 requests. Each server is slow for a reason of its own.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict("Which of the three would answer sooner with more memory: 1, 2 or 3?", key="10-memory")

# %%
for name, (word, _) in lacking.items():
    print(f"server {name}: mostly the head of its queue waits for {word}")
(needs_blocks,) = [name for name, (word, _) in lacking.items() if word == "blocks"]
reveal("10-memory", needs_blocks, remark="The others have blocks to spare.")

# %% [markdown]
# The way to read it:
#
# | waiting, and | it lacks | what helps |
# |---|---|---|
# | pool near 100 %, preemptions rise | blocks | fewer bytes a token, more memory, shorter contexts |
# | pool low, running at its limit | seats (`max_num_seqs`) | raise the limit, while TPOT allows |
# | pool below 100 %, running below its limit, TPOT high | the token budget: arithmetic | a faster or a second server, shorter prompts |
#
# Server 2 has 32 seats and hardly touches its pool. Server 3 gets prompts of 4,000 tokens and computes prompts all the time, so everybody's next token is late too. Server 1 has a pool of 1,500 blocks only.
#
# <a id="rising-preemption"></a>
# ### What rising preemption says, and what not
# Server 1 again: 1,500 blocks, 20 arrivals a second. It preempts, and somebody proposes to forbid that: admit a request only if prompt **and** answer fit beside all others at their full length. Suppose we even knew how long answers will be.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "With that rule preemptions fall to 0. What becomes of the median TTFT, as a multiple of before?",
    unit="x",
    key="10-forbid",
)

# %%
rows, waits = [], []
for reserve in (False, True):
    traffic = make_requests(800, **MIXED, arrivals=poisson_arrivals(RATE, seed=1), seed=1)
    limits = Limits(reserve_output=reserve)
    loop = simulate(traffic, card_clock, num_blocks=1500, limits=limits)
    done, again = loop.metrics, loop.scheduler.counts.recomputed_tokens
    waits.append(done.ttft.percentile(50))
    counted = (loop.scheduler.counts.preemptions, again, done.tokens_per_second)
    numbers = (f"{value:,.0f}" for value in (*counted, done.sustained_batch))
    rows.append((("prompt", "full length")[reserve], *numbers, f"{waits[-1]:.1f} s"))
header = ["comes in with", "preemptions", "computed again", "tokens/s", "batch", "TTFT p50"]
display(reveal("10-forbid", f"{waits[1] / waits[0]:.1f}x", remark="Preempting was faster."))
table(header, rows, numeric=range(1, 6), caption="Server 1: 20 arrivals a second, 1,500 blocks")

# %% [markdown]
# Preempting means that blocks were promised to more requests than there are blocks for. That is what it says: **too little cache for the work let in**. It does not say that answers are late, that throughput falls, or that the queue is due to it. Here betting on unused room pays, although work is thrown away. Where recomputing is dear (long contexts, a slow card) it may not: measure both.

# %% [markdown]
# <a id="real-gauges"></a>
# ## 6. The gauges of a real engine
# **Core · 2 minutes**
#
# The package reports under the names of vLLM's metrics, so you can read a real dashboard with the same eyes. Here is server 1 once more, now in a rush: **30 a second** arrive in place of 20, and a part of each prompt is common to all. `total` only rises: look at its slope. `sum` and `count` belong to a histogram: divide their increases to have the mean of that time.

# %%
arrivals = poisson_arrivals(30, seed=1)
traffic = make_requests(2000, **MIXED, prefix_share=0.3, arrivals=arrivals, seed=1)
loop = make_loop(traffic, card_clock, num_blocks=1500)
while loop.now < 20:
    loop.step()
told = loop.metrics.as_vllm(loop.scheduler)
asked = {
    "num_requests_running": "seats in use",
    "num_requests_waiting": "the queue: alert on this one first",
    "kv_cache_usage_perc": "share of blocks in use, 0 to 1 in spite of its name",
    "num_preemptions_total": "a rising slope: too much was let in",
    "prefix_cache_hits_total": "divide by prefix_cache_queries_total",
    "time_to_first_token_seconds_sum": "divide by _count; queue and prefill",
    "request_queue_time_seconds_sum": "the queue's part of it",
    "request_time_per_output_token_seconds_sum": "TPOT: what a full batch costs each of them",
}
rows = [(f"vllm:{name}", f"{told[f'vllm:{name}']:,.4g}", use) for name, use in asked.items()]
caption = "Server 1 in a rush of 30 arrivals a second, after 20 s"
table(["metric", "now", "what it is for"], rows, numeric=[1], caption=caption)

# %% [markdown]
# What not to watch: the memory that the driver reports. An engine takes its whole pool at the start, so it stays flat, with a thousand requests as with none. And with nothing running `kv_cache_usage_perc` is 0 although the memory is "full".

# %% [markdown] tags=["deep-dive"]
# <a id="batch-and-context"></a>
# ## 7. The same pool, longer contexts
# **Deep dive · 4 minutes**
#
# A published page says that long context takes the sustainable batch from 64 to 3. For which pool? We state one: room for 64 requests of 8,000 tokens of Llama 3.1 70B.

# %% tags=["predict", "widget", "deep-dive", "nbval-ignore-output"]
predict("How many requests of 131,072 tokens does that pool hold?", unit="", key="10-context")

# %% tags=["deep-dive"]
from kvlab.arithmetic.plan_deployment import Deployment

big = Deployment.of("llama-3.1-70b", tp=8)
big_clock, num_blocks = StepClock(big, Device.of("H100")), 64 * 8000 // 16
held = {}
for context in (8000, 16_000, 32_768, 65_536, 131_072):
    count, sizes = 3 * (512_000 // context), {"prompt_tokens": context - 199, "output_tokens": 200}
    traffic = make_requests(count, **sizes)
    limits = Limits(reserve_output=True)  # none of them may be cut down later
    loop = simulate(traffic, big_clock, num_blocks=num_blocks, limits=limits)
    held[context] = loop.metrics.peak_running, loop.metrics.tokens_per_second
size = num_blocks * 16 * big.request(1).request_bytes
remark = f"The pool is {size / 1e9:.1f} GB = {size / 2**30:.2f} GiB, over eight ranks."
reveal("10-context", held[131_072][0], remark=remark)

# %% [markdown] tags=["deep-dive"]
# So "64 to 3" is right for this pool and for few others. The next cell says for which, and what a box of eight 80 GB cards does, on whose 499 GB beside the weights the same page counts.

# %% tags=["deep-dive"]
from kvlab.figures.curves import Axis, Series, curve_chart

token_bytes = big.request(1).request_bytes
low, high = (n * 131_072 * token_bytes / 1e9 for n in (3, 4))
left = 8 * 80e9 - sum(Deployment.of("llama-3.1-70b").weight_bytes)
print(f"exactly 3 requests of 131,072: a pool from {low:.1f} to below {high:.1f} GB")
print(f"in such a pool 64 requests have {3 * 131_072 / 64:,.0f} to {4 * 131_072 / 64:,.0f} tokens")
print(f"{left / 1e9:.0f} GB hold {int(left // (131_072 * token_bytes))} of 131,072, pooled")
short, long = held[8000][1], held[131_072][1]
print(f"tokens/s, at best: {short:,.0f} at 8,000 tokens, {long:,.0f} at 131,072")
batch = Series("batch", list(held), [most for most, _ in held.values()], "value")
axes = {"x": Axis("tokens of a request", log=True, base=2), "y": Axis("requests at once", log=True)}
reading = "Simulated, not divided: whole blocks, answers of 200 tokens, all at once."
curve_chart([batch], **axes, title="One pool of 512,000 tokens", reading=reading, height=200)

# %% [markdown] tags=["deep-dive"]
# The last line printed is the other half: tokens a second fall even more than the batch does. Fewer answers are written at once, and each of them waits for a long prefill. Long contexts cost twice.
#
# <a id="output-growth"></a>
# ## 8. Answers that nobody reserved for
# **Deep dive · 4 minutes**
#
# At admission the prompt is known and the answer is not. Users state a limit, `max_new_tokens`, and most answers end long before it. Server 1 of section 5 (1,500 blocks, 20 arrivals a second) in three versions: one reserves nothing, one reserves what users state, one is told the true lengths, which no real server can be.

# %% tags=["predict", "widget", "deep-dive", "nbval-ignore-output"]
predict(
    "Answers have 300 tokens on average, users state 2,000. What share of the throughput is left if that is reserved?",
    unit="%",
    key="10-stated",
)

# %% tags=["deep-dive"]
cases = {
    "nothing": (Limits(), 2000),
    "what users state": (Limits(reserve_output=True), 2000),
    "the true length": (Limits(reserve_output=True), None),
}
rows, rates = [], {}
for name, (limits, stated) in cases.items():
    arrivals = poisson_arrivals(RATE, seed=1)
    traffic = make_requests(800, **MIXED, arrivals=arrivals, max_new_tokens=stated, seed=1)
    loop = simulate(traffic, card_clock, num_blocks=1500, limits=limits)
    done, rates[name] = loop.metrics, loop.metrics.tokens_per_second
    numbers = (f"{loop.scheduler.counts.preemptions}", f"{done.sustained_batch:.1f}")
    rows.append((name, *numbers, f"{rates[name]:,.0f}", f"{done.ttft.percentile(95):.1f} s"))
share = 100 * rates["what users state"] / rates["nothing"]
header = ["reserved for the answer", "preemptions", "batch", "tokens/s", "TTFT p95"]
display(reveal("10-stated", f"{share:.0f} %", remark="Room stood empty for words nobody wrote."))
table(header, rows, numeric=range(1, 5), caption="Server 1: 20 arrivals a second, 1,500 blocks")

# %% [markdown] tags=["deep-dive"]
# Reserving what is stated is the contiguous cache of chapter 06 again, in blocks. So engines admit by the prompt and preempt when they were wrong. What keeps that honest is a sensible `max_new_tokens`, and a limit on those who run.

# %% [markdown] tags=["deep-dive"]
# <a id="swap-or-recompute"></a>
# ## 9. Recompute or swap?
# **Deep dive · 4 minutes**
#
# The request that gives way is the **victim**. So far its blocks were dropped and its tokens computed again: **recompute**. **Swap** is the other way: its blocks are copied to the memory of the host, the computer around the GPU, and back later. They go over PCIe, the link between the two. How much slower is it than the GPU's own memory?

# %% tags=["predict", "widget", "deep-dive", "nbval-ignore-output"]
predict(
    "An H100 reads its memory at 3,350 GB/s. How many times as fast is that as PCIe 5.0 in one direction?",
    unit="x",
    key="10-pcie",
)

# %% tags=["deep-dive"]
from kvlab.arithmetic.preemption import host_bytes_per_second, preemption_cost

link, memory = host_bytes_per_second("H100"), Device.of("H100").bytes_per_second
rows, older = [], "huggyllama/llama-7b"
for name, gpu in (("llama-3.1-8b", "H100"), (older, "H100"), ("llama-3.1-8b", "L4")):
    one = Deployment.of(name)
    heads = one.model.max_kv_heads()
    for tokens in (512, 2048):
        cost = preemption_cost(one, tokens=tokens, gpu=gpu)
        times = (f"{1000 * t:.1f}" for t in (cost.swap_seconds, cost.recompute_seconds))
        rows.append((f"{name}, {gpu}", str(heads), f"{tokens:,}", *times, cost.cheapest))
remark = f"{link / 1e9:g} GB/s in each direction, nominal."
header = ["model, card", "KV heads", "tokens held", "swap, out and in", "recompute", "quicker"]
display(reveal("10-pcie", f"{memory / link:.0f}x", remark=remark))
table(header, rows, numeric=[1, 2, 3, 4], caption="Least times in ms, for one request")

# %% [markdown] tags=["deep-dive"]
# Compare the two Llamas on the H100. Recomputing takes about as long for both. But the older one keeps 32 KV heads in place of 8: four times the bytes to carry, four times the swap. So **fewer KV heads make swapping cheaper**, and the choice turns round between two models of nearly one size. On the slower L4 the gap is wider still, for it takes far longer to recompute. All these are least times at nominal rates; a real link gives less.
#
# The table leaves one thing out. A victim gives its blocks back, but until somebody takes them what they hold may be found again (section 10). Our engine, the twelve requests of section 1, three ways:

# %% tags=["deep-dive"]
for how, caching in (("recompute", False), ("recompute", True), ("swap", False)):
    limits = Limits(preemption=how)
    both = Engine(model, num_blocks=20, block_size=8, limits=limits, prefix_caching=caching)
    told = {}
    loop = both.start(requests, told)
    loop.run()
    assert all(told[i, 0].token_ids == tokens for i, tokens in by_itself.items())
    counts = loop.scheduler.counts
    again, moved = counts.recomputed_tokens, counts.swapped_out_blocks
    found = ", what is left in the pool is found" if caching else ""
    print(f"{how}{found}: {again} tokens computed again, {moved} blocks copied out")

# %% [markdown] tags=["deep-dive"]
# The same answers each time. vLLM recomputes by default, and finds what is left: less is computed again, and there is no second pool to look after.

# %% [markdown] tags=["deep-dive"]
# <a id="idle-blocks"></a>
# ## 10. A full pool with nobody in it
# **Deep dive · 3 minutes**
#
# Chapter 07 left the blocks of ended requests in place, for others with the same beginning. Nobody holds such an **idle block**; it is given away when somebody needs it. The **hit rate** is the share of prompt tokens that are found in such blocks.
#
# People chat, on the card of section 4: 6 new conversations a second, and each turn repeats all that was said. What does a smaller pool do to them?

# %% tags=["deep-dive"]
from kvlab.serving.chat import Chat

rows = []
for num_blocks in (500, 1000, 2000, 4000):
    arrivals = poisson_arrivals(6, seed=1)
    talk = {"system_tokens": 400, "message_tokens": 100, "output_tokens": 150}
    chat = Chat(60, 4, **talk, arrivals=arrivals, seed=1)
    loop = simulate(chat, card_clock, num_blocks=num_blocks, follow_up=chat.follow_up)
    state, counts = loop.scheduler.manager.stats(), loop.scheduler.counts
    p95 = f"{1000 * loop.metrics.ttft.percentile(95):.0f} ms"
    rates = (f"{counts.prefix_hit_rate:.0%}", f"{state.evicted_blocks:,}", p95)
    at_end = f"{state.num_used_blocks} / {state.num_idle_blocks:,} / {state.num_free_blocks}"
    rows.append((f"{num_blocks:,}", *rates, f"{counts.preemptions}", at_end))
header = ["blocks", "hit rate", "given away", "TTFT p95", "preemptions", "end: used / idle / free"]
table(header, rows, numeric=range(1, 6), caption="60 conversations of 4 turns, 6 a second")

# %% [markdown] tags=["deep-dive"]
# The last column first. At the end nobody runs: no block is used, and yet hardly any is free in the three smaller pools. That is not a leak: idle blocks wait for somebody who needs them.
#
# Then read from the largest pool upwards. Pressure shows **first** as a falling hit rate and a rising TTFT. Only the smallest pool preempts. So put the hit rate on the dashboard beside the preemptions.

# %% [markdown] tags=["deep-dive"]
# <a id="burst"></a>
# ## 11. A burst, and the order of defences
# **Deep dive · 5 minutes**
#
# Another pool on the same card: 4,000 blocks, for which 10 requests a second are easy. At second 20, 300 more arrive at once. Which defence comes first?

# %% tags=["predict", "widget", "deep-dive", "nbval-ignore-output"]
predict(
    "With no defence 1 in 20 waits more than some 7 s for its first token (TTFT p95). With at most 50 in the queue and the rest refused: how many s, of those let in?",
    unit="s",
    key="10-bound",
)

# %% tags=["deep-dive"]
from kvlab.serving.workloads import burst_arrivals

LINK = card.clock(swaps=True)
defences = {
    "none (recompute)": Limits(),
    "swap": Limits(preemption="swap"),
    "reserve the answer": Limits(reserve_output=True),
    "a queue of 50": Limits(max_waiting=50),
}
rows, views, late = [], {}, {}
for name, limits in defences.items():
    arrivals = burst_arrivals(10, at=20, size=300, seed=1)
    traffic = make_requests(900, **MIXED, arrivals=arrivals, seed=1)
    views[name] = Watch()
    loop = simulate(traffic, LINK, num_blocks=4000, limits=limits, on_step=views[name])
    done, late[name] = loop.metrics, loop.metrics.ttft.percentile(95)
    counts = (loop.scheduler.counts.preemptions, done.requests["refused"])
    rows.append((name, *map(str, counts), f"{done.peak_waiting}", f"{late[name]:.2f} s"))
bound, at_once = late["a queue of 50"], 300 - int(rows[0][3])  # let in within the same step
assert int(rows[-1][3]) == 50 - at_once
print(f"let in within the step in which the burst comes: {at_once}")
header = ["defence", "preemptions", "refused", "most waiting", "TTFT p95"]
display(reveal("10-bound", f"{bound:.2f} s", remark="Those let in hardly notice the burst."))
table(header, rows, numeric=range(1, 5), caption="10 a second and 300 at once, 4,000 blocks")

# %% [markdown] tags=["deep-dive"]
# How to give way (swap or recompute) hardly matters here. Whom to let in does. But look at the refused before you cheer: the short wait is that of those who got in; the others were told at once, and can go elsewhere or come back.
#
# Why "most waiting 33" with a queue of 50? The bound holds at the door: 50 of the 300 got into the queue, 250 were refused. The gauge is read after a step, and that step let 17 of the 50 in.

# %% tags=["deep-dive"]
reading = "The 300 arrive in one moment; without a bound the queue takes seconds to drain."
serving_tracks(views["none (recompute)"].looks, title="The burst, no defence", reading=reading)

# %% [markdown] tags=["deep-dive"]
# So the order, from cheap to dear:
#
# 1. **Bound the queue**, and refuse early with words. In the table it shortens the wait of all who are let in.
# 2. **Let idle blocks go.** Nobody holds them; at worst their tokens are computed again, as in section 10.
# 3. **Preempt**, the youngest first: by recompute or by swap. Now a request that was being served stops, and work that was done is done again or carried over the link (section 9).
#
# If 3 happens all day and answers are late, too little cache serves too much work (section 5). Chapter 11 says how much would do.

# %% [markdown]
# ## Your turn
# Each check says "not answered yet" until you replace the `...`. Hints and worked solutions are folded; open as much as you need.
#
# **10-a Let in with a reserve.** Write `fits(prompt_tokens, max_new_tokens, free_blocks, promised_blocks, block_size)`: whether a request may come in if its whole answer must fit. `promised_blocks` are those that the running requests may still take. The last token of an answer is never fed back. Roughly 2 lines.


# %% tags=["exercise"]
def fits(prompt_tokens, max_new_tokens, free_blocks, promised_blocks, block_size):
    # your code
    ...


# %% tags=["check"]
from kvlab.course import check, hint_steps, solution

check("10-a", fits)

# %% tags=["hint"]
hint_steps("10-a")

# %% tags=["solution"]
solution("10-a")

# %% [markdown]
# **10-b Diagnose from the gauges.** Write `diagnose(running, waiting, free_blocks, needed_blocks, max_running)`: what does the head of the queue lack, if the scheduler looks at seats first? Return 0 for nobody waits, 1 for a seat, 2 for blocks, 3 for the token budget. `needed_blocks` are those of the head. Roughly 5 lines.


# %% tags=["exercise"]
def diagnose(running, waiting, free_blocks, needed_blocks, max_running):
    # your code
    ...


# %% tags=["check"]
check("10-b", diagnose)

# %% tags=["hint"]
hint_steps("10-b")

# %% tags=["solution"]
solution("10-b")

# %% [markdown] tags=["deep-dive"]
# **10-c Out and back.** Llama 3.1 8B (32 layers, 8 KV heads, head_dim 128, cache in bf16) on one H100. PCIe carries 64 GB/s in each direction. A request that holds 8,192 tokens is swapped out and later in again. How long is the link busy with it? Give a unit, such as "5 ms".

# %% tags=["exercise"]
answer = ...

# %% tags=["check"]
check("10-c", answer)

# %% tags=["hint"]
hint_steps("10-c")

# %% tags=["solution"]
solution("10-c")

# %% [markdown]
# ## What interviewers listen for
# **Practice · as long as you like**
#
# Say your answer aloud first, then open it.
#
# <details><summary><b>TTFT has doubled since this morning. What do you look at?</b></summary>
# The queue first: is anybody waiting? Then pool use and seats: blocks, seats or arithmetic? Preemptions only confirm the first. Then what changed: arrivals, prompt lengths, answer lengths, the prefix hit rate. One change at a time.
# </details>
#
# <details><summary><b>The preemption counter rises. Is that bad?</b></summary>
# It says that more was let in than the cache can hold to the end. Whether it hurts, TTFT, TPOT and throughput say. A few are the price of a well-used pool; reserving every stated answer costs more. Many, with late answers: less in, or more cache.
# </details>
#
# <details><summary><b>Recompute or swap?</b></summary>
# Bytes over the link, twice, against one prefill of all tokens held. Fewer KV heads favour swapping, a fast card and surviving prefix blocks favour recompute. Name the link: PCIe per direction, each rank its own.
# </details>

# %% [markdown]
# ## Claims you will meet
# **Practice · as long as you like**
#
# Statements from public pages. Give your verdict first: holds, only if, or wrong. The card then shows what was recomputed and the condition.

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.claims import claim_quiz

claim_quiz("pcie-order-of-magnitude")

# %% tags=["widget", "nbval-ignore-output"]
claim_quiz("batch-64-to-3")

# %% [markdown]
# Two more. For the first, ask what the counter counts; for the second, what a victim has besides its prompt.

# %% tags=["widget", "nbval-ignore-output"]
claim_quiz("preemption-means-cache-shortage")

# %% tags=["widget", "nbval-ignore-output"]
claim_quiz("recompute-pays-prefill-twice")

# %% [markdown]
# ## Self-check
# **Practice · as long as you like**
#
# Six questions. "Fresh numbers" asks the same one anew, so you can practise until the numbers no longer matter.

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.quiz import quiz

names = "admitted nth-first-token which-shortage swap-time preemption-order pool-looks-full"
quiz(ids=[f"10-{name}" for name in names.split()], seed=10)

# %% [markdown]
# ## Takeaways
# **The answer.** When the memory is full nothing breaks: requests wait at the door, idle blocks are given away, and then the youngest gives way and comes back later with the same tokens. What users feel is the wait. The gauges say what it is for: blocks, seats or arithmetic.

# %%
takeaways = [
    (
        "Past saturation the queue grows, not the throughput",
        f"20 to 50 arrivals a second: TTFT p50 {median[50] / median[20]:.0f}x",
    ),
    (
        "Preemption says too much was let in, not that it is slow",
        f"0 preemptions, and {waits[1] / waits[0]:.1f}x the wait",
    ),
    (
        "A bounded queue comes first, giving way last",
        f"TTFT p95 in the burst: {late['none (recompute)']:.1f} s, bounded {bound:.2f} s",
    ),
]
table(["takeaway", "computed here"], takeaways)

# %% [markdown] tags=["instructor"]
# <details><summary><b>For instructors</b></summary>
# Show the explorer at 32 arrivals, time at the middle, and let the room name what the queue waits for before you read the line below the picture. Then switch to room for prompt and stated answer: preemptions vanish, and the queue is longer. Common wrong answer: "preemptions are zero, so the server is fine".
# </details>

# %% [markdown]
# ## Sources
# - Yu et al. 2022, [Orca](https://www.usenix.org/conference/osdi22/presentation/yu): batching anew at every step.
# - Kwon et al. 2023, [PagedAttention](https://arxiv.org/abs/2309.06180): blocks, preemption by recompute and by swap.
# - Agrawal et al. 2024, [Sarathi-Serve](https://arxiv.org/abs/2403.02310): chunked prefill beside decodes.
# - vLLM, [optimisation](https://docs.vllm.ai/en/latest/configuration/optimization.html): preemption and what to change. [Metrics](https://docs.vllm.ai/en/latest/design/metrics.html): the names of section 6. [Prefix caching](https://docs.vllm.ai/en/latest/design/prefix_caching.html): idle blocks.
#
# **Next:** 11 Size a deployment turns this round: given the traffic, how large must the server be?
