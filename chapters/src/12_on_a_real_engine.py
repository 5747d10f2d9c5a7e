# %% [markdown]
# # 12 On a real engine
#
# [Open in Colab](https://colab.research.google.com/github/kvlab/kvlab/blob/main/chapters/12_on_a_real_engine.ipynb)
#
# **The question.** Does a real engine agree with the arithmetic?

# %% [markdown]
# **After this chapter you can**
#
# - say what an engine will report before you start it: blocks, tokens, requests at once;
# - read its log and its metrics page, and tell a full pool from a flat memory line;
# - carry a plan over to many GPUs as an engine's command, and say what to check on each rank.
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

    print(prepare())

# %%
from kvlab.figures.course_map import chapter_line

chapter_line("12")

# %% [markdown]
# **Core** 30 minutes; the chapter is optional. You need the formula from chapter 03, KV heads on ranks from chapter 05, blocks from chapter 06, shared prefixes from chapter 07, FP8 from chapter 08, the gauges from chapter 10 and the planner from chapter 11.
#
# <a id="engines"></a>
# ## 1. Three engines, live or replayed
# **Core · 2 minutes**
#
# An engine is somebody else's program. Two can be installed beside the course, in a terminal: `make engine-llamacpp` (small, seconds) and `make engine-vllm` (gigabytes, minutes). The third, the paged cache of transformers, is here already. Where an engine is not installed, this chapter **replays** our own recordings; a few cells always do. What is printed says which it is. Live, vLLM makes it a quarter of an hour on two cores, for each start takes half a minute; `KVLAB_ENGINES=replay` in the environment replays all.

# %% tags=["setup", "device", "nbval-ignore-output"]
from kvlab.figures.tables import table
from kvlab.serving.engines.replay import recorded, run
from kvlab.serving.engines.scenarios import SCENARIOS
from kvlab.widgets.predict import predict, reveal

for name in ("pool-2048", "cells-f16-8slots"):
    how = run(name, progress=False) if name.startswith("cells") else run(name, live=False)
    print(how.says)
print(f"{len(recorded())} recorded runs of {len(SCENARIOS)}; a live run replaces its recording")

# %% [markdown]
# A recording is what the engine said: its start-up lines, its metrics, each answer with its times, with the versions, the command, the machine and the date. What was **predicted** is never recorded: it is computed anew each time you run a cell.

# %% [markdown]
# <a id="predict"></a>
# ## 2. Predict, start, compare
# **Core · 4 minutes**
#
# The plan: SmolLM2 (30 layers, 3 KV heads, head_dim 64) in vLLM, weights and cache in float32, blocks of 32 tokens, 188,743,680 bytes for the cache, requests of at most 1,024 tokens, on one rank.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict("How many tokens will vLLM say that its cache holds?", unit="tokens", key="12-tokens")

# %%
token_bytes = 2 * 30 * 3 * 64 * 4
blocks = 188_743_680 // (token_bytes * 32)
first = run("capacity-fp32-32")
assert first.prediction.num_blocks == blocks and first.readings.tokens == blocks * 32
print(f"{token_bytes:,} bytes a token, {blocks} blocks of 32 tokens")
reveal("12-tokens", f"{first.readings.tokens:,}", remark="Three lines of arithmetic.")

# %% [markdown]
# vLLM says its capacity twice: in its log, when it starts, and on its metrics page. Here is every number that it reported, beside the one that was computed without it.

# %%
rows = [
    (a.quantity, f"{a.predicted:,g}", f"{a.reported:,g}", "yes" if a.agrees else "NO")
    for a in first.agreements()
]
table(["quantity", "predicted", "reported", "equal"], rows, numeric=[1, 2])

# %% tags=["device", "nbval-ignore-output"]
said = [line for line in first.log if "KV cache size" in line or "concurrency" in line]
print(first.says)
print(*(line.split("] ", 1)[-1] for line in said), sep="\n")
for name in ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc"):
    print(f"vllm:{name} {first.readings.values[f'vllm:{name}']}")  # as its metrics page has it

# %% [markdown]
# The first line is the log's, the others stand on the metrics page, where the gauges of chapter 10 are. `kvlab probe URL` reads that page of a server that runs elsewhere. The log says *CPU KV cache size* on a processor and *GPU KV cache size* on a GPU; the rest is the same. With a GPU one usually gives no bytes but a share, `--gpu-memory-utilization`. It caps **everything** that this instance takes: weights, the peak of activations, and the pool gets what is left. What is its default? Not from memory: the engine says it.

