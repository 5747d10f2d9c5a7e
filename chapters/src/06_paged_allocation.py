# %% [markdown]
# # 06 Paged allocation
#
# [Open in Colab](https://colab.research.google.com/github/kvlab/kvlab/blob/main/chapters/06_paged_allocation.ipynb)
#
# **The question.** Where do the bytes go that nobody uses?

# %% [markdown]
# **After this chapter you can**
#
# - tell reserved, internal and external waste apart and give each as a number, for any reservation and any lengths;
# - find the slot of a token by hand, and say what a block table, a reference count and copy-on-write do;
# - say what paging buys, against which baseline, and when it buys nothing.
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

chapter_line("06")

# %% [markdown]
# **Core** 20 minutes, **deep dives** 15 minutes. You need the bytes of a token from chapter 03, and from chapter 04 that a larger batch shares one reading of the weights.
#
# A **slot** is room for the keys and values of one token, in all layers. This chapter counts slots; one of Llama 3.1 8B is 128 KiB in 16 bit.

# %% [markdown]
# <a id="reserve-in-one-piece"></a>
# ## 1. Reserve in one piece
# **Core · 3 minutes**
#
# The simplest allocator: a tensor of `max_seq_len` slots for each request, for nobody knows how long an answer will be. A server allows 32,768 tokens, and three requests end with 500, 2,000 and 100.

# %% tags=["predict", "widget", "nbval-ignore-output"]
from kvlab.widgets.predict import predict, reveal

predict(
    "A request of 500 tokens has reserved 32,768 slots. How much of it is wasted?",
    unit="%",
    key="06-reserved",
)

# %%
from kvlab.paging.waste import wasted_share

for tokens in (500, 2000, 100):
    waste = 1 - tokens / 32_768
    assert waste == wasted_share([tokens], block_size=32_768)
    print(f"{tokens:5,} tokens: {waste:.2%} of 32,768 slots hold nothing")
reveal("06-reserved", f"{1 - 500 / 32_768:.2%}", remark="Of the three together: see below.")

# %% [markdown]
# Together they hold 2,600 tokens in 98,304 slots. **How to read it:** each row is one reservation, to scale; what you can hardly see is in use.

# %%
from kvlab.figures.slot_map import slot_map
from kvlab.paging.pieces import Piece

held = (500, 2000, 100)
pieces = [Piece((i,), 32_768 * i, 32_768, tokens) for i, tokens in enumerate(held)]
slot_map(pieces, num_slots=3 * 32_768, row_slots=32_768, title="Three requests, 32,768 slots each")

# %% [markdown]
# Published charts of this are often not to scale; one of them is an exercise below.
#
# <a id="three-kinds"></a>
# ## 2. Three kinds of waste
# **Core · 3 minutes**
#
# "Wasted" mixes up three things that have different cures.
#
# - **Reserved**: a token will come, later. Until then nobody else may have the slot.
# - **Internal**: part of somebody's piece, and no token will ever come.
# - **External**: free, but in holes too short for the next request.
#
# Let a server be cleverer: it knows each final length and reserves the next power of two. Three requests come, B ends, and D wants 16 slots.

# %%
from kvlab.paging import ContiguousManager
from kvlab.paging.pieces import pieces_of
from kvlab.paging.waste import contiguous_use

final = {0: 13, 1: 6, 2: 20, 3: 15}  # tokens of A, B, C and D in the end
memory = ContiguousManager(64, max_seq_len=32, policy="pow2", final_length=final.get)
for request, tokens_now in ((0, 9), (1, 6), (2, 12)):
    memory.allocate(request, tokens_now)
memory.free(1)
use = contiguous_use(memory, wanted=16)
print(f"reserved {use.reserved}, internal {use.internal}, external {use.external} slots")
print(f"D fits: {memory.can_allocate(8, seq_id=3)}; free: {memory.num_free} slots")
slot_map(
    pieces_of(memory),
    num_slots=64,
    row_slots=32,
    wanted=16,
    title="D needs 16 slots in one piece, and 16 are free",
    reading="Full: a token. Dashed: reserved. Hatched: internal. Grey hatching: external.",
)

