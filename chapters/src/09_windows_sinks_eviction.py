# %% [markdown]
# # 09 Windows, sinks and eviction
#
# [Open in Colab](https://colab.research.google.com/github/kvlab/kvlab/blob/main/chapters/09_windows_sinks_eviction.ipynb)
#
# **The question.** Which tokens may a cache forget?

# %% [markdown]
# **After this chapter you can**
#
# - say what a windowed layer sees and keeps, and which part of a hybrid model's cache still grows;
# - put eviction policies side by side by what they lose, and choose by measuring;
# - keep positions right after eviction, and weigh eviction against computing again and against a slower memory that loses nothing.
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

chapter_line("09")

# %% [markdown]
# **Core** 15 minutes, **deep dives** 20 minutes. You need the bytes of a token from chapter 03, RoPE from chapter 01 for one deep dive, and KL and top-1 from chapter 08.
#
# Two models come along, in float32. `tiny` was trained to look things up: 32 facts stand in a text, and each is asked for later. So what a cache lost shows at once, as **recall**, the share of right answers. SmolLM2 reads prose and is judged by its **loss** (nats a token, lower is better). Where it is not at hand, `tiny` takes its place.

# %% tags=["setup", "device", "nbval-ignore-output"]
from IPython.display import display

from kvlab.model.load import load_model
from kvlab.model.quality import Bench
from kvlab.model.weights import is_available
from kvlab.widgets.predict import predict, reveal

real = load_model("smollm2" if is_available("smollm2") else "tiny", dtype="float32")
facts = Bench(load_model("tiny", dtype="float32"), num_sequences=4)  # 4 texts of 512 tokens
prose = Bench(real, tokens=72 if real.name == "smollm2" else None, num_sequences=2)
real

# %% [markdown]
# <a id="where-attention-falls"></a>
# ## 1. Where attention falls
# **Core · 3 minutes**
#
# Before anything is dropped: what do queries look at? We let the real model read 256 tokens, and add up the attention that each position gets from all queries, for each head by itself. The top 1 % of the positions are three tokens then, and another head may have other ones.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "Which share of all attention do the top 1 % of positions get, on average over layers and heads?",
    unit="%",
    key="09-share",
)

# %% tags=["device", "nbval-ignore-output"]
from kvlab.figures.tables import table
from kvlab.model.attention_share import attention_share
from kvlab.model.quality_task import make_task

text = make_task(real, num_sequences=1).input_ids[:, :256]
share, rows = attention_share(real.model, text), []
for percent in (1, 5, 20):
    part = share.top_share(percent)  # (num_layers, num_heads)
    spread = f"{part.min():.0%} to {part.max():.0%}"
    rows.append((f"top {percent} %", f"{share.top_count(percent)}", f"{part.mean():.0%}", spread))
alike = sum(1 / n for first in (1, 2, 3) for n in range(first, 257)) / 256
remark = f"If each query looked at all it can see alike, the first three would get {alike:.0%}."
display(reveal("09-share", f"{share.top_share(1).mean():.0%}", remark=remark))
header = ["positions", "how many", "attention, mean of heads", "lowest to highest head"]
table(header, rows, numeric=[1, 2, 3], caption=f"{real.name}, {share.num_tokens} tokens")

# %% [markdown]
# A mean hides the heads. **How to read it:** a cell is one query head in one layer, the number its share in percent. Compare the first layers, at the left, with later ones. And move the slider to the first token alone.

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.share_explorer import share_explorer

share_explorer(share, name=real.name)

# %% [markdown]
# Most of it falls on **one** token, the first. Is that word so important? Exchange it for another word of the text and measure again, on the first 128 tokens. Then the same share for `tiny`.


# %% tags=["device", "nbval-ignore-output"]
def on_the_first(loaded, ids):
    return float(attention_share(loaded.model, ids).first_share(1).mean())


for place in (0, 9, 40, 80):
    other = text[:, :128].clone()
    other[0, 0] = text[0, place]
    word = real.decode([int(other[0, 0])])
    print(f"{real.name} with {word!r} in front: {on_the_first(real, other):.0%} on the first token")
tiny, context = facts.loaded, facts.task.input_ids[:1, : facts.task.context_len]
print(f"tiny: {on_the_first(tiny, context):.0%} on the first token")

# %% [markdown]
# Whatever stands first gets it. Softmax hands out exactly 1, and a head that has nothing to look for parks its attention there: an **attention sink**. `tiny` has none worth the name. Hold on to both facts.
#
# <a id="windows"></a>
# ## 2. Windows by design
# **Core · 4 minutes**
#
# A model can be **trained** so that a layer sees only the last W tokens. Then letting go of all others is exact. But what does W count?

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "W = 4,096, the token that asks counted. Which is the first position that query 8,001 sees?",
    key="09-window",
)

# %%
import torch

from kvlab.cache.windowed import SlidingWindowLayer
from kvlab.model.masks import visible_slots


def sees(query, window, counts_itself=True):
    first = query - window + (1 if counts_itself else 0)
    return max(first, 0), query


for counts_itself in (True, False):
    first, last = sees(8001, 4096, counts_itself)
    past = SlidingWindowLayer(4096, includes_self=counts_itself).num_past
    assert last - first == past  # all but the query itself come from the cache
    counted = "counted" if counts_itself else "not counted"
    print(f"own token {counted}: it sees {first:,} to {last:,}, {past:,} of them from the cache")
