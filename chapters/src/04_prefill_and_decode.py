# %% [markdown]
# # 04 Prefill and decode: two machines
#
# [Open in Colab](https://colab.research.google.com/github/kvlab/kvlab/blob/main/chapters/04_prefill_and_decode.ipynb)
#
# **The question.** Why is reading a prompt fast and writing an answer slow, on the same machine with the same weights?

# %% [markdown]
# **After this chapter you can**
#
# - say what a pass waits for, arithmetic or memory, from its FLOPs, its bytes and two numbers of the device;
# - bound TTFT, TPOT and throughput for a model, a batch and a context, and say where the cache overtakes the weights;
# - explain chunked prefill, separate machines, speculative decoding and FlashAttention by what each of them changes.

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

chapter_line("04")

# %% [markdown]
# **Core** 15 minutes, **deep dives** 15 minutes. You need the bytes of a token from chapter 03, and from chapter 02 that a cached step runs one token and reads everything else.
#
# The next cell loads a real model, in the dtype that suits your device. Where SmolLM2 is not at hand it takes the bundled `tiny` and the line below says so.

# %% tags=["setup", "device", "nbval-ignore-output"]
from kvlab.model.load import load_model
from kvlab.model.weights import is_available
from kvlab.widgets.predict import predict, reveal

name = "smollm2" if is_available("smollm2") else "tiny"
loaded, exact = load_model(name), load_model(name, dtype="float32")  # one and the same on a CPU
loaded

# %% [markdown]
# <a id="two-phases"></a>
# ## 1. One answer, two phases
# **Core · 2 minutes**
#
# **Prefill** runs the whole prompt in one pass, fills the cache and emits the first token. **Decode** runs one token a pass. Users feel two times: **TTFT**, to the first token, and **TPOT**, for each token after it. Operators count a third thing, **throughput**: tokens a second over all users.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "On your machine: how many times as many tokens a second pass through prefill as through decode?",
    unit="",
    key="04-phases",
)

# %% tags=["timing", "nbval-ignore-output"]
from kvlab.model.phase_timing import time_phases

P = 128
reading, writing = time_phases(loaded, prompt_tokens=P)
for phase in (reading, writing):
    ms, rate = 1000 * phase.seconds, phase.tokens_per_second
    print(f"{phase.name:8} {phase.tokens:4} tokens in {ms:7.1f} ms: {rate:7.1f} tokens/s")
ratio = reading.tokens_per_second / writing.tokens_per_second
reveal("04-phases", f"{ratio:.1f}x", remark=f"TTFT and TPOT of {loaded!r}.")

# %% [markdown]
# Each token met the same weights and nearly the same arithmetic. If the two speeds differ all the same, time is not counted in FLOPs alone. (If they don't, something else was running: close it and run the cell again.)

# %% [markdown]
# <a id="roofline"></a>
# ## 2. What a machine can do
# **Core · 4 minutes**
#
# Two numbers describe a machine: FLOPs it does in a second, and bytes it reads in a second. Start with one small matrix in float32 and T tokens, by hand: the matrix is read once, whoever uses it.

# %%
import numpy as np

matrix = np.ones((8, 8), dtype=np.float32)
for T in (1, 4, 128):
    flops = 2 * T * matrix.size  # one multiply-add for each number and token
    print(
        f"T = {T:3}: {flops:6,} FLOPs, {matrix.nbytes} bytes, {flops / matrix.nbytes:4.1f} a byte"
    )

# %% [markdown]
# FLOPs for each byte depend on T and the bytes of a number, not on the matrix: **T tokens, 2 FLOPs, over 4 bytes**. In 16 bit it is T itself. This ratio is called arithmetic intensity. Arithmetic and reading run at the same time, so the longer one counts. That is all a roofline says.


# %%
def least_seconds(work, device):
    arithmetic = work.flops / device.flops_per_second
    reading = work.bytes / device.bytes_per_second
    return max(arithmetic, reading)


# %% [markdown]
# Now both numbers for the machine you sit at: a matrix times one vector, which reads every number once, and a matrix times a matrix. Their quotient is the **ridge**: with fewer FLOPs a byte a pass waits for memory, with more for arithmetic. A weight is read once and does 2 FLOPs a token, so each ridge is also a number of **tokens**.

# %% tags=["timing", "nbval-ignore-output"]
from kvlab.model.measure_device import measure_device

speed = measure_device()
here = speed.as_device()
print(f"{speed.device}, {speed.dtype}")
print(f"{here.flops_per_second / 1e9:,.1f} GFLOP/s, {here.bytes_per_second / 1e9:,.1f} GB/s")
bits = 32 if speed.dtype == "float32" else 16  # of a number
print(f"ridge: {here.ridge:.1f} FLOPs a byte = {here.ridge_tokens(bits):.1f} tokens")