# %% [markdown]
# D waits, beside as many free slots as it needs. So even a server that knows all lengths loses memory, as long as a sequence must lie in **one piece**.
#
# <a id="position-to-slot"></a>
# ## 3. Blocks and a table
# **Core · 4 minutes**
#
# Paging drops that demand. Memory is cut into **blocks** of, say, 16 slots. A sequence gets a block when its last one is full, any block that is free. Its **block table** lists them in order. That is all:


# %%
def take_turns(turns, block_size, num_blocks):
    free, tables, held = list(range(num_blocks))[::-1], {}, {}
    for name in turns:  # one token each
        table, tokens = tables.setdefault(name, []), held.get(name, 0)
        if tokens % block_size == 0:  # the last block is full, or there is none yet
            table.append(free.pop())
        held[name] = tokens + 1
    return tables


def slot(table, position, block_size):
    return table[position // block_size] * block_size + position % block_size


# %% [markdown]
# A and B write in turn, two tokens of A to one of B, in blocks of 4. Guess before you run it.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "Tokens come as AABAABAAB... into blocks of 4. In which slot lies position 5 of A?",
    unit="",
    key="06-slot",
)

# %%
from kvlab.paging import BlockManager

turns = "AAB" * 5
tables = take_turns(turns, block_size=4, num_blocks=8)
manager = BlockManager(num_blocks=8, block_size=4)
for name in turns:
    manager.append(name) if name in manager else manager.allocate(name, 1)
for name, table in tables.items():
    assert table == manager.block_table(name)
    slots = [slot(table, p, 4) for p in range(turns.count(name))]
    assert slots == manager.slot_mapping(name, 0, len(slots))
    print(f"{name}: block table {table}, slots {slots}")
by_hand = slot(tables["A"], 5, 4)
reveal("06-slot", by_hand, remark=f"5 // 4 = 1: block {tables['A'][1]}; 5 % 4 = 1: offset 1.")

# %% [markdown]
# Equal to the package, token for token. The same three requests as above, in blocks of 16:

# %%
from kvlab.paging.waste import blocks_for, unused_slots

for tokens in (500, 2000, 100, 2048):
    blocks, empty = blocks_for(tokens, block_size=16), unused_slots(tokens, block_size=16)
    print(f"{tokens:5,} tokens: {blocks:3} blocks, {empty:2} empty slots")
together = wasted_share([500, 2000, 100], block_size=16)
print(f"500, 2,000 and 100 together: {together:.2%} wasted")

# %% [markdown]
# Not nothing: the last block of a sequence is part full. But reserved and external are zero, always: nothing is taken before it is needed, and one free block is as good as another.
#
# <a id="virtual-memory"></a>
# ### The likeness to virtual memory, and its end
#
# | operating system | paged cache |
# |---|---|
# | page | block: `block_size` tokens, all layers |
# | page frame | physical block in device memory |
# | virtual address | position in the sequence |
# | offset in the page | position % `block_size` |
# | page table of a process | block table of a sequence |
# | shared page, reference count | prompt shared by samples or requests |
# | copy on write after `fork` | copy of a shared, part-full block before a write |
# | swapping a process out | preempting a **whole** request |
# | page fault in mid-instruction | **none**: attention reads every block at every step |
#
# The last two rows are where the likeness ends. A page that is seldom used may wait on a disk; a block of a running sequence is read for each token. So a full pool means that a whole request gives way: swapped out, or computed again later.

# %% [markdown]
# <a id="race"></a>
# ## 4. The race
# **Core · 4 minutes**
#
# One stream of requests, two allocators with the same memory: a piece of the longest length allowed, and blocks. Who refuses first, and how many run by then?

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "1,024 slots, at most 256 tokens a request. How many run in one piece each before the first must wait?",
    unit="requests",
    key="06-race",
)

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.allocation_race import allocation_race

allocation_race()

# %% [markdown]
# It stands at the first refusal. Step on, play, or jump to the first refusal of blocks; then choose other requests, another reservation, another block size. When blocks run out, the newest request gives way and starts again later: nothing was promised to it.

# %%
from IPython.display import display