# %%
share = first.readings.config["gpu_memory_utilization"]
print(f"gpu_memory_utilization = {share} in vLLM {first.version}; unused here: bytes were given")

# %% [markdown]
# <a id="settings"></a>
# ## 3. Four settings
# **Core · 3 minutes**
#
# The same model and engine. From row 1 to 2 the dtype changes alone; from row 3 to 4 the bytes. Between 2 and 3 all four settings do: dtype, block size, bytes and the longest request. Before you look: which of the four changes **bytes a token**?

# %%
rows = []
for name in ("fp32-128", "bf16-128", "fp32-32", "fp32-32-tight"):
    seen = run(f"capacity-{name}")
    plan, told = seen.plan, seen.readings
    assert all(a.agrees for a in seen.agreements())
    cells = (plan.dtype, plan.block_size, f"{plan.cache_bytes / 2**20:,.0f} MiB")
    counts = (plan.max_model_len, told.num_blocks, told.tokens, f"{told.concurrency:.2f}x")
    rows.append((*map(str, cells), *(f"{c:,}" if isinstance(c, int) else c for c in counts)))
header = ["dtype", "block", "bytes", "longest request", "blocks", "tokens", "at once"]
table(header, rows, numeric=range(1, 7), caption="SmolLM2 in vLLM; every row equals the prediction")

# %% [markdown]
# Only the dtype does: half the bytes, twice the tokens. The block size and the longest request were not turned alone; the formula says what they would do, and every row agrees with it: the first moves a rest of less than one block, the second only divides the pool. *At once* is tokens over that length.
#
# It is a little too kind. vLLM holds one block back as a place to point to where there is nothing, so four full requests do not quite fit into a pool of "4.00x". That block is not counted in `kv_cache_usage_perc` either: blocks in use, over the blocks that can be given out. You see it when an engine refuses. Here one got 90 MiB, and was asked for requests of 8,192 tokens:

# %%
refused = run("too-small")
longest = refused.prediction.longest
print(f"predicted: at most {longest:,} tokens, {longest // 32} blocks of 32; one is held back")
(words,) = {line.split("] ")[-1] for line in refused.log if f"is {longest}" in line}
print("the engine:", words.split(". ")[1])

# %% [markdown]
# <a id="hits"></a>
# ## 4. What a shared beginning saves
# **Core · 3 minutes**
#
# Prefix caching is on by default. Two loads, sent one request after the other: one prompt of 512 tokens three times, then four prompts that share their first 512 tokens and have 40 of their own. Once with blocks of 32 tokens, once with blocks of 128.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "Blocks of 128. The prompt of 512 tokens comes again. How many of its tokens are found?",
    unit="tokens",
    key="12-again",
)

# %%
from kvlab.course.claim_math_07 import hit_tokens

rows, again = [], 0
for size in (32, 128):
    seen = run(f"prefix-{size}")
    for label, load in seen.loads.items():
        own = load.requests[0].prompt_tokens
        each = hit_tokens(own, 512, size)
        rows.append((label, str(size), f"{each}", f"{each * (len(load.requests) - 1):,}"))
        asked = load.rises["vllm:prefix_cache_queries_total"]
        rows[-1] += (f"{load.hit_tokens:,}", f"{load.hit_tokens / asked:.1%}")
        again = each if (label, size) == ("one prompt again", 128) else again
        assert abs(load.hit_tokens - each * (len(load.requests) - 1)) <= size
header = ["load", "block", "found each time", "predicted in all", "counter rose by", "hit rate"]
print(f"{again} of 512: the last block is computed again, for one token at least must be")
reveal("12-again", again, remark="Whole blocks, and never the whole prompt.")

# %% [markdown]
# All four loads, the two block sizes of each:

# %%
table(header, rows, numeric=range(1, 6), caption="Prefix hits in tokens, predicted and read")

# %% [markdown]
# The counter counts **tokens**, not blocks and not requests: the rate in the last column is its rise over that of `prefix_cache_queries_total`, which counts prompt tokens too. (The check allows a block of difference; here there is none.) And the time? The first answer pays the prefill, the others do not:

# %% tags=["timing", "nbval-ignore-output"]
load = run("prefix-32").loads["one prompt again"]
waits = [answer.ttft for answer in load.answers.values()]
print("first token after", ", ".join(f"{1000 * wait:.0f} ms" for wait in waits))

