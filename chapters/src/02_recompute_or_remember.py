# %% [markdown]
# # 02 Recompute or remember: counting the work
#
# [Open in Colab](https://colab.research.google.com/github/kvlab/kvlab/blob/main/chapters/02_recompute_or_remember.ipynb)
#
# **The question.** How much work does a cache save, which work, and why does the clock show less than the count?

# %% [markdown]
# **After this chapter you can**
#
# - count the tokens that pass through a model, with and without a cache, and not be off by one;
# - say for each part of a model how its work grows, per step and for a whole answer;
# - explain why a cache that saves most of the FLOPs saves less of the time, and when it saves nothing.
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

chapter_line("02")

# %% [markdown]
# You need one fact of chapter 01: a step writes the row of the token it consumes, and reads the rows before it.
#
# The next cell loads a real model for later, in float32 so that "equal" can mean equal. Where SmolLM2 is not at hand it takes the bundled `tiny` and the line below says so: numbers from the run will then be different, the conclusions are the same.

# %% tags=["setup", "device", "nbval-ignore-output"]
from kvlab.model.load import load_model
from kvlab.model.weights import is_available
from kvlab.widgets.predict import predict, reveal

loaded = load_model("smollm2" if is_available("smollm2") else "tiny", dtype="float32")
loaded

# %% [markdown]
# ## 1. One step, two ways
# **Core · 3 minutes**
#
# The text is A B C D, and the next letter is wanted. Without a cache the model runs the whole text again. With one it runs D alone and reads the rest. Count vectors: each token that runs makes a query, a key and a value.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "The step that consumes D, without a cache: how many queries, keys and values are computed?",
    unit="vectors",
    key="02-vectors",
)

# %% [markdown]
# Move the slider: both columns follow. On the left the hatched cells were all computed before, so what is new stays one column wide while the work grows. **How to read it:** a column is a position, outlined is computed now, hatched again, pale is read from the cache.

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.recompute_or_remember import recompute_or_remember

recompute_or_remember()

# %% [markdown]
# The toy of chapter 01 does both for real and keeps count. It must agree with the picture, and both ways must give the same letter. Look at the scores, too: a triangle without the cache, one row with it. That row still gets longer with every step; section 5 comes back to it.

# %%
from kvlab.model.toy_runs import generate as toy_generate
from kvlab.model.toy_runs import recompute

again, cached = recompute("ABCD"), toy_generate("ABC", 2)[-1]  # the step that consumes D
assert again.last.prediction == cached.last.prediction == "E"
for way, cost in (("without a cache", again.cost), ("with a cache", cached.cost)):
    print(f"{way:15} projected: {cost.tokens_projected}, scores: {cost.scores_computed:2}")
remark = "Three for each of four letters. With the cache: three."
reveal("02-vectors", 3 * again.cost.tokens_projected, remark=remark)

# %% [markdown]
# <a id="token-forwards"></a>
# ## 2. Token-forwards
# **Core · 3 minutes**
#
# The simplest exact measure is the **token-forward**: one token passing through the whole model once. P tokens are in the prompt, N are emitted. The first pass, the prefill, already emits one. The last emitted token is never fed back.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "A prompt of 2,000 tokens, 1,000 emitted, no cache. How many token-forwards?",
    unit="token-forwards",
    key="02-forwards",
)

# %% [markdown]
# First a case that fits on the page: prompt A B C, five letters emitted. On the left 25 cells pass through the model: a rectangle of N times P and a triangle beside it. On the right only the full cells do, 7 of them.

# %%
from kvlab.figures.token_forwards import token_staircases

token_staircases(list("ABCDEFGH"), 3)

# %% [markdown]
# Now as a loop, with the conventions in the open. Summed by hand it gives **P + N - 1** with a cache and **N·P + N(N - 1)/2** without. Loop, formula and toy must agree.


# %%
from kvlab.arithmetic.flops import token_forwards_cached, token_forwards_uncached


def count_token_forwards(P, N):
    cached = uncached = 0
    for step in range(N):  # step 0 is the prefill, and it emits a token too
        uncached += P + step  # the whole text again
        cached += P if step == 0 else 1  # only the token emitted just before
    return cached, uncached


