# %% [markdown]
# # 11 Size a deployment
#
# [Open in Colab](https://colab.research.google.com/github/kvlab/kvlab/blob/main/chapters/11_size_a_deployment.ipynb)
#
# **The question.** How many users fit on which machine, and will they be served in time?

# %% [markdown]
# **After this chapter you can**
#
# - plan a deployment GPU by GPU, with every assumption said and added one at a time;
# - tell what binds, memory or time, and which change to try next;
# - predict the numbers that a real engine prints at its start, and say why one differs.
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

chapter_line("11")

# %% [markdown]
# **Core** 25 minutes, **deep dives** 20 minutes. You need the memory formula of chapter 03 and, for section 4, the two phases of chapter 04. The planning is arithmetic: no GPU is needed. One real model runs in section 8.
#
# <a id="one-line"></a>
# ## 1. One line, and its assumptions
# **Core · 4 minutes**
#
# A plan is one sentence: **weights + cache x concurrency must fit**. We take Llama 3.1 70B in 16 bit, eight cards with 80 GB on the box, and requests of 131,072 positions.

# %% tags=["predict", "widget", "nbval-ignore-output"]
from kvlab.widgets.predict import predict, reveal

predict("How many such requests fit on the eight cards at once?", unit="requests", key="11-pool")

# %% [markdown]
# By hand, with whole numbers: the bytes of all cards, less the weights, divided by the bytes of one request. The planner of the package must agree.

# %%
from kvlab.arithmetic.sizing import plan

CONTEXT, CARD = 131_072, 80 * 10**9
per_token = 2 * 80 * 8 * 128 * 2  # K and V, layers, KV heads, head_dim, bytes
weights = 2 * 70_553_706_496
by_hand = (8 * CARD - weights) / (CONTEXT * per_token)

box = plan("llama-3.1-70b", gpu_bytes=CARD, gpus=8, context=CONTEXT, utilization=1)
assert round(by_hand, 1) == round(box.concurrency, 1)
print(f"weights {weights / 1e9:.1f} GB, one request {CONTEXT * per_token / 1e9:.2f} GB")
reveal("11-pool", box.admission_bound, remark=f"{by_hand:.1f} with the fraction: 11 whole ones.")

# %% [markdown]
# Before the count is refined, four words. A **rank** is one GPU with its share of the model. **Tensor parallelism** (tp) cuts every layer: each rank keeps some of its heads, and all ranks work on every request. **Pipeline stages** (pp) cut between layers: each stage keeps some layers and hands the token on. A **replica** is one whole model on its tp x pp GPUs; more replicas share the users.
#
# This box is one replica with tp 8. **How to read it:** each bar is one GPU to scale, green is cache.

# %%
from kvlab.widgets.planner_frame import rank_picture

rank_picture(box, title="Eight ranks, one KV head of each layer on each")

# %% [markdown]
# The one line holds four silent assumptions, added here one after another; the last moves the count only in section 2. An "80 GB" H100 reports 79.65 GiB = 85.5 GB to its driver; an engine takes only a share of it; activations and graphs need some too. And memory lies in ranks, not in a pool.

# %%
from kvlab.arithmetic.plan_pooled import assumption_steps
from kvlab.figures.tables import table

GB = 10**9
shared = {"gpu": "H100", "gpus": 8, "context": CONTEXT, "overhead_bytes": 3 * GB}
llama = plan("llama-3.1-70b", **shared)
steps = assumption_steps(llama)
rows = [(step.assumption, f"{step.concurrency:.2f}") for step in steps]
table(["assumed", "requests"], rows, numeric=[1], caption="One assumption more in each row")

# %%
nominal = plan("llama-3.1-70b", gpu_bytes=CARD, gpus=8, context=CONTEXT, overhead_bytes=3 * GB)
print(f"nominal cards: {nominal.concurrency:.2f} requests, {nominal.admission_bound} whole ones")
print(f"as the driver reports them: {llama.concurrency:.2f}, {llama.admission_bound} whole ones")