mask = visible_slots(torch.arange(8002)[None, None], past=8001, q_len=1, window=4096)
visible = mask.flatten().nonzero()
assert (int(visible.min()), int(visible.max())) == sees(8001, 4096)  # what our Llama masks
reveal("09-window", f"{sees(8001, 4096)[0]:,}", remark="8,001 - 4,096 + 1.")

# %% [markdown]
# Both conventions are in use: transformers' masks count the token that asks, and some papers write "from i - W to i". Say which one you mean. From here on it is counted.
#
# <a id="reach"></a>
# ### What has left the window still acts
# A state that a query reads has itself read others, one layer below. So W bounds the **direct** look only.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "Four layers, W = 4 in each. How many positions on can a token make itself felt, at most?",
    unit="positions",
    key="09-reach",
)

# %% [markdown]
# We build such a stack with random weights, change the token at position 1 and compare all states. **How to read it:** the first row is the token's own vector, then comes the state after each layer. A filled cell is a state that changed, by so many percent of its length (over 100: it became quite another). The dashed box is what query 13 reads in the last layer.

# %%
from kvlab.figures.reach_map import reach_map
from kvlab.model.config import LlamaConfig
from kvlab.model.llama import Llama
from kvlab.model.state_reach import reach, state_differences

sizes = {"num_layers": 4, "num_heads": 2, "num_kv_heads": 1, "head_dim": 8, "hidden_size": 16}
sizes |= {"intermediate_size": 32, "vocab_size": 50, "max_seq_len": 64, "sliding_window": 4}
stack = Llama(LlamaConfig(**sizes)).init_weights(3, std=0.5)
ids = torch.randint(0, 50, (1, 18), generator=torch.Generator().manual_seed(0))
edited = ids.clone()
edited[0, 1] = (ids[0, 1] + 1) % 50
differences = state_differences(stack, ids, edited)
assert reach(differences, 1) == [layers * (4 - 1) for layers in range(5)]
first, last = sees(13, 4)
reach_map(differences.tolist(), changed=1, direct=range(first, last + 1))

# %%
from kvlab.arithmetic.reader import read_model

((layer, count),) = read_model("mistral-7b-v0.1").counted  # all layers are alike
far, rounded = count * (layer.window - 1), count * layer.window
print(f"Mistral 7B, {count} layers of {layer.window:,}: {far:,}; in round numbers {rounded:,}")
remark = "Each layer hands on by W - 1; layers x W is the round number for it."
reveal("09-reach", reach(differences, 1)[-1], remark=remark)

# %% [markdown]
# That is what **can** arrive. The percents say that little does.
#
# Now trained models. `tiny-window` has W = 64 in its first layer and sees everything in its second. Beside it stands `tiny-gqa`, the same but trained without a window. We cut one into it: a layer that was trained to see everything keeps the newest 63 tokens alone, which with the token that asks makes 64.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "tiny-gqa answers all questions about 32 facts in 512 tokens. Its second layer now keeps the newest 63 tokens, its first everything. What share is still answered?",
    unit="%",
    key="09-cut",
)

# %% tags=["device", "nbval-ignore-output"]
from kvlab.cache.container import KVCache
from kvlab.cache.contiguous import GrowingLayer
from kvlab.cache.eviction_scores import WindowLayer
from kvlab.cache.windowed import windowed_cache

made, plain = Bench("tiny-window", num_sequences=4), Bench("tiny-gqa", num_sequences=4)
own = made.measure(lambda: windowed_cache(made.loaded.model.config.layer_windows))
assert own.kl < 1e-9  # exact: the model never saw more
results = {"tiny-window, its own window": own, "tiny-gqa, everything": plain.measure("growing")}
cuts = {
    "first layer cut to 63": lambda: [WindowLayer(63), GrowingLayer()],
    "second layer cut to 63": lambda: [GrowingLayer(), WindowLayer(63)],
    "both cut to 287": lambda: [WindowLayer(287), WindowLayer(287)],
}
for name, layers in cuts.items():
    results[f"tiny-gqa, {name}"] = plain.measure(lambda layers=layers: KVCache(layers()))
rows = [(name, f"{q.cache_bytes:,}", f"{q.recall:.3f}") for name, q in results.items()]
header, caption = ["cache", "bytes", "recall"], "512 tokens, 32 facts, 128 questions"
table(header, rows, numeric=[1, 2], caption=caption)

# %% [markdown]
# The last row has about as many tokens in all as the three with 63, but 287 in each layer. So about the same bytes, and anything from all to nearly nothing: **which** layer forgets decides. **Hybrid** models are built on that: some of their layers have a window, the others see everything.

# %% tags=["device", "nbval-ignore-output"]
lost = results["tiny-gqa, second layer cut to 63"]
remark = "The first layer looks at neighbours, the second looks things up."
reveal("09-cut", f"{lost.recall:.1%}", remark=remark, measured=True)

# %% [markdown]
# <a id="what-grows"></a>
# ### What still grows
# The layers without a window do, the full ones. **How to read it:** one request, cache in 16 bit, payload; the last column is what one more token adds when all windows are full. (Arithmetic: not all of these models were trained for texts so long.)

# %%
from kvlab.arithmetic.request import size_request

