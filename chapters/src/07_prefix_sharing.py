# %% [markdown]
# # 07 Prefix sharing
#
# [Open in Colab](https://colab.research.google.com/github/kvlab/kvlab/blob/main/chapters/07_prefix_sharing.ipynb)
#
# **The question.** When can two requests use the same keys and values?

# %% [markdown]
# **After this chapter you can**
#
# - say which part of a prompt is found in a cache, to the token, and which never is;
# - lay a prompt out so that it hits, and measure what a hit is worth in time and in money;
# - say what is still there after a request has ended, and who may see it.
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

chapter_line("07")

# %% [markdown]
# **Core** 15 minutes, **deep dives** 10 minutes. You need block tables and reference counts from chapter 06.
#
# A real model comes along, in float32. Where SmolLM2 is not at hand the bundled `tiny` takes its place; then times are smaller and everything else is the same.

# %% tags=["setup", "device", "nbval-ignore-output"]
from kvlab.model.load import load_model
from kvlab.model.weights import is_available
from kvlab.widgets.predict import predict, reveal

loaded = load_model("smollm2" if is_available("smollm2") else "tiny", dtype="float32")
loaded

# %% [markdown]
# <a id="same-prefix"></a>
# ## 1. The same words are not the same keys
# **Core · 3 minutes**
#
# Two users ask about the same page of text. Keys and values are made of hidden states, and a hidden state depends on everything before it (chapter 01). So which keys can the second user take over? We let the model read three prompts: a page and a question, the same page and another question, and the first prompt with one token put in front.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "The page has 96 tokens. Of how many of them can the prompt with the extra token in front use the cached keys?",
    unit="tokens",
    key="07-front",
)

# %% tags=["device"]
import torch

from kvlab.cache import make_cache
from kvlab.model.decode import prefill
from kvlab.model.sample_text import sample_ids

PAGE = 96
page, (one, other) = sample_ids(loaded, PAGE + 16)[:, :PAGE], sample_ids(loaded, 16).split(8, 1)


def keys_of(ids):
    cache = make_cache("growing", num_layers=loaded.model.config.num_layers)
    prefill(loaded.model, ids, cache)
    return torch.stack([layer.keys for layer in cache.layers])[:, 0]  # (layers, heads, tokens, ...)


first = keys_of(torch.cat([page, one], 1))
second = keys_of(torch.cat([page, other], 1))
moved = keys_of(torch.cat([other[:, :1], page, one], 1))
same = torch.isclose(first, second, atol=1e-3).all(-1).all(0).all(0)
print(f"other question behind it: {int(same[:PAGE].sum())} of {PAGE} keys of the page are equal")
shifted = torch.isclose(first[:, :, :PAGE], moved[:, :, 1 : PAGE + 1], atol=1e-3)
found = int(shifted.all(-1).all(0).all(0).sum())
print(f"one token in front of it: {found} of {PAGE}")
reveal("07-front", f"{found} tokens", remark="Other positions, and other words before them.")

# %% [markdown]
# What stands **behind** a token cannot change its keys: the mask hides it. What stands **before** it changes everything, the position included. So a cached key can be used again under one condition: the same model has read exactly the same tokens before it. That is a **prefix**, and only a prefix.
#
# (Equal here means up to rounding: a longer prompt is computed in other tiles.)

# %% [markdown]
# <a id="names-of-blocks"></a>
# ## 2. Give a block a name
# **Core · 4 minutes**
#
# How does an engine find out, among thousands of blocks, that a new prompt begins like an old one? It gives each full block a name made of three things: **the name of the block before it, the tokens in it, and extra keys** such as the adapter in use or the tenant. Two blocks have the same name only if all tokens from position 0 on are equal.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "Two prompts of 35 and 36 tokens begin with the same 34 tokens. Blocks hold 32. How many tokens does the second one find?",
    unit="tokens",
    key="07-partial",
)


# %%
def names(tokens, block_size, extra=()):
    name, found = None, []
    for start in range(0, len(tokens) - block_size + 1, block_size):  # full blocks only
        name = hash((name, tuple(tokens[start : start + block_size]), extra))
        found.append(name)
    return found


