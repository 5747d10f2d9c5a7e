# %% [markdown]
# # 05 Fewer KV heads: MHA, GQA, MQA, and latents
#
# [Open in Colab](https://colab.research.google.com/github/kvlab/kvlab/blob/main/chapters/05_fewer_kv_heads.ipynb)
#
# **The question.** What is lost when query heads share keys and values?

# %% [markdown]
# **After this chapter you can**
#
# - say what sharing KV heads saves (bytes, reads, weights) and what it leaves alone, for any model;
# - measure what it costs on trained twins, and tell learning speed from capacity;
# - say where sharing stops saving on several GPUs, and take a published percentage apart.
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

chapter_line("05")

# %% [markdown]
# **Core** 20 minutes, **deep dives** 25 minutes. You need the bytes of a token from chapter 03, and from chapter 04 that a decode step waits for what it reads.
#
# A real model comes along, in float32. Where SmolLM2 is not at hand the bundled `tiny` takes its place; the conclusions are the same.

# %% tags=["setup", "device", "nbval-ignore-output"]
from kvlab.model.load import load_model
from kvlab.model.weights import is_available
from kvlab.widgets.predict import predict, reveal

loaded = load_model("smollm2" if is_available("smollm2") else "tiny", dtype="float32")
loaded

# %% [markdown]
# <a id="group-heads"></a>
# ## 1. Share a key
# **Core · 3 minutes**
#
# **Multi-head attention** (MHA) gives every query head a key and a value of its own. **Grouped-query attention** (GQA) lets neighbouring query heads read the same ones. **Multi-query attention** (MQA) is the end of that road: one KV head for all. Queries are not kept, so only KV heads take room.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "8 query heads, numbered 0 to 7, read 2 KV heads. Which one does head 3 read?", key="05-which"
)

# %% [markdown]
# Here is one decode step: a query for each query head, keys and values for each KV head. This is the whole idea of the chapter, and it is one division:


# %%
import numpy as np


def attend(queries, keys, values):
    shared = len(queries) // len(keys)  # query heads on one KV head
    mixed = []
    for head, query in enumerate(queries):
        k, v = keys[head // shared], values[head // shared]
        scores = k @ query / np.sqrt(len(query))
        weights = np.exp(scores - scores.max())
        mixed.append(weights / weights.sum() @ v)
    return np.stack(mixed)


reveal("05-which", 3 // (8 // 2), remark="3 // 4 = 0: heads 0 to 3 share the first one.")

# %% [markdown]
# Is it what models do? We take the keys and values of the last layer of the real model, and the call that its attention makes. Then the known mistake: heads dealt out in turn (0, 1, 2, 0, 1, 2) in place of neighbours (0, 0, 0, 1, 1, 1). Shapes fit and numbers look fine.

# %% tags=["device"]
import torch
import torch.nn.functional as F

from kvlab.cache import make_cache
from kvlab.model.decode import prefill
from kvlab.model.sample_text import sample_ids

cache = make_cache("growing", num_layers=loaded.model.config.num_layers)
prefill(loaded.model, sample_ids(loaded, 24), cache)
k, v = (x[0].cpu().double() for x in (cache.layers[-1].keys, cache.layers[-1].values))
shared = loaded.model.config.queries_per_kv_head
generator = torch.Generator().manual_seed(5)
q = torch.randn(len(k) * shared, 1, k.shape[-1], generator=generator).double()
theirs = F.scaled_dot_product_attention(q[None], k[None], v[None], enable_gqa=True)[0, :, 0]
ours = attend(*(x.numpy() for x in (q[:, 0], k, v)))
dealt = attend(*(x.numpy() for x in (q[:, 0], k.repeat(shared, 1, 1), v.repeat(shared, 1, 1))))
assert np.allclose(ours, theirs, atol=1e-9)
assert not np.allclose(dealt, theirs, atol=0.01)
print("neighbours share: equal to the model's own call; dealt out in turn: another result")

# %% [markdown]
# <a id="bytes-and-weights"></a>
# ## 2. From a head each to one for all
# **Core · 2 minutes**
#
# Llama 3.1 70B has 64 query heads on 8 KV heads. With the cache in bf16 its token takes 320 KiB: payload, all layers.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "Llama 3.1 70B, cache in bf16: how many KiB would a token take with a single KV head?",
    unit="KiB",
    key="05-mqa",
)

# %%
from kvlab.arithmetic.catalogue import find_model
from kvlab.arithmetic.memory import kv_bytes_per_token

sizes = {"num_layers": 80, "head_dim": 128, "bytes_per_element": 2}
token = {n: kv_bytes_per_token(num_kv_heads=n, **sizes) for n in (64, 8, 1)}
for heads, size in token.items():
    print(f"KV heads {heads:2}: {size / 1024:5,.0f} KiB, MHA / this = {token[64] // size}")
reveal("05-mqa", f"{token[1] / 1024:g} KiB", remark="All else stays, so it is an eighth of GQA.")

# %% [markdown]
# ## 3. What else shrinks, and what does not
# **Core · 4 minutes**
#
# Keys and values are made by two projections in each layer. Each takes the hidden vector in and gives head_dim numbers for every KV head. So "the same model with fewer KV heads" is a smaller model.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "Llama 3.1 70B: 80 layers, hidden size 8192, head_dim 128, 8 KV heads. How many parameters fewer, all counted, than a twin that differs in its 64 KV heads alone?",
    unit="parameters",
    key="05-weights",
)