# %% [markdown]
# Nominal memory with 90 % of it used and 3 GB of overhead a card gives another number again. None of them is wrong; each answers its own question. So a size is quoted with its assumptions or not at all.
#
# <a id="ranks"></a>
# ## 2. Each rank on its own
# **Core · 5 minutes**
#
# Above, pool and ranks agreed: 8 KV heads spread evenly over 8 ranks. Now give the same model a single KV head, as multi-query attention has. Its cache shrinks to an eighth, and the pool promises 92 requests, with the K and V weights of that head paid for on each card (93 if on one).

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "One KV head, tensor parallelism 8, nothing reserved. How many requests fit?",
    unit="requests",
    key="11-mqa",
)

# %%
from kvlab.arithmetic.catalogue import find_model
from kvlab.arithmetic.plan_pooled import pooled_plan

twin = {**find_model("llama-3.1-70b").config, "num_key_value_heads": 1}
mqa = plan(twin, gpu_bytes=CARD, gpus=8, context=CONTEXT, utilization=1)
both = pooled_plan(mqa)
assert int(both.pooled) == 92
print(f"one pool: {both.pooled:.1f}; rank by rank: {both.per_rank:.1f}")
reveal("11-mqa", mqa.admission_bound, remark=both.reasons[0] + ".")

# %% [markdown]
# Eight GPUs hold the same cache eight times. All ranks work on every request, so what one rank holds is what the replica holds. **How to read it:** each bar is one GPU to scale; green is cache, hatched orange a copy of what another GPU holds too.

# %%
rank_picture(mqa, title="One KV head on eight GPUs")

# %% [markdown]
# Three more ways in which a sum over GPUs lies. **Heads:** 16 ranks, 8 heads, so each is kept twice, and a token takes as many bytes on a rank as with 8. **Latents** serve all heads: every rank keeps them whole. **Stages** of unequal layers: the fullest one decides.

# %%
layouts = {
    "70B, tp 8": plan("llama-3.1-70b", **shared),
    "70B, tp 16": plan("llama-3.1-70b", **shared | {"gpus": 16}, tp=16),
    "70B, tp 2, 7 stages": plan("llama-3.1-70b", **shared | {"gpus": 14}, tp=2, pp=7),
    "one KV head, tp 8": plan(twin, **shared),
    "one KV head, tp 1, 8 stages": plan(twin, **shared, tp=1, pp=8),
    "DeepSeek-V3 in FP8 on H200": plan(
        "deepseek-v3", **shared | {"gpu": "H200"}, weights_dtype="fp8"
    ),
}
rows = []
for name, made in layouts.items():
    two = pooled_plan(made)
    on_rank = f"{made.tightest.bytes_per_token:,}"
    rows.append((name, on_rank, f"{two.copies:.0f}", f"{two.pooled:.2f}", f"{two.per_rank:.2f}"))
header = ["layout", "B of a token on a rank", "copies", "one pool", "rank by rank"]
table(header, rows, numeric=[1, 2, 3, 4], caption="Requests of 131,072 positions")

# %% [markdown]
# Look at the fifth row: pipeline stages split layers, so the single head is kept once, and the twin gets nearly all the pool promised. The price is time. The requests run in as many parts as there are stages, so that all are busy, and a token waits for eight passes of the slowest stage, one after another.

# %%
from kvlab.arithmetic.plan_timing import time_plan

for name in ("one KV head, tp 8", "one KV head, tp 1, 8 stages"):
    timing, stages = time_plan(layouts[name]), layouts[name].inputs.deployment.pp
    slowest = max(stage.bytes for stage in timing.tpot.stages)
    print(f"{name}: {timing.batch} requests, in parts of {-(-timing.batch // stages)} or fewer;")
    each = f"{stages} x {slowest / GB:.1f} GB to read"
    print(f"    {each}, {1000 * timing.tpot.seconds:.1f} ms a token or more")