def cached_tokens(prompt, known, block_size):
    hits = 0
    for name in names(prompt[:-1], block_size):  # the last token is always computed
        if name not in known:
            break
        hits += 1
    return hits * block_size


same_34, B = list(range(34)), 32
known = set(names([*same_34, 100], B))  # 35 tokens: one full block
hit = cached_tokens([*same_34, 200, 201], known, B)  # 36 tokens
reveal("07-partial", f"{hit} tokens", remark="Whole blocks only; the other 2 are computed again.")

# %% [markdown]
# Two rules hide in these lines. **Only full blocks have a name**, because a part-full one still changes. And **the last token of a prompt is always computed**, even if all of it is known: somebody must say what comes next, and only a forward pass does. Our block manager agrees with the ten lines above, for many prompts:

# %%
import random

from kvlab.paging import BlockManager

draw = random.Random(7)
for _ in range(300):  # few words, so that blocks are often equal
    size, length = draw.choice((1, 4, 16)), draw.randint(1, 60)
    old = [draw.randint(0, 2) for _ in range(length)]
    new = [*old[: draw.randint(0, length)], *(draw.randint(0, 2) for _ in range(5))]
    manager = BlockManager(num_blocks=200, block_size=size)
    manager.allocate("old", old)
    manager.commit("old", old)  # its blocks are computed, so they may be shared
    assert manager.match_prefix(new) == cached_tokens(new, set(names(old, size)), size)
print("300 random prompts: the package finds as many tokens as the ten lines")

# %% [markdown]
# A page writes: "100 requests with the same prompt of 1,000 tokens store it once". In blocks of 16 tokens? The manager says.

# %%
manager, prompt = BlockManager(num_blocks=400, block_size=16), list(range(1000))
for request in range(100):
    shared = manager.allocate(request, prompt)
    manager.commit(request, prompt)
print(f"the last request shares {shared} tokens, computes {len(prompt) - shared}")
stored = shared + 100 * (len(prompt) - shared)
print(f"stored in all: {stored:,} tokens, not {len(prompt):,} and not {100 * len(prompt):,}")
print(f"blocks: {manager.num_used} of {100 * manager.blocks_for(1000):,} without sharing")

# %% [markdown]
# <a id="tree"></a>
# ## 3. The tree of prefixes
# **Core · 3 minutes**
#
# Since every block names the one before it, the cached blocks form a tree: what is common stands at the left, and each request is a path. (Some engines keep exactly this tree, cut at any token, and call it a radix tree.) Below, a prompt has 12 words of instructions and a question; a word is a token.
#
# **How to read it:** strong outlines are what the last event touched. Play the story, then choose *a date at the top*.

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.prefix_explorer import prefix_explorer

prefix_explorer()

# %% [markdown]
# At the last event a request comes that was here before, word for word. It still computes its last block, by the rule of section 2. With the date on top not one block is shared, though at least 16 of 20 words are the same: **one early change takes everything behind it along**. So put what is stable first: instructions, tools, documents, then the history, then the question. Dates, names and random ids go to the end.

# %% [markdown]
# <a id="what-stays"></a>
# ## 4. What stays when nobody is there
# **Core · 2 minutes**
#
# When a request ends, its references go, but a named block keeps its content: it becomes **idle**. It is handed out again only when no free block is left, the one unused for longest first. And of one chain the **tail goes first**, for a block without the ones before it can never be found.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "A pool of 10 blocks served two requests of 4 blocks each; both have ended. How many blocks are in use?",
    unit="blocks",
    key="07-idle",
)

# %%
from kvlab.paging import EventLog

log = EventLog()
manager = BlockManager(num_blocks=10, block_size=4, log=log)
for name, start in (("A", 0), ("B", 100)):
    manager.allocate(name, range(start, start + 16))
    manager.commit(name, range(start, start + 16))