from kvlab.figures.tables import table as show_table
from kvlab.widgets.allocation_race import POLICIES, first_refusal, race_steps

rows = []
for words, policy in POLICIES.items():
    one_piece, blocks = race_steps("a few long, many short", policy, 16)
    stop = one_piece[first_refusal(one_piece)]
    rows.append((words, str(len(stop.running)), f"{stop.use.wasted_share:.1%}"))
stop = blocks[first_refusal(blocks)]
rows.append(("blocks of 16", str(len(stop.running)), f"{stop.use.wasted_share:.1%}"))
header = ["reserved", "running at its first refusal", "waste of slots taken"]
display(reveal("06-race", rows[0][1], remark="1,024 / 256: the lengths don't matter."))
show_table(header, rows, numeric=[1, 2], caption="The first stream of the race")

# %% [markdown]
# Even the exact length, which no server knows, runs fewer: it holds slots for tokens that are still to come.
#
# <a id="block-size"></a>
# ## 5. How large a block?
# **Core · 3 minutes**
#
# A large block wastes more: the last one of each request is rarely full. A small one has its price, too: more entries in each block table, more blocks to fetch, shorter pieces to read.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "Blocks of 16, lengths spread evenly. From which mean length on is less than 4 % wasted?",
    unit="tokens",
    key="06-mean",
)

# %% [markdown]
# Drag the size, and choose other lengths. **How to read it:** the line is the share of taken slots that hold no token, counted over drawn requests; it nearly hides the dashed one, which is a formula. Below it, for the size you chose:
#
# - *block table*: entries of one request, and their bytes;
# - *new blocks*: how often the pool is asked for a block while 1,000 tokens are written;
# - *keys of a layer in one piece*: what can be read without a jump;
# - *prefix kept again*: of a shared beginning, the part that lies in a part-full block, so each request keeps its own copy of it.

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.block_size_explorer import block_size_explorer

block_size_explorer()

# %% [markdown]
# The limit can be computed, without drawing lengths. Where lengths are mixed, the last block of a request holds 1 token, or 2, ... or 16, each about equally often. So 0 to 15 of its slots are empty: 7.5 on average, however long the request is. The waste is 7.5 slots out of the mean length and these 7.5.

# %%
from kvlab.paging.waste import mean_length_for

limit = mean_length_for(0.04, block_size=16)
slack = (16 - 1) / 2  # every fill of the last block is equally likely
assert abs(slack / (limit + slack) - 0.04) < 1e-12
reveal("06-mean", f"{limit:.0f} tokens", remark=f"{slack} empty slots a sequence on average.")

# %% [markdown]
# In general: (`block_size` - 1) / 2 empty slots a request. That is little at 16 and much at 256, if requests are short. At the other end a block of 1 wastes nothing and reads keys one by one. vLLM's default is 16. (Choose *all alike* in the explorer: then nothing averages out. All requests end at the same place in their last block, and the line jumps.)
#
# <a id="what-it-buys"></a>
# ## 6. What paging buys
# **Core · 3 minutes**
#
# Less waste means more requests in one batch, and a batch shares the reading of the weights. How much is that worth? We run **both** through the scheduler and the simulator of chapter 10. A reservation of 2,048 slots is simply a block of 2,048: no request needs two. All else is equal: Llama 2 13B in 16 bit on an A100 40GB, chat-like lengths (mean 160 in, 340 out), random arrivals.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "At the same latency, how many times the tokens a second with blocks of 16?",
    unit="",
    key="06-gain",
)

# %%
from kvlab.arithmetic.roofline import Device
from kvlab.serving.fleet import plan_fleet
from kvlab.serving.reservation import serve
from kvlab.serving.workloads import make_requests, poisson_arrivals


def simulate_chat(fleet, rate, block_size, longest, count=300):
    lengths = {"prompt_tokens": "lognormal:160:1.0", "output_tokens": "lognormal:340:0.8"}
    requests = make_requests(count, **lengths, arrivals=poisson_arrivals(rate, 1), seed=1)
    deployment, card = fleet.plan.inputs.deployment, Device.of(fleet.plan.inputs.gpu)
    sizes = {"num_slots": fleet.num_blocks * 16, "max_seq_len": longest, "block_size": block_size}
    return serve(requests, deployment, card, **sizes)