for p, n in ((3, 5), (1, 1), (2000, 1000)):
    formulas = token_forwards_cached(p, n), token_forwards_uncached(p, n)
    assert count_token_forwards(p, n) == formulas
for cached, formula in ((True, token_forwards_cached), (False, token_forwards_uncached)):
    toy_run = toy_generate("ABC", 5, cached=cached)
    assert sum(step.cost.tokens_projected for step in toy_run) == formula(3, 5)
few, many = count_token_forwards(2000, 1000)
remark = f"With a cache {few:,}: the factor is {many / few:.1f}."
reveal("02-forwards", many, remark=remark)

# %% [markdown]
# Two usual slips. 1,000 times 3,000 counts every pass at its final length; early passes are shorter. And "twice the answer, four times the work" forgets the prompt, which is run again at every step, too; a claim card near the end asks how much it really is.

# %% [markdown]
# ## 3. From tokens to FLOPs
# **Core · 4 minutes**
#
# A token-forward is not always the same work. One multiply-add counts 2 FLOPs. The **linear layers** cost the same for every token: the projections, and the MLP, three matrices that follow attention in each layer. **Attention** costs more the later the token stands. The **LM head**, the matrix that makes the logits, runs once per emitted token, for nobody needs the other logits.

# %%
from kvlab.arithmetic.catalogue import model_shape

shape = model_shape("llama-3.1-70b")
L, H, MLP, V = shape.num_layers, shape.hidden_size, shape.intermediate_size, shape.vocab_size
d, n_q, n_kv = shape.head_dim, shape.num_heads, shape.num_kv_heads

linear = 2 * L * (2 * H * n_q * d + 2 * H * n_kv * d + 3 * H * MLP)  # q and o, k and v, MLP
head = 2 * H * V  # once per emitted token


def attention(t):  # the token at position t, counted from 1, meets t keys and mixes t values
    return 4 * L * n_q * d * t


print(f"{shape.name}: linear {linear / 1e9:.1f} GFLOP a token")
print(f"attention of token 2,000, counted from 1: {attention(2000) / 1e9:.1f} GFLOP")

# %% [markdown]
# Attention runs for every **query** head, so here it is `n_q`. Sharing keys among heads saves bytes (chapter 05), not these FLOPs. Summed over all passes this must give the package's closed form.

# %%
from kvlab.arithmetic.flops import flops_cached, flops_uncached

passes = [range(1, 2000 + step + 1) for step in range(1000)]  # positions run at each step
cached = sum(linear + attention(t) for t in passes[-1]) + 1000 * head  # each position once
uncached = sum(len(p) * linear + attention(sum(p)) for p in passes) + 1000 * head
assert cached == flops_cached(shape, 2000, 1000).total
assert uncached == flops_uncached(shape, 2000, 1000).total
print(f"{cached:.3e} FLOPs cached, {uncached:.3e} uncached, ratio {uncached / cached:.1f}")

# %% [markdown]
# By part, the saving is not one number. The linear layers save most, attention a little less since its history is paid for either way, the LM head nothing.

# %%
from kvlab.arithmetic.units import format_flops
from kvlab.figures.tables import table

small, large = flops_cached(shape, 2000, 1000), flops_uncached(shape, 2000, 1000)
parts = ("q and o projections", "k and v projections", "MLP", "scores", "weighted sums", "LM head")
sums = list(zip(parts, small.by_part.values(), large.by_part.values(), strict=True))
sums.append(("all", small.total, large.total))
rows = [(part, format_flops(a), format_flops(b), f"{b / a:.1f}x") for part, a, b in sums]
caption = f"{shape.name}, P = 2,000, N = 1,000"
table(["part", "cached", "uncached", "ratio"], rows, numeric=[1, 2, 3], caption=caption)

# %% [markdown]
# A formula that agrees with itself proves little. So we run the real model with an instrument on it: hooks on every linear layer note the matrices that meet, and each call of attention is counted with its mask. No formula is in there. Left out on both sides are norms, RoPE, softmax and activations: small beside the products, and a convention to name before you quote a number.