names = "mistral-7b-v0.1 mistral-7b-v0.3 gemma-2-27b gemma-3-27b-it gpt-oss-20b gpt-oss-120b"
rows = []
for name in names.split():
    model = read_model(name)
    kinds = {layer.window: count for layer, count in model.counted}
    windows = ", ".join(f"{n} of {w:,}" for w, n in kinds.items() if w) or "none"
    sizes = [size_request(model, context=t).request_bytes for t in (8192, 131_072, 131_073)]
    gib = [f"{size / 2**30:.2f}" for size in sizes[:2]]
    rows.append((name, windows, str(kinds.get(None, 0)), *gib, f"{sizes[2] - sizes[1]:,}"))
header = ["model", "layers with a window", "full", "GiB at 8,192", "at 131,072", "B a token more"]
table(header, rows, numeric=[2, 3, 4, 5], caption="Windowed and hybrid models")

# %% [markdown]
# Only the model whose layers all have a window is capped. A later version of it dropped the window.
#
# <a id="evict"></a>
# ## 3. Evict on purpose
# **Core · 2 minutes**
#
# Now a model that was trained to see everything, and a **budget** of tokens. Every policy is one sentence: give each token held a score, keep the highest. Most also protect the newest.
#
# **Heavy hitters** (H2O) take the attention drawn so far as the score, and half the budget for the newest. Here 416 tokens are read with a budget of 104, a quarter; 52 of them are the newest. Each KV head of each layer chooses for itself. Does the package keep the tokens that this rule names?

# %% tags=["device"]
import numpy as np

from kvlab.cache import make_cache


def evict(scores, budget, recent):
    newest = len(scores) - recent
    if len(scores) <= budget:
        return np.arange(len(scores))
    high = np.argsort(-scores[:newest], kind="stable")[: budget - recent]
    return np.sort([*high, *range(newest, len(scores))])


watching, small = (make_cache("h2o", num_layers=2, budget=b) for b in (10_000, 104))
for cache in (watching, small):
    tiny.model(context, cache=cache, last_token_only=True)
for all_of_them, few in zip(watching.layers, small.layers, strict=True):
    for head, scores in enumerate(all_of_them.scores[0].cpu().numpy()):
        kept = few.kept_positions()[0, head].cpu().numpy()
        assert np.array_equal(evict(scores, 104, 52), kept)
print(f"{context.shape[1]} tokens read, 104 kept in each KV head: the ones that our rule names")

# %% [markdown]
# Other scores: the key's length (**key norm**: short keys tend to draw attention), what queries like those so far would give (**expected attention**), chance (**random**, the one to beat). Positions alone decide for the **window** and for **sinks**, which adds the first four tokens.
#
# <a id="one-budget"></a>
# ## 4. One budget
# **Core · 3 minutes**
#
# `tiny`, six policies, six budgets: all measured now. A text has 512 tokens, and a budget of 25 % is a quarter of these: 128 in each KV head. The facts stand in the first 416 tokens, then the questions begin.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "The window at 25 % keeps the newest 128 tokens. What share of the questions does it answer? (And will random do better?)",
    unit="%",
    key="09-random",
)

# %% tags=["device", "nbval-ignore-output"]
from kvlab.model.eviction_runs import PERCENTS, POLICIES, eviction_runs
from kvlab.widgets.waiting import with_progress

total = len(POLICIES) * len(PERCENTS)
runs = list(with_progress(eviction_runs(facts), total=total, doing="evict"))
at = {(run.policy, run.percent): run for run in runs}
rows = [(name, *(f"{at[name, p].recall:.3f}" for p in PERCENTS)) for name in POLICIES]
remark = f"Random: {at['random', 25].recall:.1%}. It keeps facts anywhere, each head others."
display(reveal("09-random", f"{at['window', 25].recall:.1%}", remark=remark, measured=True))
header = ["policy", *(f"{percent} %" for percent in PERCENTS)]
table(header, rows, numeric=range(1, len(header)), caption="Recall of tiny, by budget")

# %% [markdown]
# The same as curves. **How to read it:** to the right the cache gets smaller, by the factor on the axis.

# %% tags=["device", "nbval-ignore-output"]
from kvlab.figures.curves import Axis, Series, curve_chart

colours = ["wasted", "key", "weights", "shared", "value", "query"]
dashes = ["dashed", "dotted", "dashed", "dotted", "solid", "solid"]
smaller = [100 / percent for percent in PERCENTS]
lines = []
for name, *look in zip(POLICIES, colours, dashes, strict=True):
    lines.append(Series(name, smaller, [at[name, p].recall for p in PERCENTS], *look))
axes = {"x": Axis("times smaller than the full cache", log=True, base=2), "y": Axis("recall")}
curve_chart(lines, **axes, title="What is still answered", height=240)

# %% [markdown]
# And the map: what survives when the first question comes. Move the budget, then the policy, and look where the lost facts stand. The cell below it counts for two of them.

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.eviction_explorer import eviction_explorer

eviction_explorer(runs, policy="window", percent=25, texts=4)

# %% tags=["device", "nbval-ignore-output"]
few = at["h2o", 12]
for half, begins in {"early": range(208), "late": range(208, 416)}.items():
    right = [ok for ok, p in zip(few.answered, few.fact_positions, strict=True) if p in begins]
    print(f"h2o at 12 %: of {len(right)} facts in the {half} half {sum(right)} are answered")