fleet = plan_fleet("llama-2-13b", gpu="A100 40GB", typical_tokens=500)
print(f"room for {fleet.num_blocks * 16:,} slots: {fleet.num_blocks * 16 // 2048} pieces of 2,048")

# %% [markdown]
# **How to read it:** to the right more requests arrive; up is worse: seconds from arrival to end, over the tokens of the answer. Where a line shoots up, a queue grows.

# %%
from kvlab.figures.curves import Axis, Series, curve_chart

served = {2048: {}, 16: {}}
for size, rates in ((2048, (0.5, 0.75, 1, 1.25, 1.5, 2, 3, 5)), (16, (0.5, 1, 2, 3, 4, 5))):
    for rate in rates:
        served[size][rate] = simulate_chat(fleet, rate, size, 2048)
lines = [
    Series(name, list(served[size]), [s.seconds_per_token for s in served[size].values()], *look)
    for name, size, look in (
        ("one piece", 2048, ("wasted", "dashed")),
        ("blocks of 16", 16, ("value",)),
    )
]
axes = {"x": Axis("requests a second"), "y": Axis("seconds a token", log=True)}
curve_chart(lines, height=200, title="The same latency at a higher rate", **axes)

# %%
from kvlab.serving.reservation import most_at

rows, best = [], {}
for size, name in ((2048, "one piece of 2,048"), (16, "blocks of 16")):
    rate, best[size] = most_at(0.05, list(served[size]), served[size].__getitem__)
    s = best[size]
    row = (name, f"{rate:g}", f"{s.tokens_per_second:,.0f}", f"{s.sustained_batch:.1f}")
    rows.append((*row, f"{s.wasted_share:.1%}"))
gain = best[16].tokens_per_second / best[2048].tokens_per_second
display(reveal("06-gain", f"{gain:.1f}x", remark="Simulated, least times by the roofline."))
header = ["allocator", "requests/s", "tokens/s", "batch", "waste of slots taken"]
show_table(header, rows, numeric=[1, 2, 3, 4], caption="At most 0.05 s a token on average")

# %% [markdown]
# Beside it what was **published** in 2023: 60 to 80 % of cache memory wasted before, under 4 % with paging, and 2 to 4 times the throughput at the same latency. The baselines were FasterTransformer and Orca. Ours are neither: only the allocator differs. So change one assumption: Llama 3.1 8B on an H100, which has small tokens and much room, and two longest lengths.

# %%
fleet_8b = plan_fleet("llama-3.1-8b", gpu="H100", typical_tokens=500)
rows = []
for longest in (8192, 131_072):
    for size in (longest, 16):
        s = simulate_chat(fleet_8b, 6, size, longest, count=150)
        row = (f"{longest:,}", f"{size:,}", f"{s.wasted_share:.1%}", f"{s.sustained_batch:.1f}")
        rows.append((*row, f"{s.tokens_per_second:,.0f}", f"{s.seconds_per_token:.3f}"))
header = ["longest", "block", "waste", "batch", "tokens/s", "seconds a token"]
show_table(header, rows, numeric=[0, 1, 2, 3, 4, 5], caption="Llama 3.1 8B, H100, 6 requests/s")

# %% [markdown]
# With 8,192 the waste is far larger than above and costs **nothing**: memory was not short. With 131,072 only three requests run at once, and the queue eats everything. Waste costs when it limits the batch. A factor has a baseline, lengths and a memory.

# %% [markdown] tags=["deep-dive"]
# <a id="scattered-llama"></a>
# ## 7. The Llama does not mind
# **Deep dive · 5 minutes**
#
# Attention is a sum over keys and values; where they lie is nobody's business. Here is a real model over one pool: three prompts of different lengths in one batch, blocks handed out in **shuffled** order, and NaN in every slot that no token was written to.

# %% tags=["deep-dive", "device", "nbval-ignore-output"]
import random

from kvlab.cache.paged import PagedCache
from kvlab.model.load import load_model
from kvlab.model.sample_text import sample_ids
from kvlab.model.weights import is_available