# %%
from kvlab.model.count_run import count_run
from kvlab.model.decode import generate
from kvlab.model.sample_text import sample_ids

own_shape = loaded.model.config.to_shape()
for cache, formula in (("growing", flops_cached), ("none", flops_uncached)):
    with count_run(loaded.model) as count:
        list(generate(loaded.model, sample_ids(loaded, 8), max_new_tokens=4, cache=cache))
    assert count.flops == formula(own_shape, 8, 4)  # every part, to the FLOP
    done = f"{count.passes} passes, {count.token_forwards:2} token-forwards"
    print(f"{cache:8} {done}: equal to the FLOP")

# %% [markdown]
# <a id="where-attention-overtakes"></a>
# ## 4. Turn the knobs
# **Core · 2 minutes**
#
# Attention grows with the position, the linear layers do not. So there is a position at which one decoded token spends more on its history than on everything else.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "Llama 3.1 70B: from which position on, counted from 1, does attention cost one decoded token more FLOPs than projections and MLP?",
    unit="",
    key="02-overtakes",
)

# %%
from kvlab.arithmetic.flop_steps import attention_overtakes_at

crossing = linear / attention(1)  # FLOPs a token, over FLOPs a token for each key it meets
assert attention_overtakes_at(shape) == int(crossing) + 1
others = {name: model_shape(name) for name in ("smollm2", "llama-3.1-8b")}
remark = f"They are equal at {crossing:,.0f}. The same for "
remark += "; ".join(f"{name}: {attention_overtakes_at(s):,}" for name, s in others.items())
reveal("02-overtakes", attention_overtakes_at(shape), remark=remark + ".")

# %% [markdown]
# Small models cross early: their matrices are small and their attention is not. At everyday lengths the linear layers lead. Now your own P, N and model. The ratio climbs with N: near N itself behind a long prompt, near half of N behind a short one. Set N to 1 and see what a cache saves for a single token. **How to read it:** both axes are logarithmic, so a straight line is a power and equal distances are equal factors.

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.work_explorer import work_explorer

work_explorer()

# %% [markdown]
# <a id="growth"></a>
# ## 5. Four answers to "how does it grow?"
# **Core · 2 minutes**
#
# "It goes from N² to N" is said often and means little: which part, and a step or the whole answer? We double N: work that doubles grows like N, four times is N², eight times N³.
#
# Every entry below loses one power. Per step the linear layers become constant and attention linear; for a whole answer attention is still square. (The LM head is constant per step either way.) In the code, `growth` divides the work at twice the length by the work at the length; the two functions below it pick one part of the count, for a step or for a whole answer. **How to read it:** left of the arrow without a cache, right of it with one; in brackets the factor when N doubles from 4,000.

# %%
from math import log2

from kvlab.arithmetic.flop_steps import cached_step_flops, uncached_step_flops


def growth(work, n=4000):
    ratio = work(2 * n) / work(n)
    return f"{['1', 'N', 'N²', 'N³'][round(log2(ratio))]} ({ratio:.2f}x)"


def one_step(part, flops):
    return growth(lambda n: getattr(flops(shape, n, 1), part))  # the step after n tokens


def whole(part, flops):
    return growth(lambda n: getattr(flops(shape, 1, n), part))  # n tokens emitted


rows = []
for part in ("linear", "attention"):
    step = one_step(part, uncached_step_flops), one_step(part, cached_step_flops)
    in_all = whole(part, flops_uncached), whole(part, flops_cached)
    rows.append((part, " → ".join(step), " → ".join(in_all)))
caption = "How the work grows: without a cache → with one"
table(["part", "one step at length N", "whole answer of N"], rows, caption=caption)

# %% [markdown]
# ## 6. Both ways for real
# **Core · 4 minutes**
#
# A prompt of 64 tokens, 32 emitted, greedy (always the likeliest token), with and without a cache. The formulas already know the FLOP ratio. What will the clock say? The run takes some seconds, about a minute on a busy machine.