manager.free("A"), manager.free("B")
stats = manager.stats()
print(f"{stats.num_used_blocks} used, {stats.num_idle_blocks} idle, {stats.num_free_blocks} free")
manager.allocate("C", range(500, 520))  # 5 blocks: 2 free ones, 3 from the idle
print(*[event.words for event in log.events if event.kind == "evict"], sep="\n")
print(f"A would still find {manager.match_prefix(range(17))} tokens of its 16")
reveal("07-idle", f"{stats.num_used_blocks} blocks", remark="Yet only 2 of 10 look free.")

# %% [markdown]
# So a server without a single request can show a nearly full cache. That is no leak: idle blocks are given up the moment somebody needs them. Watch **blocks in use**, not memory.
#
# <a id="cold-and-warm"></a>
# ## 5. Cold and warm, on the real model
# **Core · 3 minutes**
#
# What is a hit worth? Time to first token is a prefill (chapter 04), and a hit leaves only the rest of the prompt to compute. The page grows to 256 tokens; two users ask different questions of 8 tokens about it. Then the second question again, with something new in front.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "How many times faster is the first token of the second question, with the page in the cache?",
    unit="x",
    key="07-warm",
)

# %%
from time import perf_counter

from kvlab.cache.paged import PagedCache
from kvlab.model.paged_run import step_paged

LONG = 256
text = sample_ids(loaded, LONG + 16)[0].tolist()
document, questions = text[:LONG], (text[LONG : LONG + 8], text[LONG + 8 :])


def fresh():
    return PagedCache.of(loaded.model.config, num_blocks=64, block_size=16)


def first_token(cache, name, prompt):
    start = perf_counter()
    logits = step_paged(loaded.model, cache, {name: prompt})[name]
    return logits, 1000 * (perf_counter() - start)


# %% [markdown]
# Three rounds, each with an empty cache; the best time of each prompt counts.

# %% tags=["timing", "nbval-ignore-output"]
asked = {"cold": [*document, *questions[0]], "warm": [*document, *questions[1]]}
asked["changed in front"] = [text[-1], *asked["warm"]]
times = {name: [] for name in asked}
for _ in range(3):
    cache = fresh()
    for name, prompt in asked.items():
        times[name].append(first_token(cache, name, prompt)[1])
best = {name: min(ms) for name, ms in times.items()}
for name, ms in best.items():
    print(f"{name:17} {ms:8.1f} ms")
remark = f"{LONG} of {LONG + 8} tokens were not computed."
reveal("07-warm", f"{best['cold'] / best['warm']:.0f}x", remark=remark)

# %% [markdown]
# A hit must not change what is said. The same prompt in an empty cache has to give the same logits, and the same answer token by token:

# %% tags=["device"]
from kvlab.model.paged_run import generate_paged

prompt, shared, lonely = asked["warm"], fresh(), fresh()
step_paged(loaded.model, shared, {"ann": asked["cold"]})
warm = step_paged(loaded.model, shared, {"bob": prompt})["bob"]
alone = step_paged(loaded.model, lonely, {"bob": prompt})["bob"]
assert float((warm - alone).abs().max()) < 1e-5 * float(alone.abs().max()) + 1e-4
shared.free("bob"), lonely.free("bob")
after = generate_paged(loaded.model, shared, {"bob": prompt}, max_new_tokens=12)
before = generate_paged(loaded.model, fresh(), {"bob": prompt}, max_new_tokens=12)
assert after == before
stats = shared.manager.stats()
print(f"12 tokens equal; found {stats.prefix_hit_tokens} of {stats.prefix_query_tokens} tokens")

# %% [markdown]
# The **hit rate** is found over asked, in tokens. Notice what it does not tell: a decode step still reads all the shared keys for every user, and the answer's own tokens are new for each. Prefix sharing saves prefill and room, not the reading of chapter 04.

# %% [markdown] tags=["deep-dive"]
# <a id="prices"></a>
# ## 6. What it costs to ask again
# **Deep dive · 5 minutes**
#
# Providers that keep a prefix for you sell the hit. Scope: dollars for a million prompt tokens, as read on the day in the table; prices move, so the habit counts, not the row. Writing may cost a premium, reading costs less than computing, and keeping may cost by the hour.