loaded = load_model("smollm2" if is_available("smollm2") else "tiny", dtype="float32")
order = random.Random(6).sample(range(24), 24)
config, weight = loaded.model.config, loaded.model.lm_head.weight
place = {"dtype": weight.dtype, "device": weight.device}
cache = PagedCache.of(config, num_blocks=24, block_size=8, block_order=order, **place)
for store in (cache.store.keys, cache.store.values):
    store.fill_(float("nan"))  # (num_layers, num_blocks, block_size, num_kv_heads, head_dim)
loaded

# %% [markdown] tags=["deep-dive"]
# A NaN times the weight 0 is NaN. If the model read one slot too many, the output would not be slightly off; it would be gone.

# %% tags=["predict", "deep-dive", "widget", "nbval-ignore-output"]
predict(
    "How far apart will the logits be from those of a contiguous cache, relative to the largest?",
    unit="",
    key="06-logits",
)

# %% tags=["deep-dive", "device", "nbval-ignore-output"]
from kvlab.model.decode import generate
from kvlab.model.paged_run import step_paged

prompts = {i: sample_ids(loaded, n)[0].tolist() for i, n in enumerate((29, 9, 50))}
feed, paged, rows = prompts, {i: [] for i in prompts}, {i: [] for i in prompts}
for _ in range(8):
    logits = step_paged(loaded.model, cache, feed)
    feed = {i: [int(row.argmax())] for i, row in logits.items()}
    for i, row in logits.items():
        paged[i] += feed[i]
        rows[i].append(row)
apart = 0.0
for i, ids in prompts.items():
    alone = list(generate(loaded.model, ids, max_new_tokens=8, keep_logits=True))
    assert [step.token_id for step in alone] == paged[i]
    for step, row in zip(alone, rows[i], strict=True):
        apart = max(apart, float((step.logits[0] - row).abs().max() / step.logits.abs().max()))
assert apart < 1e-5
reveal("06-logits", f"{apart:.1e}", remark="The same 24 tokens; no NaN anywhere.", measured=True)

# %% [markdown] tags=["deep-dive"]
# Where it all lies, read from the **tensor**: a slot counts as filled if it holds a number. The allocator and the store agree to the slot.

# %% tags=["deep-dive", "device", "nbval-ignore-output"]
from kvlab.figures.blocks import Block, block_map
from kvlab.paging.waste import paged_use

owner = {b: i for i in prompts for b in cache.manager.block_table(i)}
filled = (~cache.store.keys[0].isnan().flatten(2).any(-1)).sum(-1).tolist()  # (num_blocks,)
assert sum(filled) == paged_use(cache.manager).used
blocks = [Block(b, (owner[b],) if b in owner else (), filled[b]) for b in range(24)]
words = "Filled from the bottom, hatched: allocated and empty. The order is shuffled on purpose."
block_map(
    blocks, block_size=8, table_of=0, table=cache.manager.block_table(0), title="One pool",
    reading=words,
)  # fmt: skip

# %% [markdown] tags=["deep-dive"]
# <a id="copy-on-write"></a>
# ## 8. Fork, and copy on write
# **Deep dive · 4 minutes**
#
# Three answers to one prompt share its blocks. **Fork** copies a block table, not a key. Each block counts its holders. Who wants to write to a block that others hold takes a copy first; full blocks are never written again and stay shared.

# %% tags=["predict", "deep-dive", "widget", "nbval-ignore-output"]
predict(
    "A prompt of 20 tokens in blocks of 8 is forked into 3. Each writes 3 tokens. How many blocks in all?",
    unit="blocks",
    key="06-fork",
)

# %% tags=["deep-dive", "device", "nbval-ignore-output"]
from kvlab.paging import EventLog

log = EventLog()
options = {"num_blocks": 12, "block_size": 8, "prefix_caching": False, "log": log}
samples = PagedCache.of(config, **options, **place)
first = step_paged(loaded.model, samples, {"A": prompts[2][:20]})["A"]
for name in "BC":
    samples.fork("A", name)