# %% [markdown]
# <a id="peak"></a>
# ## 3. Admit by the peak
# **Core · 2 minutes**
#
# A request is longest when it ends. Eight prompts of 8,192 tokens fill 20 GiB of 70B cache to the last byte; then each answer grows by 1,024. Admission has to count what will be there at the end, in whole blocks.

# %%
from kvlab.arithmetic.plan_ranks import fit_in_budget

budget = 20 * 2**30
for output in (0, 1024):
    rank = fit_in_budget("llama-3.1-70b", budget_bytes=budget, context=8192, output=output)
    missing = rank.short_bytes(8) / 2**30
    print(f"{output:5,} reserved: admit {rank.admission_bound}; eight lack {missing:.1f} GiB")

# %% [markdown]
# Who admits eight anyway needs a way out when the pool is full: wait, swap or recompute. Chapter 10 shows what each costs.
#
# <a id="late"></a>
# ## 4. Fits, and still late
# **Core · 4 minutes**
#
# Memory is half of a promise. The other half is time to the first token (TTFT) and for each token after it (TPOT). Both have lower bounds: a prefill can't beat the arithmetic rate, a decode step can't read its bytes faster than memory gives them. The cards are those of section 1, 3 GB of overhead each.

# %% tags=["predict", "widget", "nbval-ignore-output"]
late = shared | {"context": 32_768}
fitting = plan("llama-3.1-70b", **late)
predict(
    f"{fitting.admission_bound} requests of 32,768 fit. Each token must come within 15 ms. "
    "How many are in time?",
    unit="requests",
    key="11-late",
)

# %% [markdown]
# A step reads the weights once and every request's cache. So the bytes that 15 ms allow, less the weights, are what the caches may take: by hand for one rank, then the planner.

# %%
from kvlab.arithmetic.gpus import find_gpu
from kvlab.arithmetic.plan_timing import what_binds