# %% tags=["predict", "widget", "nbval-ignore-output"]
P, N = 64, 32
flop_ratio = flops_uncached(own_shape, P, N).total / flops_cached(own_shape, P, N).total
predict(
    f"{loaded.name} needs {flop_ratio:.1f} times the FLOPs without a cache. "
    "How many times as long will it take on this machine?",
    unit="",
    key="02-time",
)

# %% tags=["device", "nbval-ignore-output"]
from kvlab.widgets.waiting import with_progress

ids = sample_ids(loaded, P)
list(generate(loaded.model, ids, max_new_tokens=2))  # the first run of a kernel is slower
runs = {}
for name, cache in (("cached", "growing"), ("uncached", "none")):
    steps = generate(loaded.model, ids, max_new_tokens=N, cache=cache, keep_logits=True)
    runs[name] = list(with_progress(steps, total=N, doing=name))
print("...", *loaded.decode(ids).split()[-9:], "|")
print(loaded.decode([step.token_id for step in runs["cached"]]))

# %% [markdown]
# First the outputs. The same tokens must come out, and the logits may differ only by rounding: the same products are summed in another order.

# %%
pairs = list(zip(runs["cached"], runs["uncached"], strict=True))
same = [a.token_id == b.token_id for a, b in pairs]
largest = max(float((a.logits - b.logits).abs().max()) for a, b in pairs)
assert all(same) and largest < 1e-3
passed = {name: run[-1].total_token_forwards for name, run in runs.items()}
assert passed["cached"] == token_forwards_cached(P, N)
assert passed["uncached"] == token_forwards_uncached(P, N)
print(f"{sum(same)} of {N} tokens are equal; the largest logit difference is below 1e-3")
print("token-forwards, as computed:", passed)

# %% tags=["timing", "nbval-ignore-output"]
from kvlab.figures.comparison import Bar, compare_bars

seconds = {name: sum(step.seconds for step in run) for name, run in runs.items()}
time_ratio = seconds["uncached"] / seconds["cached"]
remark = f"{seconds['uncached']:.2f} s against {seconds['cached']:.2f} s, {loaded!r}."
reveal("02-time", f"{time_ratio:.1f}x", remark=remark, measured=True)

# %% [markdown]
# The clock shows a smaller factor than the count. The last bar shows what a cache leaves as it is: both ways make 32 passes, and each pass fetches all weights from memory. Time lies between the two counts. **How to read it:** each bar is uncached divided by cached.

# %% tags=["timing", "nbval-ignore-output"]
token_ratio = token_forwards_uncached(P, N) / token_forwards_cached(P, N)
factors = {"token-forwards": token_ratio, "FLOPs": flop_ratio, "measured time": time_ratio}
factors["passes over the weights"] = len(runs["uncached"]) / len(runs["cached"])
role = {"measured time": "value"}  # all others in grey
bars = [Bar(name, x, f"{x:.1f}x", role.get(name, "weights")) for name, x in factors.items()]
compare_bars(bars, title="What a cache saves, by what you count")

# %% [markdown]
# Step by step it looks like this. The first step is the same prefill. After it a cached step is short and flat; an uncached one runs the whole text again. **How to read it:** one point a step, in milliseconds.

# %% tags=["timing", "nbval-ignore-output"]
from kvlab.figures.curves import Axis, Series, curve_chart

numbers = list(range(1, N + 1))
looks = {"uncached": ("wasted", "dashed"), "cached": ("value", "solid")}
lines = []
for name, look in looks.items():
    lines.append(Series(name, numbers, [1000 * step.seconds for step in runs[name]], *look))
axes = {"x": Axis("step, from 1 to N"), "y": Axis("milliseconds", full=True)}
curve_chart(lines, **axes, title="Time of each step", reading=f"{loaded!r}")

# %% [markdown]
# Why the flat line is not lower still: a cached step does little arithmetic, but it must read every weight for it. Compare the FLOPs a step asks for with the bytes of weights it reads, then the time that this reading takes at the least with the time of a step.

# %% tags=["timing", "nbval-ignore-output"]
from statistics import median