places = [p + i for p in few.fact_positions for i in (0, 1)]  # a fact is a name and a place
others = sorted(set(range(416)) - set(places))
for number, layer in enumerate(watching.layers, start=1):
    lengths = layer.held()[0][0].norm(dim=-1)  # (num_kv_heads, tokens)
    facts_, rest = (float(lengths[:, each].mean()) for each in (places, others))
    print(f"layer {number}: keys of facts have length {facts_:.1f}, other keys {rest:.1f}")

# %% [markdown]
# The window answers what it still holds when the question comes (each question is three tokens more, so it moves on), and random beats it: facts stand anywhere. A fact that is gone is still guessed right once in 64 times. Heavy hitters lose the **late** facts, for a sum favours what has been there for long. Key norm keeps short keys, and in the second layer of `tiny`, the one that looks facts up, facts have long ones: it keeps exactly the wrong ones.

# %% [markdown]
# ### And in real language?
# The same policies on SmolLM2 and two pieces of prose, 72 tokens each, half of them kept; `growing` is the full cache. Which policy will be best here, which worst? **How to read it:** KL says how far the next-token distribution moved from the full cache's, top-1 how often the first choice stayed.

# %% tags=["device", "nbval-ignore-output"]
from kvlab.model.quality_table import quality_table

caches = ["growing", *((policy, {"budget": "50%"}) for policy in POLICIES)]
caches += [("expected", {"budget": "50%", "recent": 8})]
steps = with_progress(caches, total=len(caches), doing="evict")
said = {q.label: q for cache in steps for q in quality_table(prose, [cache])}
rows = [(name, f"{q.loss:.2f}", f"{q.kl:.3f}", f"{q.top1:.0%}") for name, q in said.items()]
look = prose.maker("expected", budget="50%")()
real.model(prose.task.input_ids[:1, :64], cache=look, last_token_only=True)
kept = torch.stack([layer.kept_positions()[0] for layer in look.layers])  # by layer and KV head
sink, newest = (kept == 0).any(-1).float().mean(), (kept >= 56).sum(-1).float().mean()
print(f"expected, 64 tokens read: {sink:.0%} of KV heads keep the first token, ", end="")
print(f"on average {newest:.1f} of the newest 8 are kept")
caption = f"{real.name}, {prose.task.tokens} tokens, half of them kept"
table(["cache", "loss", "KL", "top-1"], rows, numeric=[1, 2, 3], caption=caption)

# %% [markdown]
# The order is another one. On SmolLM2 the window alone is ruin, and four sinks repair most of it: without the first token every head must park elsewhere. Expected attention, best on `tiny`, keeps the sink by itself but lets some of the newest tokens go, which prose leans on; protect eight of them and it is fine. Heavy hitters do well on both at 50 %, and fall behind on `tiny` when less is kept.
#
# So **no rule is the best one everywhere.** Choose on your own task, at your own length and budget, with something to be found in the text: by the loss the sinks look cheap here, and on `tiny` they lose half of the facts.

# %% [markdown]
# <a id="no-free-answer"></a>
# ## 5. No free answer
# **Core · 1 minute**
#
# A token is judged before anybody asks for it. When the question comes and it is gone, three ways are left: answer without it, read the text again, or fetch it from a **tier**, a larger and slower memory (that of the host, or a disk) in which a copy was put away. We ask for a fact that the window at 25 % has lost.

# %% tags=["device", "nbval-ignore-output"]
from kvlab.model.retrieval_words import WHERE_ID

run = at["window", 25]
name = context[0, run.fact_positions[run.answered.index(False)]]
question = torch.tensor([[WHERE_ID, int(name)]], device=tiny.device)
ways = {"lose it": ("window", {"budget": run.budget}), "read the text again": ("growing", {})}
ways["fetch from a tier"] = ("offloaded", {"tier": "disk"})
rows = []
for way, (kind, options) in ways.items():
    cache = make_cache(kind, num_layers=2, **options)
    tiny.model(context, cache=cache, last_token_only=True)
    again = context.shape[1] if kind == "growing" else 0
    fetched = cache.nbytes if kind == "offloaded" else 0
    reply = tiny.decode([int(tiny.model(question, cache=cache)[0, -1].argmax())])
    rows.append((way, reply, f"{again:,}", f"{fetched:,}"))
fact = run.facts[run.answered.index(False)]
header = ["way", "answer", "tokens computed again", "bytes brought back"]
table(header, rows, numeric=[2, 3], caption=f"The fact was {fact!r}")

# %% [markdown]
# **Recompute, swap, or lose.** A policy only chooses who is lost. Sections 8 and 9 price the other two.

# %% [markdown] tags=["deep-dive"]
# <a id="positions"></a>
# ## 6. Positions after eviction
# **Deep dive · 6 minutes**
#
# A key was turned by RoPE when it came, by an angle of its position. After eviction there are three numbers: tokens **seen**, tokens **kept**, and the **next position**. Keys that keep their angles need a query at its true place, behind all that was seen. Then eviction does what a mask on the same tokens would do: here sinks with a budget of 104, after 416 tokens.