rank = fitting.tightest
allowed = 0.015 * find_gpu("H100").bandwidth_gb_s * 1e9
by_hand = int((allowed - rank.weight_bytes) // rank.request_bytes)
binding = what_binds(plan("llama-3.1-70b", **late, tpot_target=0.015))
assert by_hand == binding.requests  # both count every weight, the embedding whole
print(binding.says)
reveal("11-late", binding.requests, remark="More memory would not help: bandwidth binds.")

# %% [markdown]
# The same machine at four lengths, each with its pool full. The time of a step hardly moves, since a full pool is a full pool (one request of a million leaves room); what collapses is the number of requests that share it. And the first token waits longer than in proportion to the length.

# %%
rows = []
for length in (8192, 32_768, 131_072, 10**6):
    made = plan("llama-3.1-70b", **shared | {"context": length})
    timing = time_plan(made)
    first, each = f"{timing.ttft.seconds:,.2f} s", f"{1000 * timing.tpot.seconds:.1f} ms"
    speed = f"{timing.tokens_per_second:,.0f}"
    rows.append((f"{length:,}", f"{made.admission_bound:,}", first, each, speed))
header = ["positions", "fit", "TTFT, at least", "TPOT, at least", "tokens/s, at most"]
table(header, rows, numeric=[1, 2, 3, 4], caption="Llama 3.1 70B on eight H100, 3 GB overhead each")

# %% [markdown]
# The TTFT column is one prompt on an idle machine. When all arrive together the last one waits for every prefill before its own: real queues are chapter 10.
#
# <a id="planner"></a>
# ## 5. The planner
# **Core · 4 minutes**
#
# All of it with controls. Begin with the buttons, each makes a point in one click. Then ask your own question, and guess before you move a control. A layout that can't be, such as tp 8 on 4 GPUs, is answered with one line. **How to read it:** each bar is one GPU; the sentences below say what binds, what to try next, and how to start the engine.

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.planner import planner

planner()

# %% [markdown]
# Try these three. The twin with one head: which layout does "next change" propose, and why? DeepSeek-V3 on two cards: what is missing, and is it cache at all? Llama with a target of 20 ms for each token: which sentence changes?
#
# <a id="next-change"></a>
# ## 6. The next cheapest change
# **Core · 3 minutes**
#
# When a plan does not hold, don't reach for more GPUs first. Every change of one step is evaluated and ranked by what it asks of you: a restart, a measurement of quality, a smaller promise, money. The ranking is a judgement, and the table says it.

# %%
from kvlab.arithmetic.plan_changes import next_changes

rows = [(c.name, c.says_cost, f"{c.gained_requests:+}") for c in next_changes(llama)]
caption = f"70B on eight H100: {llama.admission_bound} requests of 131,072"
table(["change", "what it asks", "requests"], rows, numeric=[2], caption=caption)

# %% [markdown]
# The other way round: length and users in, GPUs out. Replicas divide the requests, never the bytes of one; stages cost time, so the least time of a token (TPOT) stands beside each answer. The plan ends as a command line; what the engine then prints is checked in section 9.

# %%
from kvlab.arithmetic.plan_command import vllm_command
from kvlab.arithmetic.plan_search import gpus_needed

asked = {"gpu": "H100", "context": CONTEXT, "overhead_bytes": 3 * GB}
for users in (8, 50, 200):
    found = gpus_needed("llama-3.1-70b", users=users, **asked)
    laid, copies = found.inputs.deployment, found.inputs.dp
    words = f"tp {laid.tp} x pp {laid.pp} x {copies} replica(s)"
    each = f"{1000 * time_plan(found).tpot.seconds:.1f} ms a token or more"
    print(f"{users:3} users: {found.inputs.gpus:3} GPUs as {words}, {each}")
print(vllm_command(llama))

# %% [markdown]
# <a id="one-million"></a>
# ## 7. One million tokens
# **Core · 2 minutes**
#
# A prompt of 1,000,000 tokens on 70B shapes. The model was not made for it; the bytes and the work are those any model of this shape would have.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "Eight H100, one such prompt, nothing else running. How long until the first token, at least?",
    unit="s",
    key="11-million",
)

# %%
million = plan("llama-3.1-70b", **shared | {"context": 10**6})
waiting = time_plan(million).ttft
print(f"{million.request_bytes / GB:.0f} GB of cache; {million.verdict}")
print(million.notes[-1])
minutes = f"{waiting.seconds / 60:.1f} minutes; {waiting.bound} binds, not memory."
reveal("11-million", round(waiting.seconds), remark=minutes)

# %% [markdown]
# It fits, and nobody waits for it. So a plan for long prompts is made around the prefill: keep the prefix cached (chapter 07), store it below the GPU (chapter 09), or promise less. Does your question about memory hide one about time?
#
# <a id="test-together"></a>
# ## 8. Test as it will be used
# **Core · 1 minute**
#
# One test request proves that one request works. Here are real caches of a real model against a small budget, in which the plan sees room for three at their peak. A first request runs well; so does a fourth as long as all are short. Only long ones, all at once, meet the limit.

# %% tags=["setup", "device", "nbval-ignore-output"]
from kvlab.cache import make_cache
from kvlab.model.decode import generate
from kvlab.model.load import load_model
from kvlab.model.sample_text import sample_ids
from kvlab.model.weights import is_available

loaded = load_model("smollm2" if is_available("smollm2") else "tiny", dtype="float32")
shape = loaded.model.config.to_shape()
loaded

# %%
P, N = 48, 17  # the last token is never fed back, so a cache ends with P + N - 1 positions
position = 2 * shape.num_layers * shape.num_kv_heads * shape.head_dim * 4
budget = 3 * position * (P + N - 1)