from kvlab.model.measure_device import measure_device

speed = measure_device()
last = {"uncached, last step": uncached_step_flops, "cached, last step": cached_step_flops}
asked = {name: work(own_shape, P, N - 1).total / loaded.nbytes for name, work in last.items()}
asked[f"{speed.device} could do"] = speed.flops_per_second / speed.bytes_per_second
rows = [(name, f"{x:.1f} FLOPs a byte") for name, x in asked.items()]
bound, taken = speed.seconds_to_read(loaded.nbytes), median(s.seconds for s in runs["cached"][1:])
rows.append(("reading all weights once, at the least", f"{1000 * bound:.1f} ms"))
rows.append((f"a cached step, {taken / bound:.1f} times that", f"{1000 * taken:.1f} ms"))
caption = f"{loaded.nbytes / 1e6:,.0f} MB of weights are read in each step"
table(["", "counted or measured"], rows, numeric=[1], caption=caption)

# %% [markdown]
# A cached step asks for less than this machine could do for each byte. By this ratio it is **memory-bound**: at best it takes as long as reading the weights. An uncached step shares each weight among many tokens and keeps the arithmetic busy, with work that was done before.
#
# The ratio is a prediction, and the measured step is slower than its bound. So here memory is not all it waits for: Python and the start of many small operations cost time, a product with a single row does not reach the full bandwidth, and the cores may be busy otherwise. In a larger model such fixed costs weigh less, and a step comes nearer to its bound. Chapter 04 measures both phases.

# %% [markdown]
# <a id="what-caching-does-not-do"></a>
# ## 7. What a cache does not do
# **Core · 2 minutes**
#
# It does not shorten what a query looks at. Each new query still meets every key and mixes every value of its history, so a step reads more the longer the text is.

# %%
from kvlab.arithmetic.flop_steps import forward_flops
from kvlab.arithmetic.memory import kv_bytes_per_token
from kvlab.arithmetic.units import format_bytes

per_token = kv_bytes_per_token(num_layers=L, num_kv_heads=n_kv, head_dim=d, bytes_per_element=2)
rows = []
for t in (1024, 8192, 131_072):
    one_step = forward_flops(shape, q_len=1, cached_tokens=t - 1)
    work = format_flops(one_step.linear), format_flops(one_step.attention)
    rows.append((f"{t:,}", *work, format_bytes(t * per_token)))
caption = f"{shape.name}, cache in 16 bit, one sequence"
header = ["decoded at position (from 1)", "linear", "attention", "cache read"]
table(header, rows, numeric=[1, 2, 3], caption=caption)

# %% [markdown]
# The linear work stays, the rest grows: in FLOPs, and in bytes to hold and read. Chapter 03 computes them.
#
# <a id="when-to-turn-it-off"></a>
# ### When to turn it off
# A cache pays when a later pass asks again for the same keys and values. If there is no later pass, it costs memory and returns nothing.

# %%
for new in (1, 2, 10, 1000):
    saved = 1 - token_forwards_cached(2000, new) / token_forwards_uncached(2000, new)
    print(f"prompt of 2,000, {new:5,} emitted: {saved:6.1%} of the token-forwards saved")

# %% [markdown]
# - **One forward pass**: scoring a document, an embedding, a classification. N is 1, nothing is saved.
# - **Training**: all positions run in one pass, and after the next update the old keys would be wrong.
# - **Debugging**: the uncached run is the reference. When outputs look wrong, switch the cache off and compare, as section 6 did.

# %% [markdown] tags=["deep-dive"]
# ## 8. What the framework's own counter says
# **Deep dive · 5 minutes**
#
# PyTorch counts FLOPs too. We let it count one prefill of the real model twice: with the attention kernel it picks by itself, and with attention made of plain matrix products.

# %% tags=["deep-dive", "device", "nbval-ignore-output"]
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

with torch.no_grad(), FlopCounterMode(display=False) as fused:
    loaded.model(ids, last_token_only=True)
with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as plain:
    loaded.model(ids, last_token_only=True)