# %% tags=["deep-dive", "device"]
full, cut = make_cache("growing", num_layers=2), make_cache("sinks", num_layers=2, budget=104)
for cache in (full, cut):
    tiny.model(context, cache=cache, last_token_only=True)
seen = cut.get_seq_length()
kept = cut.layers[0].kept_positions()[0, 0]
allowed = torch.zeros(1, seen + 1, dtype=torch.long, device=tiny.device)
allowed[0, kept] = allowed[0, seen] = 1  # the kept ones, and the token that asks
token, place = facts.task.input_ids[:1, seen : seen + 1], torch.tensor([[seen]])
masked = tiny.model(token, cache=full, attention_mask=allowed, position_ids=place)
evicted = tiny.model(token, cache=cut)
assert torch.allclose(masked, evicted, atol=1e-4)
print(f"seen {seen}, kept {len(kept)}, next position {seen}: equal to the masked full cache")

# %% [markdown] tags=["deep-dive"]
# The known bug is one line: the next position is read off the tensor, which holds what is **kept**. Nothing raises, shapes fit.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "Heavy hitters at 50 % answered all. With the number of kept tokens as the next position: what share?",
    unit="%",
    key="09-bug",
)

# %% tags=["deep-dive", "device", "nbval-ignore-output"]
from kvlab.cache.eviction_observed import HeavyHitterLayer


class KeptAsPosition(KVCache):  # the bug
    def get_next_position(self):
        return self.layers[0].num_kept()


half = facts.task.tokens // 2
bug = facts.measure(lambda: KeptAsPosition(HeavyHitterLayer(half) for _ in range(2)))
remark = "No error, no warning. Test it: budget below length, one step, equal logits."
reveal("09-bug", f"{bug.recall:.1%}", remark=remark, measured=True)

# %% [markdown] tags=["deep-dive"]
# The honest alternative is to **re-rotate**: turn all survivors to 0, 1, 2, ... and put the query right behind them. Distances shrink then, but they are consistent.
#
# All three on both models, half of the tokens kept. Rules that watch attention can't be re-rotated here. So `tiny` uses one that looks at keys alone, **distinct keys**: keep those least like the mean of all. SmolLM2 uses the sinks.

# %% tags=["deep-dive", "device", "nbval-ignore-output"]
from kvlab.cache.eviction_scores import KeyDiffLayer, SinksLayer

few, depth = prose.task.tokens // 2, real.model.config.num_layers
bug = facts.measure(lambda: KeptAsPosition(KeyDiffLayer(half) for _ in range(2)))
turned = facts.measure("keydiff", budget="50%", positions="rerotated")
rows = [("angles kept", facts.measure("keydiff", budget="50%"), said["sinks 50%"])]
rows += [("re-rotated", turned, prose.measure("sinks", budget="50%", positions="rerotated"))]
wrong = prose.measure(lambda: KeptAsPosition(SinksLayer(few) for _ in range(depth)))
rows += [("the bug", bug, wrong)]
rows = [(name, f"{tiny_.recall:.3f}", f"{other.loss:.2f}") for name, tiny_, other in rows]
header = ["positions", "tiny, distinct keys: recall", f"{real.name}, sinks: loss"]
caption = f"Budget 50 %; full cache: 1.000 and {said['growing'].loss:.2f}"
table(header, rows, numeric=[1, 2], caption=caption)

# %% [markdown] tags=["deep-dive"]
# Sinks and the newest may be re-rotated at little cost: one gap closes, far away. Where tokens go from the middle, re-rotating makes neighbours of strangers, and a head that looks one token back is misled. What it buys is endless text. `tiny` has 4,096 positions, and we let it read 4,200 tokens:

# %% tags=["deep-dive", "device"]
from kvlab.errors import KvlabError

stream = facts.task.input_ids.reshape(1, -1).repeat(1, 3)[:, :4200]
for positions in ("kept", "rerotated"):
    cache = facts.maker("sinks", budget=256, positions=positions)()
    try:
        for chunk in stream.split(512, dim=1):
            tiny.model(chunk, cache=cache, last_token_only=True)
        ends = cache.get_seq_length(), cache.layers[0].num_kept(), cache.get_next_position()
        print(f"{positions}: seen {ends[0]:,}, kept {ends[1]}, next position {ends[2]}")
    except KvlabError as error:
        print(f"{positions}: {error}")

# %% [markdown] tags=["deep-dive"]
# ## 7. The same budget for every layer?
# **Deep dive · 3 minutes**
#
# Attention in early layers is often found to be spread wide: look at the left of the map in section 1. So some policies give early layers more, a **pyramid**. Heavy hitters at 12 %, which is 61 tokens a layer on average. Which way round is better for `tiny`?

# %% tags=["deep-dive", "device", "nbval-ignore-output"]
from kvlab.cache.budgets import pyramid_budgets

rows = []
wide = pyramid_budgets(61, num_layers=2, first_over_last=10)
for name, budgets in {"alike": [61, 61], "early more": wide, "late more": wide[::-1]}.items():
    q = facts.measure("h2o", budgets=budgets)
    rows.append((name, ", ".join(map(str, budgets)), f"{q.cache_bytes:,}", f"{q.recall:.3f}"))
table(["budgets", "tokens by layer", "bytes", "recall"], rows, numeric=[1, 2, 3])