def held(requests, prompt, new):
    caches = [make_cache("growing", num_layers=shape.num_layers) for _ in range(requests)]
    for cache in caches:
        list(generate(loaded.model, sample_ids(loaded, prompt), max_new_tokens=new, cache=cache))
    return sum(cache.nbytes for cache in caches)


for requests, prompt, new in ((1, P, N), (4, 8, 4), (3, P, N), (4, P, N)):
    share = held(requests, prompt, new) / budget
    assert share == requests * (prompt + new - 1) / (3 * (P + N - 1))
    verdict = "fits" if share <= 1 else "does not fit"
    print(f"{requests} request(s) of {prompt + new - 1:2} positions: {share:4.0%}, {verdict}")

# %% [markdown]
# So the acceptance test has the planned number of requests, each at the planned length, at the same time, and answers that run to their end. Watch preemptions and the slowest requests, not the mean.

# %% [markdown] tags=["deep-dive"]
# <a id="logs"></a>
# ## 9. Real logs, predicted
# **Deep dive · 12 minutes**
#
# Does any of this meet reality? Engines print what they reserve. These lines come from a public log of vLLM 0.10.1.1 with Qwen2-7B on two GPUs. The memory is measured by the engine; everything after it must follow from the model.

# %% tags=["deep-dive"]
from kvlab.arithmetic.logs.rows import load_engine_rows

logs = {row.id: row for row in load_engine_rows()}
print("\n".join(logs["gh-qwen2-7b-c"].lines[:2]))  # the next line is the question

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "From 28 layers, 4 KV heads of 128, tp 2 and 11.03 GiB: how many tokens will your formula say?",
    unit="tokens",
    key="11-log",
)

# %% [markdown] tags=["deep-dive"]
# The reader takes the numbers out of the text, predicts each from the config, and says how far the rounding in the log itself allows both to differ.

# %% tags=["deep-dive"]
report = logs["gh-qwen2-7b-c"].explain()
for finding in report.findings:
    print(f"{finding.quantity}: printed {finding.fact.printed}, {finding.verdict}")
    print(f"    {finding.estimate.rule}; {finding.reasons[0]}")
tokens = report.findings[0]
remark = f"The log printed {tokens.fact.printed}: {tokens.verdict}."
reveal("11-log", int(tokens.estimate.value), remark=remark)

# %% [markdown] tags=["deep-dive"]
# Now every log of vLLM and SGLang in the collection that a prediction must meet: dense, latent, sliding, **hybrid** (layers of different kinds in one model), one rank and several. **How to read it:** *error* is ours against the print, *open* what the printed digits leave open; zero means that it must be equal.

# %% tags=["deep-dive"]
words = {"kv_tokens": "tokens", "k_bytes": "memory of all keys"}
words |= {"needed": "need of a request", "num_blocks": "blocks"}
rows = []
for row in logs.values():
    if row.use == "assert" and row.engine in ("vllm", "sglang"):
        main = next(check for check in row.checks if check.get("main"))
        found = next(f for f in row.explain().findings if f.quantity == main["quantity"])
        error = abs(found.relative_error)
        assert error <= main["tolerance"]
        name = row.about.replace("not stated", "no model named: from its blocks").rsplit("/", 1)[-1]
        numbers = (main["printed"], f"{error:.4%}", f"{main['tolerance']:.4%}")
        rows.append((name, words[found.quantity], *numbers))
header = ["model", "what is printed", "printed", "error", "open"]
table(header, rows, numeric=[2, 3, 4], caption="Predicted within the rounding of the log")

# %% [markdown] tags=["deep-dive"]
# An error that looks harmless is not: each formula with one thing wrong gives its own number, so a log can tell you which mistake you made. Kimi K2 keeps latents. Divide them by tp, as one divides heads, and the need of a request comes out eight times too small.

# %% tags=["deep-dive"]
kimi = logs["gh-kimi-k2-h100"]
need = next(f for f in kimi.explain().findings if f.quantity == "needed")
print(f"printed {need.fact.printed}, ours {need.estimate.value / 2**30:.2f} GiB")
for wrong in kimi.naive:
    print(f"{wrong['formula']}: {wrong['gives']:.2f} GiB")