ours = forward_flops(own_shape, q_len=P)
rest = ours.linear + ours.lm_head  # on these all three agree
counts = {"ours, pairs that are not masked": ours.attention}
counts[f"PyTorch, its own kernel on {loaded.device.type}"] = fused.get_total_flops() - rest
counts["PyTorch, plain products"] = plain.get_total_flops() - rest
rows = [(who, format_flops(work)) for who, work in counts.items()]
table(["who counts", "FLOPs of attention"], rows, numeric=[1], caption=f"A prefill of {P} tokens")

# %% [markdown] tags=["deep-dive"]
# On a CPU the first count of PyTorch is **0**: it has no rule for the fused kernel there and stays silent about it. With plain products it counts attention, and about twice what we do: plain products compute the masked scores too and throw them away, a full square. Ours is the triangle, the work that is needed. Both are right about different questions.

# %% tags=["deep-dive"]
from kvlab.arithmetic.flops import FULL_SQUARE

square = forward_flops(own_shape, q_len=P, attention=FULL_SQUARE)
assert plain.get_total_flops() == square.total
assert fused.get_total_flops() - rest in (0, square.attention)
print(f"pairs: {P * P:,} in the square, {P * (P + 1) // 2:,} in the triangle")
print(f"{square.attention / ours.attention:.2f} times the work, and nothing gained")

# %% [markdown] tags=["deep-dive"]
# <a id="growing-or-preallocated"></a>
# ## 9. Where the square hides again
# **Deep dive · 10 minutes**
#
# The cache removed repeated arithmetic. How is the cache itself made longer? The obvious way is to join the old tensor and the new row, as `GrowingLayer` does. But a tensor can't grow: joining makes a new one and copies all of the past into it.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "Tokens arrive one by one in a growing cache. Twice as many tokens: how many times the bytes copied?",
    unit="",
    key="02-copies",
)

# %% [markdown] tags=["deep-dive"]
# The other way reserves room once and writes in place. Here are the two storages of `kvlab/cache/contiguous.py`; until now you have used the first.

# %% tags=["deep-dive"]
import inspect

from kvlab.cache.contiguous import GrowingLayer, PreallocatedLayer

for kind in (GrowingLayer, PreallocatedLayer):
    print(f"# {kind.__name__}\n{inspect.getsource(kind.store)}")

# %% [markdown] tags=["deep-dive"]
# We fill one layer of the real model's size, token by token, and count each byte that a copy writes. The counter sits below torch's operations and knows nothing of caches.
#
# The numbers are old friends: rows copied while growing are exactly the token-forwards *without* a cache, rows written into the buffer those *with* one.

# %% tags=["deep-dive"]
from kvlab.cache.count_copies import count_copies

one = torch.zeros(1, own_shape.num_kv_heads, 1, own_shape.head_dim, dtype=torch.float32)


def bytes_copied(layer, tokens):
    with count_copies() as count:
        for _ in range(tokens):
            layer.update(one, one)
    return count.num_bytes


row_bytes, grown = 2 * one.nbytes, {}  # a key and a value, one layer
for n in (256, 512, 1024):
    grown[n], written = bytes_copied(GrowingLayer(), n), bytes_copied(PreallocatedLayer(n), n)
    assert grown[n] == row_bytes * token_forwards_uncached(1, n)
    assert written == row_bytes * token_forwards_cached(1, n)
    print(f"{n:5,} tokens: {grown[n] / 1e6:6.1f} MB growing, {written / 1e6:4.1f} MB into a buffer")
remark = "The triangle of section 2 is back, in bytes instead of FLOPs."
reveal("02-copies", f"{grown[1024] / grown[512]:.2f}x", remark=remark)

# %% [markdown] tags=["deep-dive"]
# Does it matter on the clock? The same filling, timed without the counter. **How to read it:** each line is one layer filled token by token; a growing one bends upwards, a buffer stays a straight line.

# %% tags=["deep-dive", "timing", "nbval-ignore-output"]
from time import perf_counter