# %% [markdown]
# A data-centre card is faster at both, but not by the same factor, so its ridge lies further right and more has to be done with each byte.

# %%
from kvlab.arithmetic.roofline import Device

for gpu in ("T4", "A100 80GB SXM4", "H100", "H200 SXM"):
    found = Device.of(gpu)
    flops, gb = found.flops_per_second / 1e12, found.bytes_per_second / 1e9
    ridge = f"ridge {found.ridge:5.1f} FLOPs a byte = {found.ridge_tokens():.0f} tokens"
    print(f"{found.name:14} {flops:5.0f} TFLOP/s in 16 bit, {gb:5,.0f} GB/s, {ridge}")

# %% [markdown]
# ## 3. Place the real model
# **Core · 3 minutes**
#
# What did the two passes of section 1 need? Weights once, the cache written or read once, and the FLOPs of chapter 02. We let the instrument count a real prefill and a real step before we believe the formula.

# %%
from kvlab.arithmetic.roofline_work import decode_work, prefill_work
from kvlab.cache import make_cache
from kvlab.model.count_run import count_run
from kvlab.model.decode import decode_one_token, prefill
from kvlab.model.phase_timing import deployment_of
from kvlab.model.sample_text import sample_ids

one, ids = deployment_of(exact), sample_ids(exact, 33)
cache = make_cache("growing", num_layers=exact.model.config.num_layers)
with count_run(exact.model) as read:
    prefill(exact.model, ids[:, :32], cache)
with count_run(exact.model) as written:
    decode_one_token(exact.model, ids[:, 32:], cache)
assert read.flops.total == prefill_work(one, 32)[0].flops
assert written.flops.total == decode_work(one, 33)[0].flops  # 33 with the token itself
assert cache.nbytes == decode_work(one, 33)[0].cache_bytes
print("FLOPs and cache bytes of the real run: equal to the formula")

# %% [markdown]
# Now the picture. Prefill stands far right of the ridge: it waits for arithmetic. Decode stands left of it: it waits for memory, and better arithmetic would not help. **How to read it:** both axes are logarithmic; the line is the most that this machine can do; the dashed part above a disc is what the run left unused.

# %% tags=["timing", "nbval-ignore-output"]
from kvlab.figures.roofline import Dot, Roof, roofline


def dot(phase, name, role, letter):
    return Dot(name, phase.work.intensity, phase.flops_per_second, role, letter)


roof = Roof("this machine", here.flops_per_second, here.bytes_per_second)
dots = [dot(reading, f"prefill, {P} tokens", "query", "P")]
dots.append(dot(writing, "decode, batch 1", "value", "D"))
roofline(roof, dots, title=f"{loaded.name} on {speed.device}")

# %% [markdown]
# ### The processor looks busy either way
# Ask the operating system (or the driver of a GPU) and both phases look busy. What it reports is the share of time in which something runs, not whether that something waits for memory. Put what was **achieved** beside it.

# %% tags=["timing", "nbval-ignore-output"]
from kvlab.figures.tables import table

rows = []
for phase in (reading, writing):
    shares = (
        phase.flops_per_second / here.flops_per_second,
        phase.bytes_per_second / here.bytes_per_second,
    )
    busy = "not known" if phase.busy is None else f"{phase.busy:.0%}"
    rows.append((phase.name, busy, *(f"{share:.1%}" for share in shares)))
header = ["phase", "reported busy", "FLOP/s, of the measured rate", "bytes/s, of the measured rate"]
table(header, rows, numeric=[1, 2, 3], caption="Reported beside achieved")

# %% [markdown]
# Nobody counted the bytes on their way here. Bytes/s are weights and cache, each counted once, over the time: what had to move, about. More than 100 % is possible: when something else ran while the roof was measured, or when a model as small as `tiny` fits into the processor's own cache.

# %% [markdown]
# <a id="batch-and-context"></a>
# ## 4. Batch and context
# **Core · 4 minutes**
#
# A batch of requests decodes together: the weights are read **once for all** of them. So a step of eight should take hardly longer than a step of one. As long as it waits for weights.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "Eight short sequences decode in one batch. How many times the tokens a second of one?",
    unit="",
    key="04-batch",
)