choice = dict(zip("ABC", first.topk(3).indices.tolist(), strict=True))  # three ways to go on
for _ in range(3):
    logits = step_paged(loaded.model, samples, {name: [token] for name, token in choice.items()})
    choice = {name: int(row.argmax()) for name, row in logits.items()}
copied = sum(event.kind == "copy" for event in log.events)
remark = f"2 shared, and one each; {copied} copies for 3 writers: the last one owns what is left."
reveal("06-fork", f"{samples.manager.num_used} blocks", remark=remark)

# %% [markdown] tags=["deep-dive"]
# The same, event by event. **How to read it:** a square is a block of 8 slots, with its number below. Letters say which requests hold it; `3x` is all three. It is filled from the bottom, and hatched where it is taken but empty. At the right is the block table of the request that the sentence names: its first, second, third block, and where each lies. The picture stands where A must write to block 2, which B and C hold, too: A takes a copy, block 3, and its table changes in one place.

# %% tags=["deep-dive", "widget", "nbval-ignore-output"]
from kvlab.widgets.block_player import block_player

block_player(log.events, num_blocks=12, block_size=8, start=5)

# %% [markdown] tags=["deep-dive"]
# **Beam search** forks at every step: the best continuations survive, whoever their parents are, and the others go. Two beams, on the same pool.

# %% tags=["deep-dive", "device", "nbval-ignore-output"]
log = EventLog()
beams_cache = PagedCache.of(config, **{**options, "log": log}, **place)
names, scores = iter("BCDEFGHIJKLMNOP"), {"A": 0.0}
logits = step_paged(loaded.model, beams_cache, {"A": prompts[2][:20]})
for _ in range(4):
    found = []
    for name, row in logits.items():
        best = row.log_softmax(-1).topk(2)
        pairs = zip(best.values.tolist(), best.indices.tolist(), strict=True)
        found += [(scores[name] + score, name, token) for score, token in pairs]
    kept = {next(names): row for row in sorted(found, reverse=True)[:2]}
    for child, (_, parent, _) in kept.items():
        beams_cache.fork(parent, child)
    for name in scores:
        beams_cache.free(name)
    scores = {child: score for child, (score, _, _) in kept.items()}
    feed = {child: [token] for child, (_, _, token) in kept.items()}
    logits = step_paged(loaded.model, beams_cache, feed)
print({name: round(score, 2) for name, score in scores.items()})

# %% tags=["deep-dive", "widget", "nbval-ignore-output"]
block_player(log.events, num_blocks=12, block_size=8, letters="ABCDEFGHIJKLMNOP")

# %% [markdown] tags=["deep-dive"]
# Are the surviving beams still right, after all those forks and frees? Run each one alone.

# %% tags=["deep-dive", "device", "nbval-ignore-output"]
for name in scores:
    (step,) = generate(loaded.model, beams_cache.tokens[name], max_new_tokens=1, keep_logits=True)
    apart = float((step.logits[0] - logits[name]).abs().max() / step.logits.abs().max())
    assert apart < 1e-5
    print(f"beam {name}: {len(beams_cache.tokens[name])} tokens, logits apart {apart:.0e}")

# %% [markdown] tags=["deep-dive"]
# <a id="one-sitting"></a>
# ## 9. The allocator in one sitting
# **Deep dive · 3 minutes**
#
# `kvlab/paging/` knows no tensor: lists of whole numbers, in files you can read one after another (`block_pool.py`, `block_table.py`, `block_manager.py`). Here are two of its functions.
#
# **The copy.** `source` is the last block of a sequence, and others hold it, too. A new block, `target`, takes its place in the table; the sequence gives up its hold on the old one; and the pair is noted, so that the tensors are copied before the next write.
#
# **The release.** Each block loses one holder. Only when nobody is left is it free again. (Or idle, if it has a name under which chapter 07 may find its contents: `identity_of`.)

# %% tags=["deep-dive"]
import inspect

from kvlab.paging import BlockPool
from kvlab.paging.block_steps import BlockSteps

for method in (BlockSteps._copy_tail, BlockPool.release):
    lines = inspect.getsource(method).split('"""')
    print(lines[0].strip(), lines[2].strip("\n"), sep="\n", end="\n\n")