sizes, times = [256, 512, 1024, 1536, 2048], {"growing": [], "pre-allocated": []}
for n in sizes:
    layers = {"growing": GrowingLayer(), "pre-allocated": PreallocatedLayer(capacity=n)}
    for name, layer in layers.items():
        started = perf_counter()
        for _ in range(n):
            layer.update(one, one)
        times[name].append(1000 * (perf_counter() - started))
looks = {"growing": ("wasted", "dashed"), "pre-allocated": ("value", "solid")}
lines = [Series(name, sizes, times[name], *look) for name, look in looks.items()]
axes = {"x": Axis("tokens", full=True), "y": Axis("milliseconds", full=True)}
curve_chart(lines, **axes, title="Filling one layer token by token")

# %% [markdown] tags=["deep-dive"]
# transformers' default cache grows in this way, too. A step then moves the cache three times: read by attention, read and written by the copy. One sequence hardly feels it, as the table shows: reading the weights is far more. (Its last row needs no new formula: `linear` counts 2 FLOPs a weight, and in 16 bit a weight has 2 bytes, so the two numbers are the same.) Many sequences share the weights but not the caches, and do feel it.
#
# A buffer has its own price: it is reserved before anybody knows how long the answer gets. Fixed blocks avoid both; that is chapter 06.

# %% tags=["deep-dive"]
sums = {
    "cache held at the end": per_token * token_forwards_cached(2000, 1000),
    "copied while growing": per_token * token_forwards_uncached(2000, 1000),
    "layer weights, read 1,000 times": 1000 * linear,  # as many bytes as FLOPs
}
rows = [(name, format_bytes(num_bytes)) for name, num_bytes in sums.items()]
table([shape.name, "in 16 bit"], rows, numeric=[1], caption="P = 2,000, N = 1,000")

# %% [markdown]
# ## Your turn
# **Practice · as long as you like**
#
# Each check says "not answered yet" until you replace the `...`. Hints and worked solutions are folded; open as much as you need.
#
# **02-a Token-forwards.** Write `token_forwards(P, N)`: return (cached, uncached), the tokens that pass through the model for P prompt tokens and N emitted ones. The prefill emits the first; the last emitted token is not fed back. Roughly 2 lines.


# %% tags=["exercise"]
def token_forwards(P, N):
    # your code
    ...


# %% tags=["check"]
from kvlab.course import check, hint_steps, solution

check("02-a", token_forwards)

# %% tags=["hint"]
hint_steps("02-a")

# %% tags=["solution"]
solution("02-a")

# %% [markdown]
# **02-b One cached step.** Write `cached_step(x, keys, values, weights)` for one attention head: `x` (hidden_size,) is the newest token, `keys` and `values` (kv_len, head_dim) the cache, `weights` a dict with the matrices `"query"`, `"key"`, `"value"` (hidden_size, head_dim). Return (output, keys, values), each cache one row longer. Your `attend` of chapter 01 helps; roughly 4 lines.


# %% tags=["exercise"]
def cached_step(x, keys, values, weights):
    # your code
    ...


# %% tags=["check"]
check("02-b", cached_step)

# %% tags=["hint"]
hint_steps("02-b")

# %% tags=["solution"]
solution("02-b")

# %% [markdown]
# **02-c Attention of a thousand decoded tokens.** Llama 3.1 70B: 80 layers, 64 query heads, 8 KV heads, head_dim 128. With a cache, 1,000 tokens are decoded at positions 7,193 to 8,192 (counted from 1, each sees itself too). How many FLOPs does attention over the history take for all of them? Scores and weighted sum; one multiply-add is 2 FLOPs; softmax left out.

# %% tags=["exercise"]
answer_c = ...

# %% tags=["check"]
check("02-c", answer_c)

# %% tags=["hint"]
hint_steps("02-c")

# %% tags=["solution"]
solution("02-c")

# %% [markdown]
# **02-d Which count is off by one?** A prompt of 6 tokens, 10 tokens emitted, with a cache. Answer with three numbers: (forward passes, decode steps, positions in the cache at the end).

# %% tags=["exercise"]
answer_d = ...

# %% tags=["check"]
check("02-d", answer_d)

# %% tags=["hint"]
hint_steps("02-d")