# %% tags=["timing", "nbval-ignore-output"]
batches = {}
for batch in (1, 2, 4, 8):
    _, batches[batch] = time_phases(loaded, prompt_tokens=8, new_tokens=5, batch=batch)
    run = batches[batch]
    intensity = f"{run.work.intensity:4.1f} FLOPs a byte"
    print(
        f"batch {batch}: {run.tokens_per_second:6.1f} tokens/s, TPOT {1000 * run.seconds:6.1f} ms"
    )
gain = batches[8].tokens_per_second / batches[1].tokens_per_second
reveal("04-batch", f"{gain:.1f}x", remark=f"Ridge here: {here.ridge:.1f}; batch of 8: {intensity}.")

# %% [markdown]
# On a quiet machine throughput rises, and TPOT rises too once the batch comes near the ridge; on a CPU that is soon. If it is not so on yours, something else was running. On an H100 it would be hundreds of sequences, if they had no caches.
#
# They have. Each sequence reads **its own** cache, and that is never shared by batching. **The convention from here on:** all weights are counted, the input embedding too, although a step reads only a row of it for each sequence. The well-known figures count so.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "Llama 3.1 8B in bf16, requests of 8,192 tokens: from which batch on does a decode step move more cache than weights (all of them)?",
    unit="",
    key="04-overtakes",
)

# %%
from kvlab.arithmetic.plan_deployment import Deployment
from kvlab.arithmetic.roofline import crossover_batch, crossover_tokens

for model in ("llama-3.1-70b", "llama-3.1-8b"):
    big = Deployment.of(model)
    sizes = {"weight_bytes": sum(big.weight_bytes), "bytes_per_token": big.request(1).request_bytes}
    batches_at = {n: crossover_batch(**sizes, context=n) for n in (1024, 8192, 131_072)}
    words = ", ".join(f"{batch} of {n:,}" for n, batch in batches_at.items())
    print(f"{model:13} {crossover_tokens(**sizes):7,.0f} cached tokens: requests {words}")
reveal("04-overtakes", batches_at[8192], remark="All weights counted, the input embedding too.")

# %% [markdown]
# Turn the knobs. Start at batch 1 and double it: the decode disc climbs while weights are most of the bar, then it stops far left of the ridge (the readout says where), for every new request brings its own bytes. Then shorten the context. **How to read it:** discs lie on the roof, for these are least times; the bar is what one step moves.

# %% tags=["widget", "timing", "nbval-ignore-output"]
from kvlab.widgets.roofline_explorer import roofline_explorer

roofline_explorer(batch=1, measured=(here, deployment_of(loaded).weights_dtype))

# %% [markdown]
# ### Payload is not traffic
# 32 sequences of 8,192 tokens with Llama 3.1 70B: one step attends to 32 x 2.5 GiB. That is the **logical payload**, and a fine lower bound. It is no measurement: a growing cache, for example, copies itself on top. Here is the copy, counted in a real step.

# %%
from kvlab.cache.count_copies import count_copies

(step,) = decode_work(Deployment.of("llama-3.1-70b"), 8192, batch=32)
print(f"payload of one step: {step.cache_bytes / 2**30:.0f} GiB")
longer = cache.clone()
with count_copies() as copies:
    for layer in longer.layers:  # what one more token costs the cache of section 3
        layer.update(layer.keys[:, :, -1:], layer.values[:, :, -1:])
assert copies.num_bytes == longer.nbytes  # all of it, for one more row
print(f"{exact.name}: attends to {longer.nbytes:,} bytes, copies {copies.num_bytes:,} besides")

# %% [markdown]
# ## 5. From a roof to promises
# **Core · 2 minutes**
#
# Least times make promises checkable: what clearly misses a target here won't meet it. Llama 3.1 70B on eight H100, prompts of 8,192. `tp=8`: eight GPUs, called ranks, hold an eighth of each matrix. Throughput grows with the batch, TPOT too; TTFT of a prompt alone doesn't care. (Queueing, launches, that is starting each operation, and what ranks send each other come on top.)

# %%
from kvlab.arithmetic.roofline import time_decode, time_prefill

eight, card = Deployment.of("llama-3.1-70b", tp=8), Device.of("H100")
first = time_prefill(eight, card, prompt_tokens=8192)
assert first.seconds == least_seconds(first.stages[0], card)
waits = {"compute": "arithmetic", "memory": "memory"}
print(f"TTFT at least {1000 * first.seconds:.0f} ms, waits for {waits[first.bound]}")
for batch in (1, 8, 32, 128):
    step = time_decode(eight, card, context=8192, batch=batch)
    ms, rate = 1000 * step.seconds, step.tokens_per_second
    print(
        f"batch {batch:3}: TPOT {ms:4.1f} ms, {rate:5,.0f} tokens/s, cache {step.cache_share:.0%}"
    )