# %% tags=["deep-dive"]
from kvlab.arithmetic.prices import load_prices
from kvlab.figures.tables import table

rows = []
for price in load_prices():
    kept = f"${price.storage_usd_per_hour:g} an hour" if price.storage_usd_per_hour else "free"
    shown = [f"{usd:g}" for usd in (price.base_usd, price.write_usd, price.read_usd)]
    rows.append((price.name, *shown, kept, price.as_of.isoformat()))
header = ["price list", "base", "write", "read", "keeping", "seen on"]
table(header, rows, numeric=[1, 2, 3], caption="Dollars a million prompt tokens")

# %% [markdown] tags=["deep-dive"]
# The write is paid first and only pays if somebody comes back.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "Writing at 1.25 times and reading at 0.1 times the base: from how many uses on, the first included, is caching cheaper?",
    unit="uses",
    key="07-pays",
)


# %% tags=["deep-dive"]
def uses_to_pay(write, read):  # in multiples of the base price; read is below 1
    uses = 1
    while write + read * (uses - 1) >= uses:
        uses += 1
    return uses


five, hour = load_prices()[:2]
assert (uses_to_pay(1.25, 0.1), uses_to_pay(2, 0.1)) == (five.uses_to_pay(), hour.uses_to_pay())
print(f"1.25x: from {five.uses_to_pay()} uses on; 2x: from {hour.uses_to_pay()}")
reveal("07-pays", f"{five.uses_to_pay()} uses", remark="1.25 + 0.1 = 1.35 is less than 2.")

# %% [markdown] tags=["deep-dive"]
# "Caching saves 90 %" is the price of one read. You pay for the write, too, so the saving creeps up with the number of uses:

# %% tags=["deep-dive"]
from kvlab.figures.curves import Axis, Series, curve_chart

uses = list(range(1, 31))
cost = {price.id: [100 * (1 - price.saving(n)) for n in uses] for price in (five, hour)}
lines = [Series("written at 1.25x", uses, cost[five.id], "value")]
lines += [Series("written at 2x", uses, cost[hour.id], "key", "dashed")]
print(*[f"{n} uses: {100 * five.saving(n):.1f} % saved" for n in (1, 2, 5, 10, 50)], sep="\n")
curve_chart(
    lines,
    x=Axis("uses of the same prefix, the first included"),
    y=Axis("cost of the prefix, % of computing it each time"),
    title="One prefix, used again and again",
    reading="Below 100 caching is cheaper. The curve never reaches the 10 % of a single read.",
)

# %% [markdown] tags=["deep-dive"]
# Where keeping costs by the hour, waiting eats the saving. And every time to live has a trap: an entry that expires before its next use was paid for and never read.

# %% tags=["deep-dive"]
hourly = load_prices()[3]
for minutes in (1, 5, 12, 30):
    pays = hourly.uses_to_pay(hours_between=minutes / 60)
    words = f"from {pays} uses on" if pays else "never"
    print(f"{minutes:2} minutes from use to use: caching pays {words}")

# %% [markdown] tags=["deep-dive"]
# <a id="tenants"></a>
# ## 7. Whose prefix is it?
# **Deep dive · 3 minutes**
#
# A hit is faster, and everybody can measure time. So a cache that is shared between customers answers a question it should not: **has somebody asked this before?** Mallory guesses the beginning of another tenant's prompt and looks at her own time to first token. Nothing was read, and yet something leaked.

# %% tags=["deep-dive", "timing", "nbval-ignore-output"]
secret = [*document[:128], *questions[0]]
guesses = {"right guess": secret, "wrong guess": [text[-1], *secret[1:]]}


def probe(salts):
    cache = fresh()
    step_paged(loaded.model, cache, {"victim": secret}, extra_keys={"victim": salts[0]})
    for name, guess in guesses.items():
        start = perf_counter()
        step_paged(loaded.model, cache, {name: guess}, extra_keys={name: salts[1]})
        yield name, 1000 * (perf_counter() - start), cache.manager.stats().prefix_hit_tokens