# %% [markdown]
# <a id="pressure"></a>
# ## 5. Twelve requests, two pools
# **Core · 4 minutes**
#
# Twelve prompts of 512 tokens, each with an answer of 200, all at once, prefix caching off. One pool holds 2,048 tokens, the other 23,296. The work is the same. In the small one, of 63 blocks that can be given out, a prompt takes 16 and a whole answer brings it to 23. How many run together, and what happens as they grow?

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "The small pool: how often will a running request have to give its blocks back (preemptions)?",
    unit="times",
    key="12-preempted",
)

# %% [markdown]
# First our own scheduler, with the settings of the plan and a clock for a model. It knows nothing of vLLM but the size of the pool.

# %%
from kvlab.serving.engines.same_load import our_schedule

small, large = run("pool-2048"), run("pool-23296")
asked = small.loads["twelve"].requests
assert {(r.prompt_tokens, r.max_new_tokens) for r in asked} == {(512, 200)}
ours = {
    seen.plan.cache_bytes: our_schedule(seen.plan, asked).scheduler.counts.preemptions
    for seen in (small, large)
}
reveal("12-preempted", small.loads["twelve"].preemptions, remark="Read from the engine.")
print("our scheduler:", *(f"{n} preemptions" for n in ours.values()), sep="  ")

# %% [markdown]
# Now the engine, with the same requests:

# %% tags=["device", "nbval-ignore-output"]
rows = []
for seen in (small, large):
    load = seen.loads["twelve"]
    most = max(point.running for point in load.points)
    rows.append((f"{seen.readings.tokens:,}", str(most), str(load.preemptions)))
    rows[-1] += (f"{load.seconds:.0f} s", f"{load.tokens_per_second:.1f}")
times = small.loads["twelve"].seconds / large.loads["twelve"].seconds
print(f"{small.says}; the small pool took {times:.1f}x the time")

# %% tags=["device", "nbval-ignore-output"]
header = ["pool, tokens", "most at once", "preemptions", "time", "tokens/s"]
table(header, rows, numeric=range(5), caption="The same twelve requests")

# %% [markdown]
# Look at it over time. **How to read it:** solid is who runs, dashed is who waits; below, the share of blocks in use and preemptions so far. These are the gauges of chapter 10, now read from the metrics page of somebody else's engine, four times a second. The page is as old as the last finished step: while a step reads new prompts, which takes seconds here, it still shows the moment before, when nobody ran.

# %% tags=["device", "nbval-ignore-output"]
from kvlab.figures.serving_tracks import serving_tracks
from kvlab.serving.watch import Look


def tracks(seen, label):
    looks = [
        Look(i, p.seconds, p.running, p.waiting, p.block_use, p.preemptions)
        for i, p in enumerate(seen.loads[label].points)
    ]
    return serving_tracks(looks, times=False, title=seen.title, reading=seen.says)


tracks(small, "twelve")

# %% [markdown]
# Three run, nine wait. Each grows, the pool is full, one goes back. And the promise of chapter 10, that giving way never changes an answer?

# %%
equal = small.loads["twelve"].token_ids == large.loads["twelve"].token_ids
assert equal
print("all twelve answers, token by token:", "equal" if equal else "different")

# %% [markdown]
# <a id="ranks"></a>
# ## 6. Two ranks
# **Core · 2 minutes**
#
# Two processes share one model by tensor parallelism, on a processor as on two GPUs. A small random Llama with 8 query heads, once with 4 KV heads and once with 1, 4 layers, head_dim 32, in float32, and 128 MiB of cache **on each rank**.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "One KV head, two ranks in place of one. By what factor does the reported number of tokens change?",
    unit="x",
    key="12-ranks",
)

# %%
told = {}
for heads in (4, 1):
    for tp in (1, 2):
        seen = run(f"tp{tp}-kv{heads}")
        assert all(a.agrees for a in seen.agreements())
        told[heads, tp] = seen.readings.tokens
rows = [(f"{heads}", *(f"{told[heads, tp]:,}" for tp in (1, 2))) for heads in (4, 1)]
factor = told[1, 2] / told[1, 1]
print(f"4 KV heads: {told[4, 2] / told[4, 1]:g}x, 1 KV head: {factor:g}x")
reveal("12-ranks", f"{factor:g}x", remark="The one head stands on both ranks.")

# %% [markdown]
# Both models, on one rank and on two:

# %%
caption = "Tokens as vLLM reports them; on two ranks: of each, not their sum"
table(["KV heads", "1 rank", "2 ranks"], rows, numeric=range(3), caption=caption)

# %% [markdown]
# With four heads each rank keeps two, so a token costs half. With one head there is nothing to split. A second rank then brings a second copy, and no room.

# %% [markdown]
# <a id="fp8"></a>
# ## 7. A cache in eight bits
# **Core · 3 minutes**
#
# `--kv-cache-dtype fp8` halves a 16-bit cache. Not every machine can: on a processor vLLM needs AVX-512 or AMX for it, and says so after it has printed the size.

# %%
eight = run("capacity-fp8-128", live=False)
nope = run("fp8-refused", live=False)
print(f"one GiB in FP8: {eight.readings.tokens:,} tokens, as predicted:", end=" ")
print(all(a.agrees for a in eight.agreements()))
print(nope.failure.split(": ", 1)[-1].split(".:")[0])

# %% [markdown]
# The refusal above comes from the engine; for this recording it was told that the processor is an older one. Where FP8 runs, size is not all. Fifty questions, each about a code that stands in the text ("The code of the green boat is ..."), in vLLM with the cache in float32 and in FP8, weights in float32 both times. What does it cost in right answers?

# %% tags=["device", "nbval-ignore-output"]
from kvlab.serving.engines.tasks import code_score

texts, rows = {}, []
for kind in ("fp32", "fp8"):
    load = run(f"quality-{kind}", live=False).loads["codes"]
    texts[kind] = [answer.text for answer in load.answers.values()]
    score = f"{code_score(texts[kind])} of {len(texts[kind])}"
    rows.append((kind, score, f"{load.tokens_per_second:.0f}", f"{load.seconds:.0f} s"))
same = sum(a == b for a, b in zip(texts["fp32"], texts["fp8"], strict=True))
print(f"{same} of {len(texts['fp8'])} answers are word for word the same")
table(["cache", "right", "tokens/s", "time"], rows, numeric=[1, 2, 3])

# %% [markdown]
# Is that a difference? Of the questions that only one of the two got right, a coin would split as unevenly how often? And look at the time: in this one run FP8 was not faster. It reads less and unpacks more; which of them counts, a single run does not tell.

# %%
from kvlab.course.blind import chance_of_luck
from kvlab.serving.engines.tasks import code_questions

pairs = zip(texts["fp32"], texts["fp8"], code_questions(), strict=True)
right = [tuple(text.strip().startswith(code) for text in (a, b)) for a, b, (_, code) in pairs]
wins, losses = right.count((True, False)), right.count((False, True))
print(f"only float32 right: {wins}; only FP8 right: {losses}")
print(f"a coin is as uneven {chance_of_luck(wins, losses):.0%} of the time: no proof either way")

# %% [markdown]
# A score needs questions with one right answer. Where there is none, people compare two answers **blind**: which one came from which cache is hidden, and the sides are shuffled. You are the judge; say which answer you would rather be given. Answers end after 12 tokens. Some pairs come twice with their sides changed, so that you can see how often **you** disagree with yourself: that is the noise of the judge, and a difference smaller than it says nothing.

# %% tags=["widget", "device", "nbval-ignore-output"]
from kvlab.widgets.blind import blind_marking

prompts = [question for question, _ in code_questions()]
blind_marking(prompts, texts, seed=12)

# %% [markdown]
# <a id="times"></a>
# ## 8. The same requests, three clocks
# **Core · 3 minutes**
#
# Sixteen requests arrive one by one, and three serve them: vLLM, our own engine of chapter 10 with the real model on the machine you sit at, and our simulator, whose clock gives **least** times on an H100. Seconds of two machines do not compare, so look at how many run at once: on the H100 each request is over before the next comes, on a processor they pile up. Nor do the first two rows, quite: ours counts the time of its steps alone, without HTTP, and on the threads it says. It runs now, and takes some ten seconds or more.

# %% tags=["device", "nbval-ignore-output"]
import torch

from kvlab.model.load import load_model
from kvlab.model.weights import is_available
from kvlab.serving.engines.same_load import our_engine