# %% tags=["solution"]
solution("02-d")

# %% [markdown]
# ## What interviewers listen for
# **Practice · as long as you like**
#
# Answer aloud first, then open.
#
# <details><summary><b>What does a KV cache save, exactly?</b></summary>
# Scope first: one sequence, full attention, work in FLOPs. Without it every step runs the whole text; with it a step runs one token. Token-forwards fall from N·P + N(N - 1)/2 to P + N - 1. The output is the same. The price is memory that grows with every token.
# </details>
#
# <details><summary><b>Does it make generation linear?</b></summary>
# Per step the linear layers become constant and attention linear in the history. Over a whole answer that is N and N². Without a cache each is one power higher. At usual lengths the linear layers dominate, so it looks linear.
# </details>
#
# <details><summary><b>The FLOPs fell by a large factor. Why not the time?</b></summary>
# Both ways make N passes, and every pass reads all weights. A cached pass does about one multiply-add per weight it reads: by that ratio it waits for memory. Batching helps: sequences share one reading of the weights.
# </details>

# %% [markdown]
# ## Claims you will meet
# **Practice · as long as you like**
#
# Statements from public pages. Give your verdict first: holds, only if, or wrong. The card then shows what was recomputed and the condition.

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.claims import claim_quiz

claim_quiz("recompute-quadruples")

# %% tags=["widget", "nbval-ignore-output"]
claim_quiz("matmuls-32000")

# %% [markdown]
# Two more. For the first, ask at which length each step was counted; for the second, what stands on either side.

# %% tags=["widget", "nbval-ignore-output"]
claim_quiz("redundant-kv-1000-500")

# %% tags=["widget", "nbval-ignore-output"]
claim_quiz("o-n2-to-o-n-per-step")

# %% [markdown]
# ## Self-check
# **Practice · as long as you like**
#
# Six questions. "Fresh numbers" asks the same one anew, so you can practise until the numbers no longer matter.

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.quiz import quiz

names = "cached-forwards uncached-forwards doubling growth-per-step when-useless"
quiz(ids=[f"02-{name}" for name in (*names.split(), "attention-overtakes")], seed=2)

# %% [markdown]
# ## Takeaways
# **The answer.** A cache saves the passes over tokens that already passed: in projections and MLP almost all of them, in attention the old queries, in the LM head nothing. The clock shows less, because every pass still reads all weights, and each new query still reads a growing history.

# %%
few, many = token_forwards_cached(2000, 1000), token_forwards_uncached(2000, 1000)
leads = f"at position {attention_overtakes_at(shape):,} in {shape.name}"
all_attention = whole("attention", flops_cached)
takeaways = [
    ("P + N - 1 token-forwards instead of N·P + N(N - 1)/2", f"{few:,} instead of {many:,}"),
    ("Every growth loses one power of N; attention is still square in all", all_attention),
    ("Linear layers lead until attention overtakes", leads),
]
table(["takeaway", "computed here"], takeaways)

# %% [markdown] tags=["instructor"]
# <details><summary><b>For instructors</b></summary>
# Show the two columns at position 3, ask for the work at position 7 (both counted from 0) and count hands for "twice as much". Then ask whether a cache makes a whole answer linear, before the table of section 5 is on the wall.
# </details>

# %% [markdown]
# ## Sources
# - Vaswani et al. 2017, [Attention Is All You Need](https://arxiv.org/abs/1706.03762): the products that are counted here.
# - Shazeer 2019, [Fast Transformer Decoding: One Write-Head is All You Need](https://arxiv.org/abs/1911.02150): why decoding one token waits for memory.
# - Kwon et al. 2023, [Efficient Memory Management for Large Language Model Serving with PagedAttention](https://arxiv.org/abs/2309.06180): what reserving buffers wastes.
# - Hugging Face, [how a cache works in transformers](https://huggingface.co/docs/transformers/main/cache_explanation).
# - The real model: [SmolLM2-135M-Instruct](https://huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct).
#
# **Next:** [03 The memory formula](03_memory_formula.ipynb) computes what it costs to remember.