# %% [markdown]
# That the 128 fit in memory is another question. Capacity and bandwidth bind separately; chapter 11 asks both at once.

# %% [markdown] tags=["deep-dive"]
# <a id="chunked-prefill"></a>
# ## 6. Chunked prefill
# **Deep dive · 3 minutes**
#
# A long prompt holds the machine for one long pass, and everybody who is decoding waits. So engines cut prompts into chunks, and those who write go on meanwhile. The cache makes it possible: a chunk finds the earlier ones there. The logits must be the same.

# %% tags=["deep-dive"]
prompt = sample_ids(exact, 64)


def read_in(chunk_size):
    cache = make_cache("growing", num_layers=exact.model.config.num_layers)
    logits = prefill(exact.model, prompt, cache, chunk_size=chunk_size, last_token_only=False)
    return logits, cache


whole, _ = read_in(None)
for size in (24, 9):
    pieces, held = read_in(size)
    assert float((whole - pieces).abs().max()) < 1e-3 and held.get_seq_length() == 64
    assert bool((whole.argmax(-1) == pieces.argmax(-1)).all())
    print(f"chunks of {size:2}: all 64 rows of logits equal to one pass, within 1e-3")

# %% [markdown] tags=["deep-dive"]
# Now somebody writes while the prompt of another comes in. The longest pause should shrink with the chunk, and the total grow: every chunk reads all weights again, and so does the step after it. If it is not so on yours, something else was running. Today's engines save that second reading: the writers' tokens ride in the **same pass** as the chunk.

# %% tags=["deep-dive", "timing", "nbval-ignore-output"]
from time import perf_counter


def pauses(chunk_size):  # of a writer, while another prompt is read in chunks
    layers, times = exact.model.config.num_layers, []
    writer, reader = (make_cache("growing", num_layers=layers) for _ in range(2))
    token = prefill(exact.model, prompt[:, :8], writer).argmax(-1)
    for chunk in prompt.split(chunk_size, dim=1):
        started = perf_counter()
        prefill(exact.model, chunk, reader)
        token = decode_one_token(exact.model, token, writer).argmax(-1)
        times.append(1000 * (perf_counter() - started))
    return times


rows = []
for size in (64, 16, 8):
    ms = pauses(size)  # one pause for each token that the writer got
    rows.append((str(size), f"{max(ms):.0f} ms", str(len(ms)), f"{sum(ms):.0f} ms"))
header = ["chunk", "longest pause", "tokens written", "in all"]
table(header, rows, numeric=[0, 1, 2, 3], caption="A prompt of 64 tokens")

# %% [markdown] tags=["deep-dive"]
# <a id="disaggregation"></a>
# ## 7. Two machines in earnest
# **Deep dive · 3 minutes**
#
# If the phases want different machines, give them different machines: one prefills, sends the cache, another decodes. First for real, through bytes as a network would carry them. Nothing but the cache and the first token crosses over.

# %% tags=["deep-dive"]
import io

import torch

from kvlab.model.decode import generate

L = exact.model.config.num_layers
sender, receiver = make_cache("growing", num_layers=L), make_cache("growing", num_layers=L)
first_token = prefill(exact.model, prompt, sender).argmax(-1)
torch.save([(layer.keys, layer.values) for layer in sender.layers], wire := io.BytesIO())
for index, (keys, values) in enumerate(torch.load(io.BytesIO(wire.getvalue()))):
    receiver.update(keys, values, index)
go_on = {"max_new_tokens": 7, "cache": receiver, "continuing": "new_ids"}
there = [int(first_token), *(s.token_id for s in generate(exact.model, first_token, **go_on))]
assert there == [s.token_id for s in generate(exact.model, prompt, max_new_tokens=8)]
assert sender.nbytes == decode_work(one, 64)[0].cache_bytes
print(f"{sender.nbytes:,} bytes of cache shipped; the same 8 tokens came out")

# %% [markdown] tags=["deep-dive"]
# Why at all? Neither phase disturbs the other, and each gets as many machines as it needs. One request of Llama 3.1 70B, 8,192 tokens: how long is its cache under way, beside the prefill? (NVLink joins GPUs of one server.) The eight ranks can send over a link each, and layers while later ones are computed.

# %% tags=["deep-dive"]
from kvlab.arithmetic.gpus import find_gpu
from kvlab.arithmetic.preemption import PCIE_GB_S
from kvlab.arithmetic.roofline import seconds_to_ship
from kvlab.arithmetic.units import format_bytes