# %% [markdown] tags=["deep-dive"]
# The other way round than the pyramid, and by far. Here too the **second** layer must look far back, as that of `tiny-gqa` in section 2. A rule of thumb from other models is a guess about yours.
#
# <a id="offload"></a>
# ## 8. Put it away instead
# **Deep dive · 6 minutes**
#
# A cache need not lie where it is used. **Offloading** rests each layer's keys and values on a tier, host memory or disk, and fetches them while the layer before works. Nothing is lost. What does a step move?

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "A prompt of 128 tokens is read in one pass, 5 tokens are written. How many times the bytes of the final cache are fetched, all steps together?",
    unit="x",
    key="09-moved",
)

# %% tags=["deep-dive", "timing", "nbval-ignore-output"]
from kvlab.model.tier_timing import time_tiers

P, N = 128, 5
tiers = time_tiers(real.model, text[:, :P], max_new_tokens=N)
rows = []
for run in tiers:
    sizes = run.bytes_in, run.bytes_out, run.peak_device_bytes
    equal, ms = "yes" if run.equal else "no", f"{1000 * run.seconds_per_token:.0f}"
    rows.append((run.tier, equal, *(f"{size / 1e6:.2f}" for size in sizes), ms))
header = ["cache rests in", "equal to the bit", "MB in", "MB out", "on the device", "ms a token"]
table(header, rows, numeric=[2, 3, 4, 5], caption=f"{real!r}, {P} + {N} tokens")

# %% [markdown] tags=["deep-dive"]
# Look at the bytes first. Every step fetches **everything** so far, once; the next cell counts it. (At the end the first layer's tokens may come once more, for a step that nobody asks for.)
#
# Then the times, with care. Each is from a single short run and moves with whatever else the machine does. Without a GPU, "host" and "device" are the same memory, so its row shows the copying alone. And what was just written to a disk mostly still lies in the system's memory; for the last row the system was asked to forget it.