for title, salts in (("one cache for all", ((), ())), ("a salt each", ("red", "blue"))):
    print(title)
    for name, ms, hits in probe(salts):
        print(f"  {name}: {ms:7.1f} ms, {hits} tokens found so far")

# %% [markdown] tags=["deep-dive"]
# A **salt** is an extra key in the name of every block. Tenants with different salts can never meet in the tree; requests of one tenant still can. The price is that a system prompt which everybody has is stored once for each tenant. vLLM takes such a salt with a request; hosted caches are kept apart by organisation or project.

# %% tags=["deep-dive"]
from kvlab.paging import ExtraKeys

manager = BlockManager(num_blocks=64, block_size=16)
red, blue = ExtraKeys(salt="red"), ExtraKeys(salt="blue")
manager.allocate("victim", list(range(128)), extra_keys=red)
manager.commit("victim", list(range(128)))
for name, keys in (
    ("red", red),
    ("blue", blue),
    ("no salt", ()),
    ("adapter", ExtraKeys("red", "x")),
):
    print(f"{name:8} finds {manager.match_prefix(list(range(129)), keys):3} tokens")

# %% [markdown] tags=["deep-dive"]
# <a id="collisions"></a>
# ## 8. When two names are equal
# **Deep dive · 2 minutes**
#
# A hash is short and prompts are many: two different blocks can get the same number. An engine that trusts the number alone would then serve one user the keys of another. Ours uses the hash to know where to look, and compares the block before, the tokens and the extra keys before it counts a hit. So even the worst hash there is changes nothing but the time:

# %% tags=["deep-dive"]
careful, careless = BlockManager(200, 4), BlockManager(200, 4, hash_block=lambda identity: 0)
draw = random.Random(8)
for request in range(40):
    prompt = [draw.randint(0, 1) for _ in range(draw.randint(1, 16))]
    found = [manager.allocate(request, prompt) for manager in (careful, careless)]
    for manager in (careful, careless):
        manager.commit(request, prompt)
    assert found[0] == found[1]
    assert careful.block_table(request) == careless.block_table(request)
print("40 requests, every hash equal: the same hits and the same block tables")

# %% [markdown]
# ## Your turn
# Each check says "not answered yet" until you replace the `...`. Hints and worked solutions are folded; open as much as you need.
#
# **07-a To the token.** Write `hit_tokens(prompt, equal, block_size)`: a prompt of `prompt` tokens begins with `equal` tokens of one that was computed before. How many of them are found? Roughly 2 lines.


# %% tags=["exercise"]
def hit_tokens(prompt, equal, block_size):
    # your code
    ...


# %% tags=["check"]
from kvlab.course import check, hint_steps, solution

check("07-a", hit_tokens)

# %% tags=["hint"]
hint_steps("07-a")

# %% tags=["solution"]
solution("07-a")

# %% [markdown]
# **07-b The room of a crowd.** 64 requests share a system prompt of 1,500 tokens; behind it each has 200 tokens of its own. Blocks hold 16 tokens, all prompts were computed one after another and all requests are still running; prefix caching is on. How many blocks are in use?

# %% tags=["exercise"]
answer = ...

# %% tags=["check"]
check("07-b", answer)

# %% tags=["hint"]
hint_steps("07-b")

# %% tags=["solution"]
solution("07-b")

# %% [markdown]
# **07-c The bill.** A prefix of 40,000 tokens is used 25 times within its time to live. The base price is $3 a million tokens, writing costs 1.25 times, reading 0.1 times the base. What do the 25 uses of the prefix cost, in dollars? Give two decimals or more.

# %% tags=["exercise"]
answer = ...

# %% tags=["check"]
check("07-c", answer)

# %% tags=["hint"]
hint_steps("07-c")

# %% tags=["solution"]
solution("07-c")