print(need.reasons[-1])

# %% [markdown] tags=["deep-dive"]
# Some numbers do not follow, and saying so is part of the answer. In this log the memory and the tokens differ by more than rounding. On several ranks each prints its own memory, while the pool follows the smallest: a likely reason, given as a guess.

# %% tags=["deep-dive"]
odd = logs["vllm-21348-vllm"].explain().findings[0]
print(f"printed {odd.fact.printed}, ours {odd.estimate.value:,.0f}: {odd.verdict}")
print(odd.reasons[0])

# %% [markdown] tags=["deep-dive"]
# Your own log goes the same road: `kvlab explain-log start.log`, or `explain_log(text)` in a notebook. Paste what you have; where it names no model, say which.
#
# <a id="hybrids"></a>
# ## 10. Why hybrids break tokens / length
# **Deep dive · 8 minutes**
#
# For full attention, concurrency is tokens over length. Llama 4 Scout is a hybrid: beside full layers it has **chunked** ones, which see only the tokens of their own chunk of 8,192. Its log contradicts the division.

# %% tags=["deep-dive"]
scout = logs["gh-llama4-10m-fp8"].explain().findings
printed = {finding.quantity: finding.fact for finding in scout}
ratio = printed["kv_tokens"].number / 10_000_000
print(f"{printed['kv_tokens'].printed} tokens for requests of 10,000,000: {ratio:.2f}x by division")
print(f"printed: {printed['max_concurrency'].printed}x")

# %% [markdown] tags=["deep-dive"]
# The engine hands out **blocks**, to groups of layers with the same need, from one pool. A chunked group stops taking blocks once its chunk, and the tokens of a batch, are covered. "Tokens" are the blocks shared out evenly, as if all groups kept everything. Here it is by hand.

# %% tags=["deep-dive"]
from kvlab.arithmetic.reader import read_model
from kvlab.arithmetic.vllm_pages import vllm_layout

scout_model = read_model("llama-4-scout-17b-16e-instruct")
layout = vllm_layout(scout_model, tp=8, cache_dtype="fp8")
blocks = int(89.71 * 2**30) // layout.block_bytes
each = [group.blocks(10_000_000, 8192, 0) for group in layout.groups]
rows = [(group.kind, f"{n:,}") for group, n in zip(layout.groups, each, strict=True)]
assert f"{blocks / sum(each):.2f}" == printed["max_concurrency"].printed
assert blocks // len(each) * 16 == printed["kv_tokens"].number
caption = f"{blocks:,} blocks / {sum(each):,} = {blocks / sum(each):.2f} requests"
table(["group of 12 layers", "blocks of one request"], rows, numeric=[1], caption=caption)

# %% [markdown] tags=["deep-dive"]
# Nearly all blocks go to the one full group. So the same pool holds few long requests or many short ones, and "tokens" is a unit of account, not a promise. The curve shows it: the shorter the request, the nearer both counts, until nothing is cut off any more. **How to read it:** both axes are logarithmic; the gap is the factor by which division misleads.

# %% tags=["deep-dive"]
from kvlab.figures.curves import Axis, Series, curve_chart

lengths = [2**power for power in range(12, 24)]
real = [layout.capacity(blocks * layout.block_bytes, n, 8192) for n in lengths]
naive = [made.tokens / n for made, n in zip(real, lengths, strict=True)]
lines = [
    Series("blocks / blocks", lengths, [made.concurrency for made in real], "value"),
    Series("tokens / length", lengths, naive, "wasted", "dashed"),
]
axes = {"x": Axis("positions of a request", log=True, base=2), "y": Axis("requests", log=True)}
curve_chart(lines, **axes, title="Llama 4 Scout: requests that one pool holds")