shipped = Deployment.of("llama-3.1-70b").request(8192).request_bytes
rows = []
links = {"NVLink of an H100": find_gpu("H100").nvlink_gb_s / 2, "PCIe 5.0 x16": PCIE_GB_S[5]}
links |= {"400 Gb/s": 50, "100 Gb/s": 12.5, "10 Gb/s": 1.25}
for link, gb in links.items():
    row = [link, f"{gb:g} GB/s"]
    for count in (1, eight.tp):
        seconds = seconds_to_ship(shipped, link_bytes_per_second=gb * 1e9, links=count)
        row.append(f"{1000 * seconds:,.1f} ms ({seconds / first.seconds:.1%})")
    rows.append(tuple(row))
caption = f"{format_bytes(shipped)}; in brackets: of the prefill, {1000 * first.seconds:.0f} ms"
header = ["link, one direction", "nominal", "over one link", "a link for each rank"]
table(header, rows, numeric=[1, 2, 3], caption=caption)

# %% [markdown] tags=["deep-dive"]
# <a id="speculative-decoding"></a>
# ## 8. Speculative decoding
# **Deep dive · 4 minutes**
#
# A decode step leaves arithmetic idle. So let something cheap guess the next tokens and check them all in **one** pass: it reads the weights once, for five tokens instead of one. Guesses are kept up to the first that differs from what the model would write. Greedy output stays the same up to rounding (in bf16 a wider pass may flip a near tie); only the number of passes changes.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "16 tokens, at most 4 guesses a pass, by copying what followed the same two tokens earlier in a text that repeats itself. How many passes?",
    unit="passes",
    key="04-passes",
)

# %% tags=["deep-dive", "device", "nbval-ignore-output"]
from kvlab.model.speculate import ModelDraft, NGramDraft, first_layers, speculate

text, N = sample_ids(exact, 96), 16  # a passage, and its beginning again
plain = [step.token_id for step in generate(exact.model, text, max_new_tokens=N)]
rounds = list(speculate(exact.model, text, NGramDraft(2), max_new_tokens=N, lookahead=4))
assert [token for r in rounds for token in r.emitted] == plain  # the same text, always
right, tried = sum(r.accepted for r in rounds), sum(len(r.proposed) for r in rounds)
reveal("04-passes", len(rounds), remark=f"{right} of {tried} guesses kept; {N} passes without.")

# %% [markdown] tags=["deep-dive"]
# A draft can be a model, too. Then it keeps **its own cache**, and both caches hold rows of guesses that may be wrong. Wrong rows must go before the next pass, or later tokens attend to words that were never said. Ours is the model's own first layers, five sixths of them: too slow to pay, but it guesses right and wrong. It never feeds its last guess, so it drops fewer rows than the model.