# %% [markdown]
# ## What interviewers listen for
# Say your answer aloud first, then open it.
#
# <details><summary><b>Why can a prefix be shared, but not a paragraph in the middle?</b></summary>
# Causal attention: a token's keys depend on it and on all tokens before it, never on later ones. Equal tokens from position 0 on give equal keys. A paragraph in the middle has other tokens before it and stands at another position.
# </details>
#
# <details><summary><b>The hit rate fell to zero after a release. Where do you look?</b></summary>
# At the top of the prompt. A date, a request id, a reordered list of tools or another template changes the first block, and with it the name of every block behind it. Then: was the pool too small, so that idle blocks were evicted before they came back?
# </details>

# %% [markdown]
# <details><summary><b>What does a prefix hit not save?</b></summary>
# Decode. Each step still reads the shared keys for each sequence, and each answer writes its own. It saves the prefill of whole blocks, so TTFT, and the room of the copies.
# </details>
#
# <details><summary><b>Would you share the cache between customers?</b></summary>
# Not without thinking: a hit is measurable in time, so it tells that somebody sent these tokens before. A salt for each tenant keeps them apart and costs a copy of what is common.
# </details>

# %% [markdown]
# ## Claims you will meet
# Statements from public pages. Give your verdict first: holds, only if, or wrong.

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.claims import claim_quiz

claim_quiz("shared-prompt-stored-once")

# %% tags=["widget", "nbval-ignore-output"]
claim_quiz("saving-90-percent")

# %% [markdown]
# Two more. For the first, think of the last block; for the second, of who can measure time.

# %% tags=["widget", "nbval-ignore-output"]
claim_quiz("prefix-partial-block-lost")

# %% tags=["widget", "nbval-ignore-output"]
claim_quiz("prefix-shared-across-users")

# %% [markdown]
# ## Self-check
# Six questions. "Fresh numbers" asks the same one anew.

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.quiz import quiz

names_of_questions = "hit-tokens date-on-top full-pool which-line lookup-order saving"
quiz(ids=[f"07-{name}" for name in names_of_questions.split()], seed=7)

# %% [markdown]
# ## Takeaways
# **The answer.** Two requests can use the same keys and values where the same model, for somebody who may see both, has read exactly the same tokens from the first one on. Engines find that in whole blocks, by a name that includes all that came before, and always compute the last token.

# %%
manager = BlockManager(num_blocks=400, block_size=16)
manager.allocate("old", list(range(1000)))
manager.commit("old", list(range(1000)))
takeaways = [
    (
        "Whole blocks, from position 0 on, and never the last token",
        f"992 equal tokens, block 16: {manager.match_prefix(list(range(992)))} found",
    ),
    (
        "One early change loses everything behind it",
        f"another first token: {manager.match_prefix([5000, *range(1, 1000)])} found",
    ),
    (
        "A read is cheap, the write is paid first",
        f"10 uses at 1.25x and 0.1x: {100 * five.saving(10):.1f} % saved",
    ),
]
table(["takeaway", "computed here"], takeaways)

# %% [markdown] tags=["instructor"]
# **For a room:** show the tree with the stable part first at event 2, and ask what a date at the top would change. Common wrong answer: "only the first block". Switch, and let the room count the shared blocks.

# %% [markdown]
# ## Sources
# - vLLM, [automatic prefix caching, design](https://docs.vllm.ai/en/latest/design/prefix_caching.html): names of blocks, eviction order, salts.
# - Zheng et al. 2023, [SGLang](https://arxiv.org/abs/2312.07104): the radix tree of prefixes.
# - Kwon et al. 2023, [PagedAttention](https://arxiv.org/abs/2309.06180): blocks that are shared and copied on write.
# - Anthropic, [prices](https://platform.claude.com/docs/en/about-claude/pricing). OpenRouter, [prompt caching](https://openrouter.ai/docs/features/prompt-caching) of several providers. Helicone, [the same with storage](https://docs.helicone.ai/gateway/concepts/prompt-caching). All read on 2026-11-29.
# - Gu et al. 2025, [Auditing Prompt Caching in Language Model APIs](https://arxiv.org/abs/2502.07776): the timing side channel, measured.
#
# **Next:** 08 The cache in fewer bits.