# %% tags=["deep-dive", "device", "nbval-ignore-output"]
disk = next(run for run in tiers if run.tier == "disk")
assert all(run.equal for run in tiers)
per_token = disk.cache_bytes // (P + N - 1)  # the last token emitted was not fed
fetched = sum((P + step) * per_token for step in range(N - 1))
assert disk.bytes_in - fetched in (0, (P + N - 1) * per_token // depth)
remark = f"{N - 1} decode steps, each fetches all that is there."
reveal("09-moved", f"{disk.bytes_in / disk.cache_bytes:.1f}x", remark=remark)

# %% [markdown] tags=["deep-dive"]
# So a step takes at least what the link takes for the whole cache. **How to read it:** computed for Llama 3.1 70B on eight H100 with 50,000 tokens, cache in 16 bit; a row is where the cache lies, the first one is HBM, the GPU's own memory. Each GPU has its own PCIe link to the host, and all share one NVMe drive.

# %% tags=["deep-dive"]
from kvlab.arithmetic.gpus import find_gpu
from kvlab.arithmetic.tier_times import tier_times

eight = tier_times("llama-3.1-70b", tokens=50_000, gpu="H100", tp=8)
hbm = eight.num_bytes / (8 * find_gpu("H100").bandwidth_gb_s * 1e9)
rows = [("HBM of eight H100", f"{1000 * hbm:.1f}", "1")]
for row in eight.rows:
    rows.append((row.link.name, f"{1000 * row.seconds:,.0f}", f"{row.seconds / hbm:,.0f}"))
caption = f"{eight.num_bytes / 1e9:.1f} GB, to be read for each token"
table(["from", "ms at the least", "times HBM"], rows, numeric=[1, 2], caption=caption)

# %% [markdown] tags=["deep-dive"]
# From one drive a token takes a second or more. Offloading **while** decoding is for what would not run otherwise. **Between** turns it is another matter.
#
# <a id="resume"></a>
# ## 9. Come back tomorrow
# **Deep dive · 5 minutes**
#
# A user returns after an hour. Keep the cache on the GPU all the time, prefill again, or bring it back from a tier? First for real, through a file.

# %% tags=["deep-dive", "timing", "nbval-ignore-output"]
from kvlab.model.tier_timing import time_resume

resumed = time_resume(real.model, text[:, :-8], question_ids=text[:, -8:])
assert resumed.equal  # the same next logits, to the bit
rows = [("prefill again", resumed.prefill_seconds), ("check the file", resumed.verify_seconds)]
rows += [("read it", resumed.read_seconds), ("write it, once", resumed.save_seconds)]
rows = [(name, f"{1000 * seconds:,.0f} ms") for name, seconds in rows]
caption = f"{resumed.tokens} tokens, {resumed.file_bytes / 1e6:.1f} MB"
table(["", "measured here"], rows, numeric=[1], caption=caption)

# %% [markdown] tags=["deep-dive"]
# A processor without a GPU computes slowly, so reading wins easily. Guess for 50,000 tokens of the 70B, computed with every link at its full rate and every GPU at its roof: how long do eight H100 prefill, and is one drive quicker?
#
# **How to read it:** seconds to fetch the cache, in brackets how many times as long the prefill takes; above 1 fetching wins. The last row is the rate at which both take equally long.

# %% tags=["deep-dive"]
four = tier_times("llama-3.1-70b", tokens=50_000, gpu="H100", tp=4)
rows = []
for wide, narrow in zip(eight.rows, four.rows, strict=True):
    cells = [f"{each.seconds:.2f} s ({each.speedup:.1f}x)" for each in (wide, narrow)]
    rows.append((wide.link.name, *cells))
again = [f"{times.prefill_seconds:.2f} s" for times in (eight, four)]
rows.append(("prefill again", *again))
rates = [f"{times.break_even_bytes_per_second / 1e9:.1f}" for times in (eight, four)]
rows.append(("break-even, GB/s over all links", *rates))
caption = f"{eight.num_bytes / 1e9:.1f} GB, Llama 3.1 70B, 50,000 tokens"
table(["back from", "eight GPUs", "four GPUs"], rows, numeric=[1, 2], caption=caption)

# %% [markdown] tags=["deep-dive"]
# From host memory: fetch, always. From one drive behind PCIe 4.0: slower than eight idle GPUs, quicker than four. And GPUs that prefill again serve nobody else meanwhile. So **where a cache lies becomes a scheduling choice**: send the request to the machine that holds it, fetch ahead while it queues, or compute. An engine decides that for each request.

# %% [markdown]
# <a id="decide"></a>
# ## 10. Decide
# **Core · 2 minutes**
#
# Everything that makes a cache smaller, with numbers from here. Savings of FP8 and INT4 are against 16 bit, at 8,192 tokens and heads of 128, scales counted. Recall is that of `tiny` or one of its twins, 32 facts in 512 tokens.

# %% tags=["device", "nbval-ignore-output"]
from kvlab.arithmetic.quantized_bytes import compression

wide, gqa = Bench("tiny-mha", num_sequences=4), results["tiny-gqa, everything"]
mha, prosaic = wide.measure("growing"), said["sinks 50%"].loss - said["growing"].loss
numbers = []
for name in ("fp8", "int4"):
    saved = compression(name, num_kv_heads=8, head_dim=128, tokens=8192)
    numbers += [(f"{saved:.2f}x", f"{facts.measure(name).recall:.3f}")]
numbers += [(f"{own.saving:.2f}x at 512", f"{own.recall:.3f}")]
numbers += [("4x", f"{at['h2o', 25].recall:.3f}"), ("2x", f"{at['sinks', 50].recall:.3f}")]
heads = f"{mha.cache_bytes / gqa.cache_bytes:.0f}x", f"{gqa.recall:.3f}, MHA {mha.recall:.3f}"
numbers += [("all on the device", "equal to the bit"), heads]
words = f"""FP8 | one flag, scales | the first to try | see below
INT4 | kernels, groups | FP8 is not enough | speed counts more than room
window, trained | it is in the model | long texts | the model has none
evict: heavy hitters | weights, positions | one task, measured | anything may be asked later
evict: sinks + newest | positions | endless prose (loss {prosaic:+.2f}) | facts stand far back
offload | a tier, fetching ahead | between turns | every step must be quick
fewer KV heads | training | a new model | the model is given"""
lines = (line.split(" | ") for line in words.split("\n"))
rows = [(line[0], *pair, *line[1:]) for line, pair in zip(lines, numbers, strict=True)]
header = ["what", "saves", "recall here", "it takes", "best for", "not when"]
table(header, rows, numeric=[1], caption="Recall on tiny and its twins; full cache of tiny: 1.000")

# %% [markdown]
# **FP8 first**, with its exceptions: short contexts may get slower, heads of 256 may prefill slower, many small windowed layers gain little, and scales left at 1 can cost accuracy on some models. Chapter 08 lists who reported it. Exact things come before lossy ones: a tier between turns and windows that the model already has cost no quality at all.

# %% [markdown]
# ## Your turn
# **Practice · as long as you like**
#
# Each check says "not answered yet" until you replace the `...`. Hints and worked solutions are folded; open as much as you need.
#
# **09-a Ten of 62 layers.** Gemma 3 27B has 62 layers with 16 KV heads of 128. Ten of them see everything, 52 have a window of 1,024 tokens (count 1,024 for each). How many GiB does a request of 131,072 tokens hold in 16 bit?

# %% tags=["exercise"]
answer = ...

# %% tags=["check"]
from kvlab.course import check, hint_steps, solution

check("09-a", answer)

# %% tags=["hint"]
hint_steps("09-a")

# %% tags=["solution"]
solution("09-a")

# %% [markdown]
# **09-b Three numbers.** A layer with a window of 128 tokens, the own one counted, has read 8,000 tokens. Write three numbers: tokens seen, tokens it must keep, and the position of the next token.

# %% tags=["exercise"]
answer = ...

# %% tags=["check"]
check("09-b", answer)

# %% tags=["hint"]
hint_steps("09-b")

# %% tags=["solution"]
solution("09-b")

# %% [markdown]
# **09-c Your own rule.** Write `score(received, age, key_norm)`, the rule that decides which 12 % of the tokens stay. Each argument is a tensor with a number for each token held: the attention it drew so far, the tokens read since it came (1 is the newest), the length of its key. Return one of the same shape; highest stays. Beat heavy hitters on `tiny`, on texts that this page has not shown. Roughly 1 to 10 lines.


# %% tags=["exercise"]
def score(received, age, key_norm):
    # your code
    ...


# %% tags=["check", "device", "nbval-ignore-output"]
check("09-c", score)

# %% tags=["hint"]
hint_steps("09-c")

# %% tags=["solution"]
solution("09-c")

# %% [markdown]
# ## What interviewers listen for
# **Practice · as long as you like**
#
# Say your answer aloud first, then open it.
#
# <details><summary><b>Why keep the first tokens of a text?</b></summary>
# Heads park there the attention that they have no use for, whatever the tokens say. Without them the softmax spreads it over others and every mixture changes. It is not the system prompt that anchors anything; a few tokens do.
# </details>
#
# <details><summary><b>A model has windows of 1,024. Is its cache capped?</b></summary>
# Scope first: in which layers? Only windowed layers are capped, and only in an engine that lets go of what left the window. The full layers of a hybrid grow on and soon are nearly all of the cache.
# </details>
#
# <details><summary><b>Which eviction policy is best?</b></summary>
# On which task and at which length? None knows the next question. Protect the first tokens and the newest, measure recall and not only a loss, and say what happens when a dropped token is asked for: recompute, swap, or lose.
# </details>

# %% [markdown]
# ## Claims you will meet
# **Practice · as long as you like**
#
# Statements from public pages. Give your verdict first: holds, only if, or wrong. The card then shows what was recomputed and the condition.

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.claims import claim_quiz

claim_quiz("sliding-window-token-4905")

# %% tags=["widget", "nbval-ignore-output"]
claim_quiz("anchor-tokens-like-system-prompt")

# %% [markdown]
# Two more. For the first, look at the table of section 2; the second is history.

# %% tags=["widget", "nbval-ignore-output"]
claim_quiz("sliding-window-caps-cache")

# %% tags=["widget", "nbval-ignore-output"]
claim_quiz("mistral-pioneered-sliding-window")

# %% [markdown]
# ## Self-check
# **Practice · as long as you like**
#
# Six questions. "Fresh numbers" asks the same one anew, so you can practise until the numbers no longer matter.

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.quiz import quiz

names = "first-visible hybrid why-sinks next-position dropped-needed placement"
quiz(ids=[f"09-{name}" for name in names.split()], seed=9)

# %% [markdown]
# ## Takeaways
# **The answer.** Without loss, only what the model can no longer see: tokens that have left the window of a layer that was trained with one. Everything else is a bet on questions that have not come. A good bet keeps the first tokens and the newest, scores the rest, and is measured on a task that looks things up; and what is needed after all is computed again, fetched, or lost.

# %%
from kvlab.arithmetic.tier_times import tier_times

gemma = [size_request(read_model("gemma-3-27b-it"), context=t).kv_bytes for t in (8192, 131_072)]
window = f"query 8,001, W = 4,096: {sees(8001, 4096)[0]:,} and on; "
window += f"Gemma 3 27B, 8,192 to 131,072 tokens: {gemma[1] / gemma[0]:.1f}x"
tiny.model(context, cache=(cut := make_cache("sinks", num_layers=2, budget=104)))
three = cut.get_seq_length(), cut.layers[0].num_kept(), cut.get_next_position()
back = tier_times("llama-3.1-70b", tokens=50_000, gpu="H100", tp=8)
tier = f"50,000 tokens of 70B: {1000 * back.rows[0].seconds:.0f} ms from host memory, "
tier += f"{back.prefill_seconds:.2f} s to compute again"
takeaways = [("A window bounds the direct look, in its own layers alone", window)]
takeaways += [("Seen, kept and next position are three numbers", ", ".join(map(str, three)))]
takeaways += [("A tier loses nothing; it costs time", tier)]
table(["takeaway", "computed here"], takeaways)

# %% [markdown] tags=["instructor"]
# <details><summary><b>For instructors</b></summary>
# Show the map with the window at 25 % and ask who will do better, random or the window. Then heavy hitters at 12 %: let the room find where the lost facts stand, and why. Common wrong answer: "a smarter score must win everywhere". Then show the table of SmolLM2.
# </details>

# %% [markdown]
# ## Sources
# - Child et al. 2019, [Sparse Transformers](https://arxiv.org/abs/1904.10509), and Beltagy et al. 2020, [Longformer](https://arxiv.org/abs/2004.05150): windows before Mistral.
# - Jiang et al. 2023, [Mistral 7B](https://arxiv.org/abs/2310.06825), and its [code](https://github.com/mistralai/mistral-inference): a window in every layer and a buffer that rolls over.
# - Xiao et al. 2023, [StreamingLLM](https://arxiv.org/abs/2309.17453): attention sinks, and positions within the cache.
# - Zhang et al. 2023, [H2O](https://arxiv.org/abs/2306.14048): heavy hitters by accumulated attention. Cai et al. 2024, [PyramidKV](https://arxiv.org/abs/2406.02069): budgets by layer.
# - Devoto et al. 2024, [key norms](https://arxiv.org/abs/2406.11430); Devoto et al. 2025, [Expected Attention](https://arxiv.org/abs/2510.00636). Both and more in NVIDIA's [kvpress](https://github.com/NVIDIA/kvpress).
# - Hugging Face, [cache strategies](https://huggingface.co/docs/transformers/main/kv_cache). vLLM, [quantised cache](https://docs.vllm.ai/en/latest/features/quantization/quantized_kvcache.html): where FP8 fits and where not.
#
# **Next:** 10 Serving under pressure asks what happens when the memory is full.