# %% [markdown] tags=["deep-dive"]
# Pages can mislead as well. Gemma 4 mixes heads of different sizes, and the engine pads all pages to one size. Then a printed token costs more bytes than the layers need, and the payload formula alone misses the log.

# %% tags=["deep-dive"]
gemma = logs["hfmem-61-gemma4"].explain().findings[0]
print(f"printed {gemma.fact.printed}, ours {gemma.estimate.value:,}: {gemma.verdict}")
for reason in gemma.reasons:
    print("-", reason)

# %% [markdown]
# ## Your turn
# **Practice · as long as you like**
#
# Each check says "not answered yet" until you replace the `...`. Hints and worked solutions are folded; open as much as you need.
#
# **11-a How many may start?** Write `admission_bound(budget_bytes, bytes_per_token, context, output, block_size)`: how many requests may be admitted when each of them grows to context + output positions and memory is handed out in whole blocks of `block_size` positions. Roughly 2 lines.


# %% tags=["exercise"]
def admission_bound(budget_bytes, bytes_per_token, context, output, block_size):
    # your code
    ...


# %% tags=["check"]
from kvlab.course import check, hint_steps, solution

check("11-a", admission_bound)

# %% tags=["hint"]
hint_steps("11-a")

# %% tags=["solution"]
solution("11-a")

# %% [markdown]
# **11-b Predict a line of a log.** Qwen3 4B has 36 layers, 32 query heads, 8 KV heads, head_dim 128. Suppose vLLM starts it on two GPUs with tensor parallelism 2, a 16-bit cache and blocks of 16 tokens, and prints `Available KV cache memory: 15.37 GiB`, the memory of one rank. How many tokens would the next line, `GPU KV cache size`, print? Take 15.37 as exact, and give at least five digits.

# %% tags=["exercise"]
answer = ...

# %% tags=["check"]
check("11-b", answer)

# %% tags=["hint"]
hint_steps("11-b")

# %% tags=["solution"]
solution("11-b")

# %% [markdown]
# **11-c The three numbers at the start.** Write `start_up_lines(available_bytes, bytes_per_token, block_size, max_model_len)` for a model of full attention: return (blocks, tokens, concurrency), what vLLM prints once it knows the memory left on a rank. Concurrency is the number of requests of full length, with its fraction; a request takes whole blocks. Roughly 3 lines.


# %% tags=["exercise"]
def start_up_lines(available_bytes, bytes_per_token, block_size, max_model_len):
    # your code
    ...


# %% tags=["check"]
check("11-c", start_up_lines)

# %% tags=["hint"]
hint_steps("11-c")

# %% tags=["solution"]
solution("11-c")

# %% [markdown]
# **11-d Sixteen ranks, four heads.** A model with 48 layers, 64 query heads, 4 KV heads and head_dim 128 runs on 16 GPUs with tensor parallelism 16 and a 16-bit cache. Each rank has 30 GiB left for caches. How many requests of 32,768 positions fit?

# %% tags=["exercise"]
answer = ...

# %% tags=["check"]
check("11-d", answer)

# %% tags=["hint"]
hint_steps("11-d")

# %% tags=["solution"]
solution("11-d")

# %% [markdown]
# **11-e Thirty-two KV heads or eight?** Llama 3.1 8B has 32 layers, 32 query heads, 8 KV heads, head_dim 128; its cache is in 16 bit. One card has 62 GiB left for caches, and each request takes 32,768 tokens. How many requests fit if every query head had its own KV head (MHA), and how many as the model is made (GQA)? Payload only. Give two whole numbers in a list, MHA first.

# %% tags=["exercise"]
answer = ...

# %% tags=["check"]
check("11-e", answer)

# %% tags=["hint"]
hint_steps("11-e")

# %% tags=["solution"]
solution("11-e")