seen = run("times")
load = seen.loads["arriving"]
real, ideal = load.metrics(), our_schedule(seen.plan, load.requests).metrics
who = {f"vLLM, {'recorded' if seen.replayed else 'live'}": real}
smollm2 = None
if is_available("smollm2"):
    smollm2 = load_model("smollm2", device="cpu", dtype="float32")
    threads = f"{torch.get_num_threads()} thread(s)"
    who[f"our engine, here, {threads}"] = our_engine(
        smollm2.model, seen.plan, load.requests
    ).metrics
who["our clock, an H100 at best, float32"] = ideal
rows = []
for name, one in who.items():
    cells = [1000 * t.percentile(p) for t in (one.ttft, one.tpot) for p in (50, 95)]
    rows.append((name, str(one.peak_running), *(f"{cell:,.2f}" for cell in cells)))
print(seen.says)
header = ["who", "most at once", "TTFT p50", "p95", "TPOT p50", "p95"]
table(header, rows, numeric=range(1, 6), caption="16 requests that arrive one by one; times in ms")

# %% [markdown]
# A slower machine is not the same picture at another scale: it has a batch where the fast one has none, so each token waits for others, too. Histograms on a metrics page are sums since the start; divide the **increase** of `_sum` by that of `_count`. From the engine's own page:

# %% tags=["device", "nbval-ignore-output"]
rises, name = load.rises, "vllm:time_to_first_token_seconds"
inside = rises[f"{name}_sum"] / rises[f"{name}_count"]
outside = sum(answer.ttft for answer in load.answers.values()) / len(load.answers)
print(f"mean TTFT: {inside:.3f} s by the engine's page, {outside:.3f} s as the client saw it")

# %% [markdown]
# <a id="flat"></a>
# ## 9. Why the memory line stays flat
# **Core · 2 minutes**
#
# Sixteen requests come in waves of four, the next before the last has ended. The process monitor shows the engine's resident memory, the metrics page its pool. **How to read it:** the dashed line is memory, as a share of its highest; the solid one is the share of the pool in use. Only the solid one comes down when requests leave.

# %% tags=["device", "nbval-ignore-output"]
from kvlab.figures.curves import Axis, Series, curve_chart

seen = run("waves")
looks = seen.loads["waves"].memory
seconds, top = [m.seconds for m in looks], max(m.rss_bytes for m in looks)
lines = [
    Series("memory", seconds, [100 * m.rss_bytes / top for m in looks], "weights", "dashed"),
    Series("pool in use", seconds, [100 * m.block_use for m in looks], "query"),
]
mib = [m.rss_bytes / 2**20 for m in looks]
print(
    f"memory: {mib[0]:,.0f} MiB at first, then {max(mib):,.0f} at most, {mib[-1]:,.0f} at the end;"
)
print(f"the pool: {seen.plan.cache_bytes / 2**20:,.0f} MiB, at most {max(lines[1].y):.0f} % in use")
axes = {"x": Axis("seconds"), "y": Axis("% of its highest, or of the pool")}
curve_chart(lines, **axes, title="Flat, and not", reading=seen.says, height=220)

# %% [markdown]
# The pool was taken before the first request. From then on blocks change hands inside it, and no monitor outside sees that. What little the line rises, it rises once: on a processor the system counts a page of the pool when it is first written, and it stays counted when the request is gone. (A GPU's monitor counts the whole pool from the start.) In plain transformers, where a cache grows by itself, allocated bytes do grow. One sequence, read in pieces, its cache looked at four times:

# %%
from transformers import AutoModelForCausalLM, DynamicCache
from transformers.utils import logging as transformers_logging

from kvlab.cache.hf import call_model
from kvlab.cache.measure import tensors_of
from kvlab.model.bundled import bundled_folder

transformers_logging.disable_progress_bar()
tiny = AutoModelForCausalLM.from_pretrained(bundled_folder("tiny"), dtype=torch.float32).eval()
growing, rows = DynamicCache(), []
ids = torch.arange(16_384)[None] % tiny.config.vocab_size
with torch.no_grad():
    for end in range(1024, 16_385, 1024):
        call_model(tiny, ids[:, end - 1024 : end], cache=growing)
        if end in (1024, 4096, 8192, 16_384):
            held = sum(tensor.nbytes for tensor in tensors_of(growing))
            rows.append((f"{end:,}", f"{held:,}", f"{held // end:,}"))
table(["tokens", "bytes held", "bytes a token"], rows, numeric=range(3), caption="tiny, float32")

# %% [markdown]
# And the same question to the engine, by its pool and not by its memory: prompts that are longer and longer, one after the other, each with an answer of 24 tokens.