# %% [markdown] tags=["deep-dive"]
# Drawn by everybody, tested by few: the known faults are a block on the free list twice, a block taken one token too early or too late, and a write to a block that somebody else holds. So a random driver does everything in any order, and all the rules are checked on the way.

# %% tags=["deep-dive"]
from kvlab.paging.rules import broken_rules

rng, pool, alive = random.Random(1), BlockManager(40, 4, prefix_caching=False), []
for number in range(3000):
    if (not alive or rng.random() < 0.2) and pool.can_allocate(length := rng.randint(1, 30)):
        pool.allocate(number, length)
        alive.append(number)
    elif alive and rng.random() < 0.2:
        pool.fork(rng.choice(alive), number)
        alive.append(number)
    elif alive and pool.can_append(last := rng.choice(alive)):
        pool.append(last)
    elif alive:
        pool.free(alive.pop(rng.randrange(len(alive))))
    assert broken_rules(pool) == []
print(f"3,000 moves, {pool.counts['copied']} copies on write: every rule held after each")

# %% [markdown] tags=["deep-dive"]
# <a id="play-the-pool"></a>
# ## 10. Ten thousand events
# **Deep dive · 3 minutes**
#
# A pool at work: 160 requests on 96 blocks of 16 tokens, every event recorded. An event is a token written, a request that comes or ends, or one that gives way because no block is free: it loses its blocks and starts again later. Drag the slider anywhere, or play.
#
# **How to read it:** as above, with more requests than the alphabet has letters: after Z comes A2, and B3 is the 54th. Follow one block table while others come and go. Its numbers jump all over the pool, and no request ever waits for a hole of the right length.

# %% tags=["deep-dive"]
from kvlab.paging.stream import make_stream, run_stream

log = EventLog()
busy = BlockManager(96, 16, prefix_caching=False, log=log)
stream = make_stream(160, mean_prompt=70, mean_output=65, every=4, seed=3, longest=600)
*_, step = run_stream(busy, stream)
print(f"{len(log.events):,} events, {step.finished} requests done, {step.preempted} times gave way")

# %% tags=["deep-dive", "widget", "nbval-ignore-output"]
block_player(log.events, num_blocks=96, block_size=16, start=5000, interval_seconds=0.1)

# %% [markdown]
# ## Your turn
# Each check says "not answered yet" until you replace the `...`. Hints and worked solutions are folded; open as much as you need.
#
# **06-a The slot of a position.** Write `slot(position, block_table, block_size)`: the physical slot of a logical position. Roughly 1 line.


# %% tags=["exercise"]
def slot(position, block_table, block_size):
    # your code
    ...


# %% tags=["check"]
from kvlab.course import check, hint_steps, solution

check("06-a", slot)

# %% tags=["hint"]
hint_steps("06-a")

# %% tags=["solution"]
solution("06-a")

# %% [markdown]
# **06-b Blocks of mixed requests.** Three requests hold 130, 48 and 1,001 tokens and share nothing. How many blocks of 16 do they take together?

# %% tags=["exercise"]
answer = ...

# %% tags=["check"]
check("06-b", answer)

# %% tags=["hint"]
hint_steps("06-b")

# %% tags=["solution"]
solution("06-b")

# %% [markdown] tags=["deep-dive"]
# **06-c Append, with copy on write.** A sequence holds the blocks `table` and `num_tokens` tokens, one or more; it gets one more. `ref_count[b]` says how many tables hold block b, `free` lists free blocks (take the last). Write `append(table, num_tokens, ref_count, free, block_size)`: return (table, ref_count, free, copies) afterwards, `copies` a list of pairs (from, to). Roughly 9 lines.


# %% tags=["exercise"]
def append(table, num_tokens, ref_count, free, block_size):
    # your code
    ...


# %% tags=["check"]
check("06-c", append)

# %% tags=["hint"]
hint_steps("06-c")

# %% tags=["solution"]
solution("06-c")

# %% [markdown]
# **06-d Find the error in the chart.** A published chart draws reservations of 32,768 tokens as bars of 16 cells. The bar of a request of 2,048 tokens has 6 filled cells and the label "88 % wasted". How many times too large is its filled part?