# %%
from kvlab.arithmetic.plan_dense import read_weights

fewer = {}
for model in ("llama-3.1-8b", "llama-3.1-70b"):
    config = dict(find_model(model).config)
    own = read_weights(config).parameters
    mha = read_weights(config | {"num_key_value_heads": config["num_attention_heads"]}).parameters
    fewer[model] = mha - own
    print(f"{model:13} {own:14,} parameters, {mha - own:13,} fewer ({(mha - own) / mha:.1%})")
by_hand = 80 * 2 * 8192 * (64 - 8) * 128  # layers, K and V, hidden size, heads gone, head_dim
assert fewer["llama-3.1-70b"] == by_hand
remark = "To be as large again, another part must grow."
reveal("05-weights", by_hand, remark=remark)

# %% [markdown]
# And the arithmetic of attention? Each query head still meets every token of the history. So FLOPs stay while bytes shrink: every byte that a decode step reads does more work, which is what a step that waits for memory wants.

# %%
from dataclasses import replace

from kvlab.arithmetic.catalogue import model_shape
from kvlab.arithmetic.flop_steps import cached_step_flops

shape, t = model_shape("llama-3.1-70b"), 8192  # tokens in the cache, the new one included
for heads in (64, 8, 1):
    flops = cached_step_flops(replace(shape, num_kv_heads=heads), 1, t - 1).attention
    read = t * token[heads]
    print(f"KV heads {heads:2}: {flops / 1e9:.1f} GFLOP, {flops / read:3.0f} for each cached byte")

# %% [markdown]
# Bytes, weights and readers in one picture. Drag the number of KV heads, from one for each query head at the left to one for all at the right. **How to read it:** a cell is one vector of one token in one layer; lines say who reads whom; the dashed outlines are MHA.

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.heads_explorer import heads_explorer

heads_explorer()

# %% [markdown]
# Then choose SmolLM2: nine query heads can be shared in three ways only, since each KV head needs as many readers as the others.

# %% [markdown]
# <a id="three-twins"></a>
# ## 4. Three twins
# **Core · 5 minutes**
#
# Arithmetic is silent about quality. So tiny Llamas were trained on the same data, with the same seed and as many steps: two layers, 8 query heads of 16, and nothing different but the KV heads. They read facts among filler words and answer questions about them, so recall is one exact number.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "128 facts in 1,024 tokens. The twin with 8 KV heads recalls nearly all. What share of them does the one with a single KV head recall?",
    unit="%",
    key="05-twins",
)

# %% [markdown]
# Measured here, token by token through a real cache, on sequences that no training has seen. Training showed up to 32 facts and up to 1,024 tokens. So the first task is one of these, the second asks four times the facts, the third has twice the length.

# %% tags=["device", "nbval-ignore-output"]
from kvlab.model.quality import Bench