# %% tags=["deep-dive", "device", "nbval-ignore-output"]
draft = ModelDraft(first_layers(exact.model, L * 5 // 6))
story = exact.encode("The sun rises in the east and sets in the west. The moon")
plain = [step.token_id for step in generate(exact.model, story, max_new_tokens=9)]
rounds = list(speculate(exact.model, story, draft, max_new_tokens=9, lookahead=3))
assert [token for r in rounds for token in r.emitted] == plain
rows = []
for r in rounds:
    kept = f"{r.accepted} of {len(r.proposed)}" if r.proposed else "no guesses"
    kept = "prefill" if r is rounds[0] else kept
    rows.append((kept, str(len(r.emitted)), str(r.peak_rows), str(r.rows)))
header = ["guesses kept", "emitted", "rows before rollback", "rows after"]
wrong = sum(r.rows_dropped for r in rounds)
caption = f"Rows dropped: {wrong} by the model, {draft.rows_dropped} by the draft"
table(header, rows, numeric=[0, 1, 2, 3], caption=caption)

# %% [markdown] tags=["deep-dive"]
# Each wrong guess costs a row and arithmetic. That was idle at batch 1; in a large batch it is not, and the gain melts. Engines must also reserve room for guesses in each cache. When tokens are **sampled**, a guess is accepted with a probability, or rejected and drawn anew, such that the distribution stays the model's own.

# %% [markdown] tags=["deep-dive"]
# <a id="flash-and-paged"></a>
# ## 9. FlashAttention and PagedAttention
# **Deep dive · 3 minutes**
#
# The names sound alike and answer different questions. **FlashAttention** is *how it is computed*: the softmax is put together block by block, so the table of scores never exists in memory. **PagedAttention** is *where it is stored*: keys and values lie in blocks anywhere, found through a table. This is the first in ten lines.

# %% tags=["deep-dive"]
import inspect

from kvlab.model.blockwise import attend_by_blocks

print(inspect.getsource(attend_by_blocks).split('"""')[2].strip("\n"))

# %% [markdown] tags=["deep-dive"]
# One running maximum, one sum, one mix; when a larger score comes, what was summed is shrunk. The function does not ask where the blocks lie. So we give it one cache in a single piece, and the same one scattered over a store in shuffled order, NaN in every unused slot. (The query is one of the keys: any vector would do.)

# %% tags=["deep-dive"]
from kvlab.model.blockwise import attend_plain, contiguous_blocks, paged_blocks, scatter

layer = sender.layers[-1]  # the last layer of the real model, its first KV head
keys, values = (x[0, 0].cpu().numpy().astype(np.float64) for x in (layer.keys, layer.values))
query, block_table = keys[-1], [5, 0, 6, 2]  # four blocks of 16, anywhere in a store of 8
stores = [scatter(rows, block_table, num_blocks=8, block_size=16) for rows in (keys, values)]
expected = attend_plain(query, keys, values)
flash = attend_by_blocks(query, contiguous_blocks(keys, values, 16))
paged = attend_by_blocks(query, paged_blocks(*stores, block_table, kv_len=64))
assert np.allclose(flash, expected, atol=1e-9) and np.array_equal(paged, flash)
print("block by block: equal to the plain softmax; from scattered blocks: equal to the last bit")

# %% [markdown] tags=["deep-dive"]
# What is saved in a prefill of 8,192 tokens is the table of scores: a square for each query head, written and read again. FlashAttention changes neither the FLOPs nor the cache. PagedAttention changes neither the result nor the bytes of a token, only the waste around them: chapter 06.

# %% tags=["deep-dive"]
from kvlab.arithmetic.catalogue import model_shape

llama = model_shape("llama-3.1-8b")
square = 2 * 8192**2  # bf16
print(
    f"scores of one head: {format_bytes(square)}; of a layer: {format_bytes(llama.num_heads * square)}"
)
print(f"K and V of that layer: {format_bytes(2 * llama.num_kv_heads * llama.head_dim * 2 * 8192)}")

# %% [markdown] tags=["deep-dive"]
# <a id="closing-the-gap"></a>
# ## 10. Closing the gap
# **Deep dive · 2 minutes**
#
# Decode stood below its roof in section 3. Between the two lie launches of small operations, Python between them, the copy of the growing cache, and products with one row, which many libraries read slowly. How large is the gap here?

# %% tags=["deep-dive", "timing", "nbval-ignore-output"]
least = least_seconds(writing.work, here)
print(
    f"one step: at least {1000 * least:.1f} ms by the roofline, {1000 * writing.seconds:.1f} ms measured"
)
print(f"{writing.seconds / least:.2f} times the least time")

# %% [markdown] tags=["deep-dive"]
# Four cures are known: a step that runs as **one piece of compiled code** (on a GPU: recorded once and replayed, a CUDA graph), a cache **written in place**, products that **only stream** the weights (read each number once, in order, and do nothing else), and fewer bytes to stream. `FastDecoder` takes them all where it can. On a CPU it has two forms: `float32` reads the weights as they are; `packed` keeps them in the fewest bits that hold each of them exactly, and widens them in the processor just before they are used, so no number changes. First the rule of this course: the same tokens as the lesson's model, and the same logits up to the order of sums.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "The best path here: how many times as many tokens a second as the lesson's model?",
    unit="",
    key="04-fast",
)

# %% tags=["deep-dive", "device"]
from kvlab.model.fast_decode import FastDecoder
from kvlab.model.fast_timing import paths_here, time_paths

question = exact.encode("The capital of France is")
lesson = [step.token_id for step in generate(exact.model, question, max_new_tokens=16)]
for path in paths_here(exact):
    decoder = FastDecoder(exact.model, max_seq_len=64, path=path)
    logits = decoder.prefill(question)
    expected = exact.model(question)[:, -1:]
    assert (logits - expected).abs().max() <= 1e-4 * expected.abs().max()
    fast = [int(logits.argmax(-1))]
    while len(fast) < 16:
        fast.append(int(decoder.step(torch.tensor([[fast[-1]]], device=exact.device)).argmax(-1)))
    assert fast == lesson
print("every path writes the lesson's 16 tokens")

# %% [markdown] tags=["deep-dive"]
# Now the times, in the picture of section 3 and as numbers. L is the lesson's model; *least* is what this machine's measured reading speed allows for those bytes.

# %% tags=["deep-dive", "timing", "nbval-ignore-output"]
paths = time_paths(exact, prompt_tokens=P)  # in turns, so that a slow moment meets them all
slow, quick = paths[0], min(paths, key=lambda timing: timing.seconds)
reveal("04-fast", f"{slow.seconds / quick.seconds:.1f}x", remark=f"By the path {quick.path!r}.")
words = {"plain": "the lesson's model", "graph": "a recorded graph"}
words |= {"float32": "compiled step", "packed": "compiled, narrow weights"}
arithmetic = decode_work(one, P + 5)[0].flops
shown = [("L", "value"), ("C", "query"), ("N", "key")]
dots = [
    Dot(words[t.path], arithmetic / t.bytes, arithmetic / t.seconds, role, letter)
    for t, (letter, role) in zip(paths, shown, strict=False)
]
roofline(roof, dots, title=f"One decode step of {exact.name}, batch 1")

# %% tags=["deep-dive", "timing", "nbval-ignore-output"]
rows = []
for t in paths:
    times = (f"{1000 * t.seconds:.1f} ms", f"{1000 * t.least_seconds:.1f} ms", f"{t.share:.0%}")
    rows.append((words[t.path], format_bytes(t.bytes), *times, f"{1 / t.seconds:.0f}"))
header = ["path", "has to read", "measured", "least", "of the limit", "tokens/s"]
table(header, rows, numeric=[1, 2, 3, 4, 5], caption=f"Batch 1, behind {P} tokens")

# %% [markdown] tags=["deep-dive"]
# Two different gains. The compiled step climbs **towards the roof**: same bytes, less time lost between them. Packed weights move **to the right**: fewer bytes for the same arithmetic, so the roof itself is higher there, and widening the numbers costs some of what is won. A long prompt is another matter: each number that is read is used for every token of it, so arithmetic is the limit. There `FastDecoder` measures once which matrix product is sooner on your machine, the library's or its own; `describe()` says which. (One row in the table? Then no C compiler was found, and you keep the lesson's model. More than 100 %? Then the model fits into the processor's own cache, as `tiny` does.) In a terminal, `kvlab generate --fast` takes this path and `kvlab bench` measures it beside other software.

# %% [markdown]
# ## Your turn
# Each check says "not answered yet" until you replace the `...`. Hints and worked solutions are folded; open as much as you need.
#
# **04-a The least time of a decode step.** Write `step_seconds(batch, flops, weight_bytes, cache_bytes)` for an H100 (989e12 FLOP/s, 3.35e12 bytes/s): the least time of one decode step. `flops` and `cache_bytes` are those of one request; the weights serve the whole batch. Roughly 3 lines.


# %% tags=["exercise"]
def step_seconds(batch, flops, weight_bytes, cache_bytes):
    # your code
    ...


# %% tags=["check"]
from kvlab.course import check, hint_steps, solution

check("04-a", step_seconds)

# %% tags=["hint"]
hint_steps("04-a")

# %% tags=["solution"]
solution("04-a")

# %% [markdown]
# **04-b Where the cache overtakes.** Llama 3.1 8B: 8,030,261,248 parameters, 32 layers, 32 query heads, 8 KV heads, head_dim 128; weights and cache in bf16. Each request holds 4,096 tokens. Which is the first batch whose decode step moves more cache than weights? Count all weights, the input embedding too.

# %% tags=["exercise"]
answer = ...

# %% tags=["check"]
check("04-b", answer)

# %% tags=["hint"]
hint_steps("04-b")

# %% tags=["solution"]
solution("04-b")

# %% [markdown]
# **04-c Fits, but in time?** Llama 3.1 70B in bf16 on eight H100 (tensor parallel 8, 3,350 GB/s each). Every rank holds 17.64 GB of weights and one of the 8 KV heads. 32 sequences hold 8,192 tokens each; the cache of a sequence is 2.5 GiB over all ranks. How long does one decode step take at least, bound by reading? Give a unit, such as "5 ms".

# %% tags=["exercise"]
answer = ...

# %% tags=["check"]
check("04-c", answer)

# %% tags=["hint"]
hint_steps("04-c")

# %% tags=["solution"]
solution("04-c")

# %% [markdown] tags=["deep-dive"]
# **04-d Keep, add, roll back.** Greedy speculative decoding. `proposed` is the draft's list of guesses; `chosen` is what the model itself chose after the last token and after each guess, one more than `proposed`. Write `accept(proposed, chosen)`: return (tokens to emit, rows to drop from the cache), which now holds a row for each guess. Roughly 4 lines.


# %% tags=["exercise"]
def accept(proposed, chosen):
    # your code
    ...


# %% tags=["check"]
check("04-d", accept)

# %% tags=["hint"]
hint_steps("04-d")

# %% tags=["solution"]
solution("04-d")

# %% [markdown]
# ## What interviewers listen for
# Say your answer aloud first, then open it.
#
# <details><summary><b>Why is prefill compute-bound and decode memory-bound?</b></summary>
# Scope first: a dense model in bf16, one pass. T tokens share one reading of the weights and do about T FLOPs for each byte. A long prompt is above the device's ridge, one token a sequence is far below. A short prompt or a small chunk is below it, too.
# </details>
#
# <details><summary><b>Then why not simply batch more?</b></summary>
# A batch shares the weights, not the caches. From some number of cached tokens on, the caches are most of what a step reads, and throughput stops growing while TPOT keeps rising. Before that, capacity may already say no.
# </details>
#
# <details><summary><b>The dashboard says 100 % utilisation. Is the GPU used well?</b></summary>
# That number says that some kernel (a program on the GPU) was running. Ask for achieved FLOP/s and bytes/s against what the device can do: a decode step at batch 1 can keep a card "busy" with nearly all arithmetic idle.
# </details>

# %% [markdown]
# ## Claims you will meet
# Statements from public pages. Give your verdict first: holds, only if, or wrong. The card then shows what was recomputed and the condition.

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.claims import claim_quiz

claim_quiz("prefill-compute-bound")

# %% tags=["widget", "nbval-ignore-output"]
claim_quiz("batching-only-way")

# %% [markdown]
# Two more. For the first, ask which resource each half is about; for the second, what the reported number counts.

# %% tags=["widget", "nbval-ignore-output"]
claim_quiz("capacity-and-bandwidth-separate")

# %% tags=["widget", "nbval-ignore-output"]
claim_quiz("gpu-looks-busy")

# %% [markdown]
# ## Self-check
# Six questions. "Fresh numbers" asks the same one anew, so you can practise until the numbers no longer matter.

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.quiz import quiz

names = "ridge-tokens cache-overtakes step-time what-does-batching-share which-is-which"
quiz(ids=[f"04-{name}" for name in (*names.split(), "speculative-order")], seed=4)

# %% [markdown]
# ## Takeaways
# **The answer.** A pass takes the longer of its arithmetic and its reading. A prompt shares one reading of the weights among all its tokens and waits for arithmetic. A decode step has one token a sequence for the same reading, so it waits for memory, and each sequence adds a cache that nobody shares.

# %%
h100, eight_b = Device.of("H100"), Deployment.of("llama-3.1-8b")
one_token = decode_work(eight_b, 8192)[0].intensity
tokens = crossover_tokens(weight_bytes=sum(eight_b.weight_bytes), bytes_per_token=131_072)
step = time_decode(eight, h100, context=8192, batch=32)
takeaways = [
    (
        "The ridge decides what a pass waits for",
        f"H100: {h100.ridge:.0f}; one decoded token: {one_token:.1f}",
    ),
    (
        "Batching shares weights, never caches",
        f"8B: {tokens:,.0f} cached tokens weigh as much as all weights",
    ),
    (
        "TTFT, TPOT and throughput have least times",
        f"70B, 32 x 8,192: {1000 * step.seconds:.1f} ms a step",
    ),
]
table(["takeaway", "computed here"], takeaways)

# %% [markdown] tags=["instructor"]
# **For a room:** show the explorer with Llama 3.1 8B at 8,192 tokens and batch 1, and ask how far the decode disc climbs when the batch doubles. Double it until it stops, then ask why. Common wrong answer: "memory-bound means that the memory is full".

# %% [markdown]
# ## Sources
# - Williams, Waterman, Patterson 2009, [Roofline: an insightful visual performance model](https://doi.org/10.1145/1498765.1498785).
# - Pope et al. 2022, [Efficiently Scaling Transformer Inference](https://arxiv.org/abs/2211.05102): the two phases and their partitioning.
# - Agrawal et al. 2024, [Sarathi-Serve](https://arxiv.org/abs/2403.02310): chunked prefill. Zhong et al. 2024, [DistServe](https://arxiv.org/abs/2401.09670): separate machines.
# - Leviathan et al. 2022, [Fast Inference from Transformers via Speculative Decoding](https://arxiv.org/abs/2211.17192).
# - Dao et al. 2022, [FlashAttention](https://arxiv.org/abs/2205.14135). Kwon et al. 2023, [PagedAttention](https://arxiv.org/abs/2309.06180).
# - vLLM, [optimisation and chunked prefill](https://docs.vllm.ai/en/latest/configuration/optimization.html).
#
# **Next:** 05 Fewer KV heads shrinks what every step reads.