# %% [markdown]
# ## What interviewers listen for
# **Practice · as long as you like**
#
# Answer aloud first, then open.
#
# <details><summary><b>How many users fit on this machine?</b></summary>
# Scope first: model, dtype of weights and of cache, layout, peak positions with the answer included, per rank. Budget: the usable share, less weights and overhead. Divide by the bytes of one request on that rank, round down, take the tightest rank. Then check TTFT and TPOT.
# </details>
#
# <details><summary><b>Why not add up the memory of all GPUs?</b></summary>
# Every tensor-parallel rank works on every request, so a full rank stops all of them. A KV head is never split: with fewer heads than ranks it is copied. Latents are whole on each rank. Stages may hold unequal layers. A sum hides all three.
# </details>
#
# <details><summary><b>The request fits. What else can go wrong?</b></summary>
# It can be late: a long prompt is minutes of arithmetic, a full pool makes each step read all of it. It can grow: admission must reserve the answer. And one test request says nothing about many at once.
# </details>

# %% [markdown]
# ## Claims you will meet
# **Practice · as long as you like**
#
# Statements from public pages. Give your verdict first: holds, only if, or wrong. The card then shows what was recomputed and the condition.

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.claims import claim_quiz

claim_quiz("falls-over-at-eight-users")

# %% tags=["widget", "nbval-ignore-output"]
claim_quiz("llama3-supports-128k")

# %% [markdown]
# Two more. Ask of the first how much of the memory is used, of the second whether the pool was full.

# %% tags=["widget", "nbval-ignore-output"]
claim_quiz("sessions-with-utilisation")

# %% tags=["widget", "nbval-ignore-output"]
claim_quiz("latency-barely-moves")

# %% [markdown]
# ## Self-check
# **Practice · as long as you like**
#
# Six questions. "Fresh numbers" asks the same one anew.

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.quiz import quiz

names = "budget peak copies log-concurrency one-test late"
quiz(ids=[f"11-{name}" for name in names.split()], seed=11)

# %% [markdown]
# ## Takeaways
# **The answer.** As many as the tightest rank holds at their peak, once weights, overhead and the share that may be used are taken off, and no more than are served in time. Quote the count with its assumptions, and test it with that many at once.

# %%
ranks = f"{int(both.pooled)} in one pool, {int(both.per_rank)} on the ranks"
in_time = f"{fitting.admission_bound} fit, {binding.requests} within 15 ms"
real_log = f"{tokens.estimate.value:,} predicted, {tokens.fact.printed} printed"
takeaways = [
    ("Size a rank, not a pool: heads are copied, never split", ranks),
    ("A request may fit and still be late", in_time),
    ("An engine's log follows from the config and the memory it found", real_log),
]
table(["takeaway", "computed here"], takeaways)

# %% [markdown] tags=["instructor"]
# <details><summary><b>For instructors</b></summary>
# Show the eight bars of section 2 with one KV head and ask for the count before the numbers. Most say 92. Then press "Llama 70B on 8 cards" and ask what changes if the answers are 4,096 tokens long.
# </details>

# %% [markdown]
# ## Sources
# - Kwon et al. 2023, [Efficient Memory Management for Large Language Model Serving with PagedAttention](https://arxiv.org/abs/2309.06180): blocks, admission, preemption.
# - Pope et al. 2022, [Efficiently Scaling Transformer Inference](https://arxiv.org/abs/2211.05102): layouts over many chips, and what they cost.
# - Shazeer 2019, [Fast Transformer Decoding: One Write-Head is All You Need](https://arxiv.org/abs/1911.02150): one KV head.
# - DeepSeek-AI 2024, [DeepSeek-V2](https://arxiv.org/abs/2405.04434): latent attention.
# - vLLM, [Optimization and tuning](https://docs.vllm.ai/en/latest/configuration/optimization.html): the share of memory, preemption, parallelism.
# - The logs and their places are named row by row in `data/engine_logs.json`.
#
# **Next:** 12 On a real engine runs the command line of this plan, and reads its log.