# %% tags=["device", "nbval-ignore-output"]
seen = run("growth")
load, pool = seen.loads["longer and longer"], seen.readings
rows, start = [], 0.0
for request in load.requests:
    answer = load.answers[request.request_id]
    end = answer.token_at[-1]
    used = max(p.block_use for p in load.points if start <= p.seconds <= end)
    need = -(-(request.prompt_tokens + len(answer.token_ids) - 1) // pool.block_size)
    rows.append((f"{request.prompt_tokens:,}", f"{need}", f"{used * (pool.num_blocks - 1):.0f}"))
    start = end
print(seen.says)
table(["prompt", "blocks predicted", "most blocks seen"], rows, numeric=range(3))

# %% [markdown]
# <a id="same-words"></a>
# ## 10. Two more engines
# **Core · 2 minutes**
#
# llama.cpp has no pages. A **slot** serves one request at a time, a **cell** holds one token, and all cells are taken at the start. Its log says their size. Its 8-bit and 4-bit formats carry a scale of 16 bits with every 32 numbers, half a bit for each.

# %% tags=["device", "nbval-ignore-output"]
rows = []
for kind, bits in (("f16", 16), ("q8_0", 8.5), ("q4_0", 4.5)):
    seen = run(f"cells-{kind}")
    (size,) = (a for a in seen.agreements() if "bytes" in a.quantity)
    (load,) = seen.loads.values()
    speeds = [answer.timings["predicted_per_second"] for answer in load.answers.values()]
    mib = [f"{n / 2**20:.2f}" for n in (size.predicted, size.reported)]
    rows.append((kind, f"{bits:g}", *mib, *(f"{speed:.0f}" for speed in speeds)))
print(seen.says)
header = ["cache", "bits", "MiB predicted", "MiB reported", "tokens/s at 64", "at 512", "at 2,048"]
table(header, rows, numeric=range(1, 7), caption="llama.cpp, 4,096 cells, 4-bit weights")

# %% [markdown]
# The sizes are exact. The speeds are one answer each: read no more than the order of magnitude from them. Fewer bits saved memory; whether they save time depends on who has to unpack them.
#
# Do the engines write the same words? Sums in another order round differently, and where two tokens are nearly tied that is enough. llama.cpp also rounds what it multiplies to 8 bits. So ask where an answer leaves ours, and **how near a tie** it was: one pass of our own model, in float32, over prompt and answer says by how much it prefers its own token there. (It reads thousands of tokens; give it ten seconds or more.)

# %% tags=["device", "nbval-ignore-output"]
from kvlab.serving.engines.parting import partings

kinds = [("times", "float32", 4), ("quality-bf16", "bfloat16", 50), ("cells-f16", "int8 sums", 2)]
rows = []
for name, computed, count in kinds if smollm2 else []:
    seen = run(name, live=False)
    (load,) = seen.loads.values()
    found = list(partings(smollm2.model, load.requests[:count], load.answers))
    parted = sorted((p for p in found if p), key=lambda p: p.gap)
    row = [seen.plan.engine, computed, f"{len(found) - len(parted)} of {len(found)}"]
    if parted:
        widest = parted[-1]
        words = [repr(smollm2.decode([token])) for token in (widest.ours, widest.theirs)]
        row += [" / ".join(words), f"{widest.gap:.3f}", f"{widest.largest:.1f}"]
    rows.append((*row, *["none"] * (6 - len(row))))
header = ["engine", "in", "as ours", "widest gap: ours / theirs", "in logits", "of at most"]
table(header, rows, numeric=[2, 4, 5], caption="Recorded answers, beside our model in float32")

# %% [markdown]
# In one dtype two engines can agree to the last token. With fewer bits they part where the gap is small beside the logits: in bfloat16 two neighbouring numbers of this size lie an eighth or a quarter apart, and 8-bit sums are no finer. These are few answers; what you should take away is the question, *how near a tie?* Between engines no test asks for equal text. Within one engine and dtype ask for it, and look where it fails. The third engine is in this notebook: the paged cache of transformers, live.

# %% tags=["device", "nbval-ignore-output"]
from kvlab.errors import Unsupported
from kvlab.serving.engines.tasks import one_prompt_again
from kvlab.serving.engines.transformers_paged import TransformersPlan, run_transformers_paged

plan = TransformersPlan("tiny", page_size=32, num_blocks=64)
expected = plan.predict()
try:
    paged = run_transformers_paged(plan, one_prompt_again("tiny", 3))
    assert (paged.num_blocks, paged.total_bytes) == (expected.num_blocks, expected.total_bytes)
    assert len(set(paged.token_ids.values())) == 1
    print(f"{paged.num_blocks} pages and 2 spare ones for padding, {paged.total_bytes:,} bytes")
    print("as predicted; equal answers")
except Unsupported as why:  # Colab's version is older
    print(f"{expected.num_blocks} pages, {expected.total_bytes:,} bytes predicted; {why}")

# %% [markdown]
# <a id="many-gpus"></a>
# ## 11. On to many GPUs
# **Core · 2 minutes**
#
# Many GPUs are no place for an engine of ours. The planner of chapter 11 says what to start, and vLLM does the work. Llama 3.1 70B in bf16, requests of 32,768 tokens, on eight H100 in one node; then Llama 3.1 405B on two such nodes: tensor parallel inside a node, where links are fast, pipeline parallel between the two. And 8B, which fits one GPU, as eight replicas: data parallel. `--max-num-seqs` is the number of full requests that the pool holds.

# %%
from kvlab.arithmetic.plan_command import vllm_command
from kvlab.arithmetic.sizing import plan as make_plan

common = {"gpu": "H100", "context": 32_768, "utilization": float(share)}
common["overhead_bytes"] = 3 * 10**9  # of each rank
one_node = make_plan("llama-3.1-70b", gpus=8, tp=8, **common)
two_nodes = make_plan("llama-3.1-405b", gpus=16, tp=8, pp=2, **common)
replicas = make_plan("llama-3.1-8b", gpus=8, tp=1, dp=8, **common)
for title, made in (("70B, one node", one_node), ("405B, two nodes", two_nodes)):
    print(f"# {title}\n{vllm_command(made)}")
print(f"# 8B, eight replicas\n{vllm_command(replicas)}")

# %% [markdown]
# For two nodes start [Ray](https://docs.vllm.ai/en/latest/serving/parallelism_scaling/) on both (`ray start --head` on the first, `ray start --address=...` on the second) and run the command on the first, with `--distributed-executor-backend ray`; on Kubernetes a LeaderWorkerSet does the same. Each rank prints how much memory it has left for the cache; the engine prints the tokens once, those of the tightest. Here is what to compare. The plan allows 3 GB on each rank for activations; the engine measures them, and that is where you and it will differ:

# %%
rows = []
for title, made in (("70B, tp 8", one_node), ("405B, tp 8, pp 2", two_nodes)):
    for rank in made.ranks:
        free = f"{rank.budget_bytes / 2**30:.1f} GiB"
        rows.append((title, f"{rank.stage}", f"{rank.weight_bytes / 2**30:.1f} GiB", free))
    rows.append((title, "all", "holds", f"{made.capacity_tokens:,} tokens"))
table(["plan", "stage", "weights", "left for the cache"], rows, numeric=[1, 2, 3])

# %% [markdown]
# If one rank has less left than the others, it decides for all. If the line says half of yours, look for a factor of two: the dtype of the cache, or a head that was copied and not split. A server that runs elsewhere you read with `kvlab probe URL --model NAME`.

# %% [markdown]
# ## Your turn
# Each check says "not answered yet" until you replace the `...`. Hints and worked solutions are folded; open as much as you need.
#
# **12-a Say the start-up line.** Write `reported_tokens(budget, layers, kv_heads, head_dim, element_bytes, block_size)`: the tokens that an engine reports for a cache of `budget` bytes on one rank. Roughly 2 lines.


# %% tags=["exercise"]
def reported_tokens(budget, layers, kv_heads, head_dim, element_bytes, block_size):
    # your code
    ...


# %% tags=["check"]
from kvlab.course import check, hint_steps, solution

check("12-a", reported_tokens)

# %% tags=["hint"]
hint_steps("12-a")

# %% tags=["solution"]
solution("12-a")

# %% [markdown]
# **12-b Say the hits.** Write `hits(prompt_tokens, equal_tokens, block_size)`: by how much the hit counter rises, in tokens, when a prompt arrives whose first `equal_tokens` tokens were served before. One token at least is always computed. Roughly 1 line.


# %% tags=["exercise"]
def hits(prompt_tokens, equal_tokens, block_size):
    # your code
    ...


# %% tags=["check"]
check("12-b", hits)

# %% tags=["hint"]
hint_steps("12-b")

# %% tags=["solution"]
solution("12-b")

# %% [markdown]
# **12-c Read two looks at a metrics page.** A histogram such as `time_to_first_token_seconds` is two numbers that only rise: `{"sum": seconds, "count": requests}`. Write `mean_wait(before, after)`: the mean of those that came between the two looks. Roughly 1 line.


# %% tags=["exercise"]
def mean_wait(before, after):
    # your code
    ...


# %% tags=["check"]
check("12-c", mean_wait)

# %% tags=["hint"]
hint_steps("12-c")

# %% tags=["solution"]
solution("12-c")

# %% [markdown]
# ## What interviewers listen for
# **Practice · as long as you like**
#
# Say your answer aloud first, then open it.
#
# <details><summary><b>The engine reports half the tokens that you computed. What now?</b></summary>
# Scope first: one rank, whole blocks, which bytes. Then factors of two: the dtype of the cache, a KV head that is copied to each rank. Then the budget: the share caps the whole instance, and weights and activations go first. One assumption at a time.
# </details>
#
# <details><summary><b>The monitor shows memory nearly full all day. Is the server full?</b></summary>
# That number says that the pool was taken at the start. Full is the share of blocks in use, with somebody waiting. With nobody running it is zero, and the memory line is where it was.
# </details>
#
# <details><summary><b>You add GPUs and the cache holds no more. How can that be?</b></summary>
# Tensor parallel beyond the KV heads copies them: each rank keeps a whole head, or a whole latent. More replicas, pipeline stages or fewer bytes a token make room; more ranks of this kind do not.
# </details>

# %% [markdown]
# ## Claims you will meet
# **Practice · as long as you like**
#
# Statements from public pages. Give your verdict first: holds, only if, or wrong. The card then shows the condition.

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.claims import claim_quiz

claim_quiz("exercise-3-nvidia-smi")

# %% tags=["widget", "nbval-ignore-output"]
claim_quiz("gpu-memory-utilization-meaning")

# %% [markdown]
# One more, and this one you have seen with your own eyes.

# %% tags=["widget", "nbval-ignore-output"]
claim_quiz("vllm-reports-token-capacity")

# %% [markdown]
# ## Self-check
# **Practice · as long as you like**
#
# Six questions. "Fresh numbers" asks the same one anew, so you can practise until the numbers no longer matter.

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.quiz import quiz

names = "start-up-line hits use ranks flat across"
quiz(ids=[f"12-{name}" for name in names.split()], seed=12)

# %% [markdown]
# ## Takeaways
# **The answer.** Yes, to the token, once the scope is the same: bytes of a token by dtype and KV heads of a rank, whole blocks, the bytes that are left. What differs is time, and that you measure.

# %%
takeaways = [
    (
        "An engine's capacity is arithmetic: predict it, then start it",
        f"{first.prediction.tokens:,} predicted, {first.readings.tokens:,} reported",
    ),
    (
        "A copied head makes a second rank useless for the cache",
        f"4 KV heads: {told[4, 2] / told[4, 1]:g}x the tokens, 1 KV head: {factor:g}x",
    ),
    (
        "A small pool costs time; the words stayed the same",
        f"our scheduler: {ours[small.plan.cache_bytes]} preemptions; all answers equal: {equal}",
    ),
]
table(["takeaway", "computed here"], takeaways)

# %% [markdown] tags=["instructor"]
# <details><summary><b>For instructors</b></summary>
# Let the room compute the start-up line before anybody starts the engine; write the number on the board. Then start it live, if it is installed, and wait for the line together. Common wrong answer: half or twice as many, for the weights' dtype was taken for 16 bits.
# </details>

# %% [markdown]
# ## Sources
# - vLLM, [parallelism and scaling](https://docs.vllm.ai/en/latest/serving/parallelism_scaling/), [metrics](https://docs.vllm.ai/en/latest/design/metrics.html), [optimisation](https://docs.vllm.ai/en/latest/configuration/optimization.html): the lines and names of this chapter.
# - [llama.cpp](https://github.com/ggml-org/llama.cpp): its cells and cache types.
# - Hugging Face, [continuous batching](https://huggingface.co/docs/transformers/main/en/continuous_batching): the paged cache of section 10.
# - Kwon et al. 2023, [PagedAttention](https://arxiv.org/abs/2309.06180): the pool that all of this is about.
#
# **Next:** 13 Interview self-check: could you explain it to somebody who asks back?