# %% tags=["exercise"]
answer = ...

# %% tags=["check"]
check("06-d", answer)

# %% tags=["hint"]
hint_steps("06-d")

# %% tags=["solution"]
solution("06-d")

# %% [markdown]
# ## What interviewers listen for
# Say your answer aloud first, then open it.
#
# <details><summary><b>What does PagedAttention solve?</b></summary>
# Memory, not arithmetic. Reserving the longest length in one piece leaves slots reserved, internal or external. Blocks and a table remove the first and the last; the last block of a sequence stays part full. Logits are the same.
# </details>
#
# <details><summary><b>How much faster is it?</b></summary>
# Than what? Freed memory becomes batch, and a batch shares the reading of the weights, as long as memory limits the batch. Published: 2 to 4 times at equal latency over FasterTransformer and Orca. Over a server that pages too: nothing.
# </details>
#
# <details><summary><b>Why not blocks of one token, or of a thousand?</b></summary>
# Slack is half a block a sequence, so large blocks hurt short requests and sharing. Small blocks mean long tables and short pieces to read. Say the mean length before you name a percentage.
# </details>

# %% [markdown]
# ## Claims you will meet
# Statements from public pages. Give your verdict first: holds, only if, or wrong. The card then shows what was recomputed and the condition.

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.claims import claim_quiz

claim_quiz("prealloc-500-of-32k-waste")

# %% tags=["widget", "nbval-ignore-output"]
claim_quiz("prealloc-2k-of-32k-waste")

# %% [markdown]
# The same page draws bars, and says what is left with paging.

# %% tags=["widget", "nbval-ignore-output"]
claim_quiz("prealloc-bars")

# %% tags=["widget", "nbval-ignore-output"]
claim_quiz("paged-no-waste-500")

# %% [markdown]
# Shorter requests, and a factor. Ask what it is divided by.

# %% tags=["widget", "nbval-ignore-output"]
claim_quiz("paged-no-waste-100")

# %% tags=["widget", "nbval-ignore-output"]
claim_quiz("paper-baseline-hf")

# %% [markdown]
# ## Self-check
# Six questions. "Fresh numbers" asks the same one anew, so you can practise until the numbers no longer matter.

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.quiz import quiz

names = "slot blocks mean-length which-waste likeness-ends shared-write"
quiz(ids=[f"06-{name}" for name in names.split()], seed=6)

# %% [markdown]
# ## Takeaways
# **The answer.** In one piece they go to tokens that are still to come (reserved), to tokens that never come (internal) and into holes of the wrong length (external). With blocks only part of each last block stays empty.

# %%
one_piece = wasted_share([500, 2000, 100], block_size=32_768)
takeaways = [
    ("Reservations waste by lengths that nobody used", f"32,768 each: {one_piece:.1%}"),
    ("Paging leaves half a block a sequence", f"block 16: {together:.2%}; 4 % from {limit:.0f} on"),
    ("Freed memory is batch, where memory was short", f"13B: {gain:.1f}x at equal latency"),
]
show_table(["takeaway", "computed here"], takeaways)

# %% [markdown] tags=["instructor"]
# **For a room:** show the race at its first refusal and ask how many requests the upper memory could hold if lengths were known exactly. Switch to the exact length and count. Common wrong answer: "paging makes the cache smaller". It makes no token smaller; it stops paying for tokens that are not there.

# %% [markdown]
# ## Sources
# - Kwon et al. 2023, [Efficient Memory Management for Large Language Model Serving with PagedAttention](https://arxiv.org/abs/2309.06180): blocks, copy on write, and the comparison with FasterTransformer and Orca.
# - vLLM, [launch post of 20 June 2023](https://blog.vllm.ai/2023/06/20/vllm.html): 60 to 80 %, under 4 %, and the comparison with Hugging Face Transformers and TGI.
# - vLLM, [optimisation and preemption](https://docs.vllm.ai/en/latest/configuration/optimization.html).
#
# **Next:** 07 Prefix sharing lets requests that never met use the same blocks.