TASKS = {"32 facts in 512": (512, 32), "128 in 1,024": (1024, 128), "32 in 2,048": (2048, 32)}
twins, measured = {8: "tiny-mha", 2: "tiny-gqa", 1: "tiny-mqa"}, {}
for heads, name in twins.items():
    model = load_model(name, device="cpu", dtype="float32")
    assert model.model.config.num_kv_heads == heads
    print(f"{name}, KV heads {heads}")
    for task, (tokens, facts) in TASKS.items():
        bench = Bench(model, tokens=tokens, facts=facts, num_sequences=8192 // tokens)
        measured[heads, task] = found = bench.measure("preallocated")
        words = f"recall {found.recall:6.1%}, loss {found.loss:6.3f}"
        print(f"    {task:15} {found.cache_bytes:9,} B held, {words}")
reveal("05-twins", f"{measured[1, '128 in 1,024'].recall:.1%}", measured=True)

# %% tags=["device", "nbval-ignore-output"]
from kvlab.figures.curves import Axis, Mark, Series, curve_chart

per_token = {heads: measured[heads, "32 in 2,048"].cache_bytes // 2048 for heads in (1, 2, 8)}
lines = []
for task, dash in zip(TASKS, ("solid", "dashed", "dotted"), strict=True):
    recalls = [measured[heads, task].recall for heads in per_token]
    lines.append(Series(task, list(per_token.values()), recalls, "value", dash))
marks = [
    Mark(kind, size) for kind, size in zip(("MQA", "GQA", "MHA"), per_token.values(), strict=True)
]
x, y = Axis("bytes a token, float32", log=True, base=2), Axis("recall")
reading = "Each line is a task, each mark a twin. Further left is a smaller cache."
title = "What a smaller cache recalls"
curve_chart(lines, x=x, y=y, marks=marks, height=180, title=title, reading=reading)

# %% [markdown]
# On what training showed, sharing costs nothing that these questions can see. Beyond it the twins differ. Is that the sharing, or the luck of one run? The same three were trained again from other seeds. What follows is drawn from their **stored logs**, not run here. **How to read it:** a line is the middle of the seeds, its band reaches from the worst to the best.

# %%
from statistics import median

from kvlab.figures.spread import Band, spread_chart
from kvlab.model.train_curves import LEFT_CHANCE, load_curves

looks = {8: ("query", "solid"), 2: ("shared", "dashed"), 1: ("shared", "dotted")}
steps, share = Axis("steps of training", full=True), Axis("recall of 32 facts in 512 tokens")


def learning(group, title):
    bands = []
    for heads, look in looks.items():
        runs = load_curves(group, num_kv_heads=heads)
        probed = [step for step, _ in runs[0].recall]
        columns = zip(*([found for _, found in run.recall] for run in runs), strict=True)
        spread = zip(*((min(c), median(c), max(c)) for c in columns), strict=True)
        bands.append(Band(f"{heads} KV, {len(runs)} seeds", probed, *spread, *look))
    return spread_chart(bands, x=steps, y=share, y_end=1, height=180, title=title)


learning("twins", "How the twins learn, as logged")

# %%
from kvlab.figures.tables import table

ends = []
for heads in looks:
    runs = load_curves("twins", num_kv_heads=heads)
    finals = [[run.final[task] for run in runs] for task in ("512", "hard", "2048")]
    ends.append((f"{heads}", *(f"{min(each):.1%} to {max(each):.1%}" for each in finals)))
caption = "Recall at the end, worst to best seed (logged, on more sequences than above)"
table(["KV heads", *TASKS], ends, numeric=[0, 1, 2, 3], caption=caption)

# %% [markdown]
# Three readings. **32 facts:** every seed of every twin recalls them. **128 facts:** the ranges overlap, and the best seed with one KV head is level with those with eight, so one run each could not tell. **Twice the length:** here the worst seed with eight is far ahead of the best with one. Beyond its training, sharing costs something.
#
# And the training itself? `twins` begins with sequences of bare facts. `twins-slow` has 8 words of filler more in its first stage, and all else alike. When does recall leave chance?

# %%
for heads in looks:
    runs = load_curves("twins-slow", num_kv_heads=heads)
    left = [run.first_step(LEFT_CHANCE) for run in runs]
    told = ", ".join(f"not in {runs[0].steps}" if n is None else f"{n}" for n in left)
    print(f"KV heads {heads}: recall leaves chance at step {told}")
learning("twins-slow", "The same with a slower start, as logged")

# %% [markdown]
# With the easy start all three learn at the same time. With the slower one every seed with 8 KV heads gets going while the steps last; the fewer the heads, the fewer seeds do. That is **learning speed**, and the easy start pays for it: with it all nine seeds learn. (Would the seeds that are stuck at chance learn with more steps? These logs end before they could say.) What a model can do once it has learnt is **capacity**, and inside the trained range no twin lacks any. Two layers and a made-up language: take the method along, not the numbers.
#
# <a id="catalogue"></a>
# ## 5. What models do
# **Core · 2 minutes**
#
# The configs say how every open model shares, and some names mislead. The page of Falcon-40B says "multiquery", as that of Falcon-7B. Guess the KV heads of each before you look.

# %%
from kvlab.arithmetic.head_sharing import catalogue_sharing

models = {row.short_name: row for row in catalogue_sharing()}
names = "llama-65b Qwen1.5-72B-Chat Llama-3.1-70B Mistral-7B-v0.1 gemma-3-27b-it falcon-7b"
rows = []
for name in (*names.split(), "falcon-40b", "falcon-180B", "DeepSeek-V2"):
    row = models[name]
    heads = ", ".join(map(str, row.kv_heads)) or "a latent"
    where = row.source.split("@")[0].removeprefix("https://huggingface.co/").split("/blob/")[0]
    rows.append((name, row.kind, str(row.num_heads), heads, f"{row.bytes_per_token:,}", where))
header = ["model", "kind", "query heads", "KV heads", "B a token", "read from"]
table(header, rows, numeric=[2, 3, 4], caption="Families and how they share, cache in 16 bit")

# %% [markdown]
# All of them, sorted as you like. **How to read it:** blue is how many query heads read one KV head, green the bytes of a token; both to scale. Mark a model to see where its numbers were read.

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.catalogue_explorer import catalogue_explorer

catalogue_explorer(mark="tiiuae/falcon-40b")

# %% [markdown]
# Sort by query heads per KV head, then choose a kind. A high ratio makes no small cache on its own: layers and head_dim count as much.
#
# <a id="one-box"></a>
# ## 6. One box of eight GPUs
# **Core · 4 minutes**
#
# A page sizes three versions of the 70B shape, with 64, 8 and 1 KV heads, on eight 80 GB cards. Weights and cache are in bf16, a session has 131,072 tokens, and nothing is reserved. It adds up the memory of all cards, takes off the weights once, and divides by the bytes of a session. The cards run with tensor parallelism 8: each computes eight of the 64 query heads.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "One KV head, tensor parallelism 8. After the weights 498.9 GB are free on the eight cards together; one copy of a session takes 5.37 GB. How many whole sessions does the box serve?",
    unit="sessions",
    key="05-box",
)

# %% [markdown]
# Which KV heads do the query heads of one GPU (one **rank**) read? We compute the attention GPU by GPU, with the function of section 1, and count what each of them must hold.

# %%
from kvlab.arithmetic.ranks import heads_on_rank

RANKS, random = 8, np.random.default_rng(0)
for kv_heads in (64, 8, 1):
    queries = random.normal(size=(64, 16))
    keys, values = random.normal(size=(2, kv_heads, 10, 16))
    whole, parts, held = attend(queries, keys, values), [], []
    for rank in range(RANKS):
        mine = np.arange(64).reshape(RANKS, -1)[rank]
        needed = sorted({head * kv_heads // 64 for head in mine})  # KV heads that these read
        parts.append(attend(queries[mine], keys[needed], values[needed]))
        held.append(len(needed))
    assert np.allclose(np.concatenate(parts), whole)
    assert set(held) == {heads_on_rank(kv_heads, RANKS)}
    print(f"KV heads {kv_heads:2}: {held[0]} on each GPU, {sum(held):2} in all")

# %% [markdown]
# A score needs the **whole** key, so a GPU keeps at least one whole head: eight copies of the single one. (Half a key on each of two GPUs is possible, too; then every score must be added up between them before the softmax, for every token of the history. Engines copy.)

# %%
from kvlab.arithmetic.plan_pooled import assumption_steps
from kvlab.arithmetic.sizing import plan

llama, GB = dict(find_model("llama-3.1-70b").config), 10**9
box = {"gpu_bytes": 80 * GB, "gpus": 8, "context": 131_072}
alone = plan(llama | {"num_key_value_heads": 1}, **box, utilization=1, parameters=70_553_706_496)
pooled, by_rank = assumption_steps(alone)[0].concurrency, alone.concurrency
session, free = (token[1] * 131_072 / GB, 640 - 2 * 70_553_706_496 / GB)
assert (f"{session:.2f}", f"{free:.1f}", int(free / session)) == ("5.37", "498.9", int(pooled))
assert int(free / 8 / session) == int(by_rank)  # each card holds a copy of every session
print(f"nothing reserved: {pooled:.1f} in one pool, {by_rank:.1f} rank by rank")
remark = f"As many as with 8 KV heads; {int(pooled)} would need a cache cut by tokens, not heads."
reveal("05-box", f"{int(by_rank)} sessions", remark=remark)

# %% [markdown]
# Now the three versions, with one assumption more in each row. **How to read it:** a column is one model; the first row is the page's count, the last one counts each GPU on its own.

# %%
columns = {}
for heads in (64, 8, 1):
    twin = llama | {"num_key_value_heads": heads}
    page = plan(twin, **box, utilization=1, parameters=70_553_706_496)
    careful = plan(twin, **box, overhead_bytes=3 * GB)
    columns[heads] = [assumption_steps(page)[0], *assumption_steps(careful)]
said = ["one pool, weights of the GQA model", "one pool, each with its own weights"]
said += ["only 90 % of it used", "3 GB of overhead on each GPU", "each rank on its own"]
rows = [
    (words, *(f"{columns[heads][place].concurrency:.2f}" for heads in columns))
    for place, words in enumerate(said)
]
header = ["assumed", "64 KV heads", "8 KV heads", "1 KV head"]
table(header, rows, numeric=[1, 2, 3], caption="Sessions of 131,072 tokens on eight 80 GB cards")

# %% [markdown]
# Rounded down, the first row is the page's 1, 11 and 92: its arithmetic is right, for one big pool. The last row throws MQA's lead away. Go back to the explorer of section 3 and drag below 8 heads: its last number, the bytes of a token on each of eight GPUs, stays where it is.

# %% [markdown] tags=["deep-dive"]
# <a id="pooling"></a>
# ## 7. Convert a checkpoint
# **Deep dive · 8 minutes**
#
# Must a model be trained with fewer KV heads from the start? Ainslie et al. take a finished one, replace each group of neighbouring KV heads by their **mean**, and train on for a small part of the original training. We pool our MHA twin.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "8 KV heads are averaged into 2, and nothing is trained. What share of 32 facts is recalled?",
    unit="%",
    key="05-pooled",
)

# %% tags=["deep-dive", "device", "nbval-ignore-output"]
from kvlab.model.pool_heads import pool_kv_heads
from kvlab.model.retrieval import CHANCE, recall

mha, shares = load_model("tiny-mha", device="cpu", dtype="float32").model, {}
for heads in (8, 4, 2, 1):
    shares[heads] = recall(pool_kv_heads(mha, heads), num_sequences=8)
    print(f"KV heads {heads}: recall {shares[heads]:.1%}")
reveal("05-pooled", f"{shares[2]:.1%}", remark=f"Chance is {CHANCE:.1%}.", measured=True)

# %% [markdown] tags=["deep-dive"]
# Query heads have learnt to look for their own keys, and the mean of unlike keys is none of them. Now the training that follows, again from its **log**, beside a twin that started from nothing with as many steps. Then what has come back, on the harder tasks too: measured here, and from its log, beside the worst and best seed of the twins in section 4. There is one converted model, so it is compared with ranges, not with one run.

# %% tags=["deep-dive"]
tuned, fresh = (load_curves(group, num_kv_heads=2)[0] for group in ("uptrain", "twins-short"))
lines = []
for name, run, dash in (("pooled", tuned, "solid"), ("from nothing", fresh, "dotted")):
    steps, recalls = zip(*run.recall, strict=True)
    lines.append(Series(name, steps, recalls, "shared", dash))
x, y = Axis("steps of training", full=True), Axis("recall of 32 facts")
curve_chart(lines, x=x, y=y, height=180, title="Two ways to 2 KV heads")

# %% tags=["deep-dive", "device", "nbval-ignore-output"]
made = load_model("tiny-gqa-uptrained", device="cpu", dtype="float32")
twin, rows = load_curves("twins", num_kv_heads=2)[0], []
logged = {"32 facts in 512": "512", "128 in 1,024": "hard", "32 in 2,048": "2048"}
for place, (task, (tokens, facts)) in enumerate(TASKS.items(), start=1):
    bench = Bench(made, tokens=tokens, facts=facts, num_sequences=8192 // tokens)
    here, log = bench.measure("preallocated").recall, tuned.final[logged[task]]
    rows.append((task, f"{here:.1%}", f"{log:.1%}", ends[1][place], ends[0][place]))
header = ["task", "pooled, here", "pooled, log", "2 KV heads, 3 seeds", "8 KV heads, 3 seeds"]
caption = f"Recall after {tuned.steps} steps, {tuned.steps / twin.steps:.0%} of those of a twin"
table(header, rows, numeric=[1, 2, 3, 4], caption=caption)

# %% [markdown] tags=["deep-dive"]
# The work of the long training was not lost, only covered up: averaging broke the match between queries and keys, and a short training mends it, while a model from nothing has hardly begun. Against the twins that had 2 KV heads from the start: nearly as good on 32 facts, a few points below their worst seed with four times the facts, within their range at twice the length; there all seeds with 8 KV heads are ahead. So the number of KV heads is fixed when a model is **trained**, not when it is served, but it can be changed for a fraction of the price.

# %% [markdown] tags=["deep-dive"]
# <a id="latents"></a>
# ## 8. Latents: keep the recipe, not the keys
# **Deep dive · 9 minutes**
#
# **Latent attention** (MLA, DeepSeek) keeps neither keys nor values. It keeps a short vector, the **latent**, from which keys and values are made by a fixed matrix, the up-projection. Positions can't be put into it (below), so a small key with RoPE is kept beside it.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "DeepSeek-V2 has 128 heads; their keys and values would be 40,960 numbers a token and layer. How many does a layer keep for a token, latent and RoPE key together?",
    unit="numbers",
    key="05-latent",
)

# %%
from kvlab.arithmetic.latent_work import LatentShape

v2 = LatentShape.from_config(find_model("deepseek-v2").config)
kept, every = v2.elements_per_token, v2.expanded_elements_per_token
print(f"keys and values of {v2.num_heads} heads: {every:,} numbers")
parts = f"latent {v2.kv_lora_rank} and RoPE key {v2.qk_rope_head_dim}"
print(f"{parts}: {kept}, {every / kept:.0f}x less")
reveal("05-latent", kept, remark="One latent for all heads, and for keys and values alike.")

# %% [markdown] tags=["deep-dive"]
# Must all keys be made again at every step? No. A score is query . (up-projection x latent). Bracket it the other way, (query x up-projection) . latent, and the query moves into the latent's space **once**; every head then reads the latents as they lie. Both ways with small numbers, 4 heads and 6 tokens (a model also divides scores by a constant):


# %% tags=["deep-dive"]
draw = np.random.default_rng(8).normal
latents, rope_keys = draw(size=(6, 5)), draw(size=(6, 2))  # (kv_len, ...): all that is kept
up_key, up_value = draw(size=(2, 4, 3, 5))  # (num_heads, head_dim, latent) each
query, query_rope = draw(size=(4, 3)), draw(size=(4, 2))


def weigh(scores):
    weights = np.exp(scores + query_rope @ rope_keys.T)
    return weights / weights.sum(axis=1, keepdims=True)


keys = np.einsum("hdc,tc->htd", up_key, latents)  # expanded: made anew for each token and head
values = np.einsum("hdc,tc->htd", up_value, latents)
expanded = np.einsum("ht,htd->hd", weigh(np.einsum("hd,htd->ht", query, keys)), values)

moved = np.einsum("hd,hdc->hc", query, up_key)  # absorbed: only the query moves
absorbed = np.einsum("hdc,hc->hd", up_value, weigh(moved @ latents.T) @ latents)
assert np.allclose(expanded, absorbed)
print(f"equal; made on the way: {keys.size + values.size} numbers, or {moved.size}")

# %% [markdown] tags=["deep-dive"]
# RoPE turns a key by an angle of its own position. That matrix would stand between the query and the up-projection, another one for each token, and nothing could be absorbed. Hence the small key that carries the position.
#
# Now the package's module at full width: two layers with the sizes of DeepSeek-V2-Lite, random weights, 256 tokens in the cache.

# %% tags=["deep-dive", "device"]
from kvlab.cache.container import KVCache
from kvlab.cache.latent import LatentLayer
from kvlab.model.decode import decode_one_token
from kvlab.model.latent_attention import LatentModel
from kvlab.model.latent_config import LatentConfig

lite = LatentShape.from_config(find_model("deepseek-v2-lite").config)
sizes = {"intermediate_size": 64, "vocab_size": 64, "max_seq_len": 512}
model = LatentModel(LatentConfig(attention=lite, num_layers=2, **sizes)).init_weights(0).eval()
ids = torch.randint(0, 64, (1, 257), generator=torch.Generator().manual_seed(0))
held = KVCache([LatentLayer() for _ in range(2)])
prefill(model, ids[:, :256], held)
assert held.nbytes == 2 * 256 * lite.elements_per_token * 4  # layers, tokens, numbers, float32

logits = {}
for model.absorb in (False, True):
    logits[model.absorb] = decode_one_token(model, ids[:, 256:], held.clone())
assert (logits[True] - logits[False]).abs().max() < 1e-5
print(f"{held.nbytes:,} bytes held, as counted; logits of both ways equal to 1e-5")

# %% [markdown] tags=["deep-dive"]
# Which way is less work? Expanding makes keys and values of **all** tokens in the cache, absorbing makes each score longer. One token at a time, absorbing wins by far; for a long prompt it loses. **How to read it:** one layer of DeepSeek-V2, 8,192 tokens in the cache, the new ones included.

# %% tags=["deep-dive"]
from kvlab.arithmetic.latent_work import absorbing_pays_up_to, latent_work

rows = []
for count in (1, 64, 256, 8192):
    work = [latent_work(v2, way, q_len=count, kv_len=8192) for way in ("expand", "absorb")]
    totals = [f"{each.total / 1e9:,.1f}" for each in work]
    rows.append((f"{count:,}", *totals, f"{work[0].total / work[1].total:.2f}x"))
most = absorbing_pays_up_to(v2, kv_len=8192)
header = ["new tokens in the pass", "expand", "absorb", "expand / absorb"]
caption = f"GFLOP in one layer; absorbing is less work up to {most} new tokens"
table(header, rows, numeric=[0, 1, 2, 3], caption=caption)

# %% [markdown] tags=["deep-dive"]
# So engines expand a prompt and absorb while they decode, over one and the same cache. Each latent that is read serves all heads: many FLOPs for each byte, as with a single KV head, but every head still has keys of its own.
#
# <a id="published-cut"></a>
# ## 9. Take 93.3 % apart
# **Deep dive · 4 minutes**
#
# The report on DeepSeek-V2 says that its cache is 93.3 % smaller than that of the model before, DeepSeek 67B. Both configs are public. So we change one thing at a time.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "Both caches in 16 bit, payload of one token: by how many percent is that of DeepSeek-V2 smaller than that of DeepSeek 67B?",
    unit="%",
    key="05-cut",
)

# %%
from kvlab.arithmetic.reader import read_model

before, after = (read_model(m) for m in ("deepseek-llm-67b-base", "deepseek-v2"))
old, new = (2 * model.elements_per_token for model in (before, after))
steps = {
    f"the model before: {before.num_layers} layers of 8 KV heads": old,
    f"{after.num_layers} layers instead": old * after.num_layers // before.num_layers,
    "a latent and a RoPE key in place of the heads": new,
    "6 bits for a number instead of 16": new * 6 // 16,
}
rows = [(name, f"{size:,}", f"{1 - size / old:.2%}") for name, size in steps.items()]
header, caption = ["one change more", "B a token", "smaller by"], "16 bit, but for the last row"
table(header, rows, numeric=[1, 2], caption=caption)

# %% [markdown] tags=["deep-dive"]
# The published number needs the last row. It is our reconstruction: the report says that the served cache has 6 bits a number on average, but prints no formula.

# %% tags=["deep-dive"]
cuts = [1 - size / old for size in steps.values()]
assert (f"{cuts[2]:.1%}", f"{cuts[3]:.2%}") == ("82.2%", "93.34%")
from_layers, from_latent = cuts[1], 1 - new / (old * after.num_layers // before.num_layers)
print(f"fewer layers {from_layers:.1%}, the latent alone {from_latent:.1%} of what is left")
own_mha = after.num_layers * 2 * 128 * 128 * 2  # its own 128 heads with keys and values of 128
print(f"against MHA with its own 128 heads: {1 - new / own_mha:.1%}")
print(f"in KV heads of 128: {(512 + 64) / (2 * 128):g}")
remark = "The rest comes from the bits, which GQA could have, too."
reveal("05-cut", f"{cuts[2]:.1%}", remark=remark)

# %% [markdown] tags=["deep-dive"]
# A cut is relative to something. Ask: which model before, how many layers, how many bits on each side?
#
# <a id="latents-on-ranks"></a>
# ## 10. A latent on eight GPUs
# **Deep dive · 4 minutes**
#
# In 16 bit, on one GPU, a token of Llama 3.1 70B takes 327,680 bytes and one of DeepSeek-V2 69,120. Now both run on eight GPUs with tensor parallelism 8, which splits the heads.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "Llama's token then takes 40 KiB on each GPU. How many KiB does one of DeepSeek-V2 take on each of the eight?",
    unit="KiB",
    key="05-ranks",
)

# %% tags=["deep-dive"]
from kvlab.arithmetic.request import size_request

on_rank = {}
for tp in (1, 2, 4, 8):
    for name in ("llama-3.1-70b", "deepseek-v2"):
        size = size_request(read_model(name), context=1, tp=tp)
        on_rank[name] = size.bytes_per_token_per_rank
    print(f"GPUs {tp}:", ", ".join(f"{name} {size:7,} B" for name, size in on_rank.items()))
more, less = (on_rank[name] / 1024 for name in ("deepseek-v2", "llama-3.1-70b"))
assert less == 40
reveal("05-ranks", f"{more:g} KiB", remark="All of it, on every GPU.")

# %% [markdown] tags=["deep-dive"]
# One latent serves all heads, so it is the single KV head of section 6 again: with tensor parallelism every GPU keeps all of it. On one GPU the latent is far smaller; on eight it is the larger one. So engines split such models otherwise: attention by **requests**, each GPU with its own, and only the experts over all GPUs. For the cache the pool is a pool again; the price is that every GPU holds the weights of attention.

# %% [markdown]
# ## Your turn
# **Practice · as long as you like**
#
# Each check says "not answered yet" until you replace the `...`. Hints and worked solutions are folded; open as much as you need.
#
# **05-a The weights of attention.** Write `attention_parameters(hidden_size, num_heads, num_kv_heads, head_dim)`: the parameters of the query, key, value and output projections of one layer, without biases. Roughly 1 line.


# %% tags=["exercise"]
def attention_parameters(hidden_size, num_heads, num_kv_heads, head_dim):
    # your code
    ...


# %% tags=["check"]
from kvlab.course import check, hint_steps, solution

check("05-a", attention_parameters)

# %% tags=["hint"]
hint_steps("05-a")

# %% tags=["solution"]
solution("05-a")

# %% [markdown]
# **05-b Four heads on eight GPUs.** Qwen3 235B has 94 layers, 64 query heads, 4 KV heads and head_dim 128; the cache is in 16 bit. It runs on eight GPUs with tensor parallelism 8. How many KiB does one token take on each GPU?

# %% tags=["exercise"]
answer = ...

# %% tags=["check"]
check("05-b", answer)

# %% tags=["hint"]
hint_steps("05-b")

# %% tags=["solution"]
solution("05-b")

# %% [markdown] tags=["deep-dive"]
# **05-c Pool the heads.** `weight` is the key projection of a layer, an array of shape (heads x head_dim, hidden); a head is head_dim rows. Write `pool(weight, num_kv_heads, head_dim)`: the projection with num_kv_heads heads, each the mean of the neighbouring heads that it replaces. Roughly 2 lines.


# %% tags=["exercise"]
def pool(weight, num_kv_heads, head_dim):
    # your code
    ...


# %% tags=["check"]
check("05-c", pool)

# %% tags=["hint"]
hint_steps("05-c")

# %% tags=["solution"]
solution("05-c")

# %% [markdown]
# ## What interviewers listen for
# **Practice · as long as you like**
#
# Say your answer aloud first, then open it.
#
# <details><summary><b>What does grouped-query attention save?</b></summary>
# Scope first: which shape, which dtype, payload. Bytes of a token shrink by query heads over KV heads, and so do the bytes a decode step reads; key and value projections shrink, too. FLOPs of attention stay: each byte read does more work.
# </details>
#
# <details><summary><b>Then why not a single KV head?</b></summary>
# Quality: measure it, on a task that looks things up, with several seeds. And GPUs: with tensor parallelism each rank keeps one whole head at least, so below one head a rank nothing more is saved.
# </details>
#
# <details><summary><b>What does latent attention keep, and what does it cost?</b></summary>
# One latent and one RoPE key for each layer and token, shared by all heads, no factor 2. Up-projections are absorbed into query and output at decode, which costs more multiplications for each token read and no memory. A latent can't be split by heads.
# </details>

# %% [markdown]
# ## Claims you will meet
# **Practice · as long as you like**
#
# Statements from public pages. Give your verdict first: holds, only if, or wrong. The card then shows what was recomputed and the condition.

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.claims import claim_quiz

claim_quiz("mqa-92-sessions")

# %% tags=["widget", "nbval-ignore-output"]
claim_quiz("every-frontier-model-since-2023")

# %% [markdown]
# Two more. For the first, think of the projections; the second you have taken apart, if you did section 9.

# %% tags=["widget", "nbval-ignore-output"]
claim_quiz("gqa-no-change-to-parameter-count")

# %% tags=["widget", "nbval-ignore-output"]
claim_quiz("deepseek-v2-93-3-percent")

# %% [markdown]
# ## Self-check
# **Practice · as long as you like**
#
# Six questions. "Fresh numbers" asks the same one anew, so you can practise until the numbers no longer matter.

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.quiz import quiz

names = "ratio still-right saved-weights speed-or-capacity mqa-eight-ranks cut"
quiz(ids=[f"05-{name}" for name in names.split()], seed=5)

# %% [markdown]
# ## Takeaways
# **The answer.** On our twins nothing is lost inside the range that training showed; with fewer heads they learn less readily, and beyond that range the one with a single head falls behind. What is gained: cache and reads shrink by query heads over KV heads, some weights go, the FLOPs of attention stay. Below one KV head a GPU nothing more is gained.

# %%
takeaways = [
    (
        "Bytes shrink by query heads over KV heads, FLOPs of attention don't",
        f"70B: {token[64] // token[8]}x, {token[8] // 1024} KiB a token",
    ),
    (
        "Quality is measured, over seeds, inside and beyond the training",
        f"32 in 2,048: {ends[0][-1]}, against {ends[-1][-1]}",
    ),
    (
        "Below one KV head a GPU nothing more is saved",
        f"one head on eight GPUs: {int(pooled)} pooled, {int(by_rank)} by rank",
    ),
]
table(["takeaway", "computed here"], takeaways)

# %% [markdown] tags=["instructor"]
# <details><summary><b>For instructors</b></summary>
# Drag the explorer from 64 to 1 and stop at 8: ask what the last readout will do below, and why. Then show the table of one box and let the room say which row loses the lead of one KV head. Common wrong answer: "one head is an eighth of eight, so each GPU keeps an eighth of it".
# </details>

# %% [markdown]
# ## Sources
# - Shazeer 2019, [Fast Transformer Decoding: One Write-Head is All You Need](https://arxiv.org/abs/1911.02150): one KV head, for the sake of what a step reads.
# - Ainslie et al. 2023, [GQA](https://arxiv.org/abs/2305.13245): groups between the two ends, and uptraining from a checkpoint.
# - DeepSeek-AI 2024, [DeepSeek-V2](https://arxiv.org/abs/2405.04434): the latent, its 6-bit cache and the 93.3 %.
# - Touvron et al. 2023, [Llama 2](https://arxiv.org/abs/2307.09288): an ablation of MHA, GQA and MQA, and what eight GPUs do to one KV head.
# - Configs: [Qwen1.5 72B](https://huggingface.co/Qwen/Qwen1.5-72B-Chat), [Falcon-7B](https://huggingface.co/tiiuae/falcon-7b), [Falcon-40B](https://huggingface.co/tiiuae/falcon-40b), [DeepSeek 67B](https://huggingface.co/deepseek-ai/deepseek-llm-67b-base).
# - Hugging Face, [cache strategies](https://huggingface.co/docs/transformers/main/kv_cache). vLLM, [documentation](https://docs.vllm.ai/).
#
# **Next:** [06 Paged allocation](06_paged_allocation.ipynb) asks where the bytes go that nobody uses.
