# %% [markdown]
# # 03 The memory formula, with sliders
#
# [Open in Colab](https://colab.research.google.com/github/kvlab/kvlab/blob/main/chapters/03_memory_formula.ipynb)
#
# **The question.** How many bytes does a cache hold, and which numbers of a model decide it?

# %% [markdown]
# **After this chapter you can**
#
# - derive the size of a cache by counting vectors, from any model's config, with its unit said;
# - say what is in the formula, what is not, and where the caches grow past the weights;
# - name three honest ways of counting the same cache, and find the slip in a published table.
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

chapter_line("03")

# %% [markdown]
# **Core** 20 minutes, **deep dives** 25 minutes. You need two facts: a token leaves one key and one value for each KV head of each layer (chapter 01), and after P prompt tokens and N emitted ones P + N - 1 positions are held (chapter 02).
#
# A real model comes along, in float32. Where SmolLM2 is not at hand the bundled `tiny` takes its place; the conclusions are the same.

# %% tags=["setup", "device", "nbval-ignore-output"]
from kvlab.model.load import load_model
from kvlab.model.weights import is_available
from kvlab.widgets.predict import predict, reveal

loaded = load_model("smollm2" if is_available("smollm2") else "tiny", dtype="float32")
loaded

# %% [markdown]
# <a id="bytes-per-token"></a>
# ## 1. Count vectors
# **Core · 4 minutes**
#
# Take Llama 3.1 8B: 32 layers, 32 query heads, 8 KV heads, 128 numbers in each key and each value. Its cache is kept in bf16, two bytes a number.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict("How many bytes does one token add to that cache?", unit="KiB", key="03-token")

# %% [markdown]
# Small first. SmolLM2 has 30 layers and 3 KV heads, so one token leaves 180 vectors. **How to read it:** a column is a layer, a cell one vector; query heads have no row, since queries are not kept.
#
# Still smaller: the toy of chapter 01 has one layer, one head and 8 numbers in a vector. Below the picture its cache is counted cell by cell, with no formula: every letter adds the same 16.

# %%
from kvlab.arithmetic.catalogue import model_shape
from kvlab.figures.token_vectors import token_vectors

small = model_shape("smollm2")
token_vectors(small.num_layers, small.num_kv_heads, small.head_dim, title="One token in SmolLM2")

# %%
from kvlab.model.toy import Toy, ToyCache

cache, cells = ToyCache(num_heads=1), []
for letter in "ABCD":
    Toy(num_heads=1).step(cache, letter)
    keys, values = cache.keys[:, : cache.length], cache.values[:, : cache.length]
    cells.append(keys.size + values.size)
print("cells held after A, B, C, D:", cells)
assert cells == [16, 32, 48, 64]

# %% [markdown]
# The formula is that count, written as a product. This is the whole idea of the chapter:


# %%
def bytes_per_token(layers, kv_heads, head_dim, bytes_per_element):
    vectors = 2 * layers * kv_heads  # a key and a value: that is the 2
    return vectors * head_dim * bytes_per_element


llama_8b = bytes_per_token(32, 8, 128, 2)
print(f"toy {bytes_per_token(1, 1, 8, 1)} cells, Llama 3.1 8B {llama_8b:,} bytes")
remark = "2 x 32 x 8 x 128 x 2 = 131,072 bytes; eight tokens are a MiB."
reveal("03-token", f"{llama_8b / 1024:g} KiB", remark=remark)

# %% [markdown]
# From here on the package's function is used; it is the same product. Tokens and users multiply it. A size has a unit on purpose: 1 GiB is 2^30 bytes, 1 GB is 10^9, and the two differ by 7 %.

# %%
from kvlab.arithmetic.memory import kv_bytes, kv_bytes_per_token
from kvlab.arithmetic.units import format_bytes

arguments = ("num_layers", "num_kv_heads", "head_dim", "bytes_per_element")
for model in ("smollm2", "llama-3.1-8b", "llama-3.1-70b"):
    shape = model_shape(model)
    factors = (shape.num_layers, shape.num_kv_heads, shape.head_dim, 2)
    named = dict(zip(arguments, factors, strict=True))
    assert kv_bytes_per_token(**named) == bytes_per_token(*factors)
    one = format_bytes(kv_bytes(**named, seq_len=8192))
    print(f"{model:14} {bytes_per_token(*factors):8,} B a token, 8,192 tokens: {one}")

# %% [markdown]
# ## 2. Measure it
# **Core · 3 minutes**
#
# Does a real cache hold that many bytes? The model at hand reads 40 tokens and emits 9, in float32: 4 bytes a number.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict("40 tokens in, 9 out: how many positions will be held?", unit="", key="03-held")

# %% tags=["device"]
from kvlab.model.decode import generate
from kvlab.model.sample_text import sample_ids

shape = loaded.model.config.to_shape()
factors = (shape.num_layers, shape.num_kv_heads, shape.head_dim, 4)
steps = list(generate(loaded.model, sample_ids(loaded, 40), max_new_tokens=9))
per_token = bytes_per_token(*factors)
for step in (steps[0], steps[1], steps[-1]):
    print(
        f"{step.phase:7} holds {step.cache_bytes:9,} B = {step.cache_bytes // per_token} positions"
    )
assert steps[-1].cache_bytes == per_token * (40 + 9 - 1)
remark = "The last emitted token is not in it."
reveal("03-held", steps[-1].cache_bytes // per_token, remark=remark, measured=True)

# %% [markdown]
# Equal to the byte. The bytes were counted on the tensors; the formula saw only the config. In bf16 it would be half, because the cache has its own dtype.
#
# <a id="not-in-the-formula"></a>
# ## 3. What is not in it
# **Core · 4 minutes**
#
# Now a large model with experts, Qwen3 235B. We double one field of its config at a time: query heads, hidden size, MLP width of the experts, number of experts, vocabulary, bytes of a weight; then layers, KV heads and head_dim.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "Nine fields are doubled, one at a time. How many of them change the cache?", key="03-fields"
)

# %%
from kvlab.arithmetic.catalogue import find_model
from kvlab.arithmetic.reader import read_model
from kvlab.figures.tables import table

config = dict(find_model("qwen3-235b-a22b").config)
fields = ["num_attention_heads", "hidden_size", "moe_intermediate_size", "num_experts"]
fields += ["vocab_size", "torch_dtype", "num_hidden_layers", "num_key_value_heads", "head_dim"]


def doubled(field):
    twice = "float32" if field == "torch_dtype" else 2 * config[field]
    return 2 * read_model(config | {field: twice}).elements_per_token


before = 2 * read_model(config).elements_per_token
rows = [(name, f"{doubled(name):,} B", f"{doubled(name) / before:g}x") for name in fields]
caption = f"Qwen3 235B, bf16 cache: {before:,} B a token; one field doubled"
table(["doubled", "a token now", "change"], rows, numeric=[1, 2], caption=caption)

# %% [markdown]
# Three of nine. All three are in the formula; none of the other six is.

# %%
changed = [name for name in fields if doubled(name) != before]
reveal("03-fields", len(changed), remark=f"{', '.join(changed)}; and the cache's own dtype.")

# %% [markdown]
# Queries are used once and dropped. MLP and experts keep nothing from token to token. Weights in 4 bit leave more **room** for a cache but make it no smaller. One trap is left: a config may be silent about `head_dim`. Then most readers divide hidden size by query heads, as a Llama config does, and both enter by the back door.

# %%
silent = {key: value for key, value in config.items() if key != "head_dim"}
divided = config["hidden_size"] // config["num_attention_heads"]
wrong = 2 * read_model(silent | {"model_type": "llama"}).elements_per_token
print(f"head_dim written: {config['head_dim']}; hidden size over query heads: {divided}")
print(f"a token: {before:,} B as written, {wrong:,} B if divided")
assert wrong * config["head_dim"] == before * divided

# %% [markdown]
# ## 4. Turn every knob
# **Core · 5 minutes**
#
# One card holds weights, some overhead, and all caches. 24 users with 8,192 tokens each use Llama 3.1 8B on an H100.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict("How many GiB do the 24 caches take together?", unit="GiB", key="03-users")

# %%
from kvlab.arithmetic.gpus import find_gpu
from kvlab.arithmetic.memory_split import split_memory

model_8b = read_model("llama-3.1-8b")
machine = {"capacity_bytes": find_gpu("H100").driver_bytes, "overhead_bytes": 2 * 10**9}
machine["weights_bytes"] = 2 * find_model("llama-3.1-8b").parameters
split = split_memory(model_8b, context=8192, users=24, **machine)
remark = f"A GiB each. The weights are {format_bytes(split.weights_bytes)}."
reveal("03-users", f"{split.cache_bytes / 2**30:g} GiB", remark=remark)

# %% [markdown]
# Now yours. Only the green part answers to users and tokens; beyond the mark the caches outweigh the model. Choose another model, move a factor, or paste a `config.json`. **How to read it:** one bar is the memory as the driver reports it, which is not the number on the box; hatched is overhead, a guess that chapter 11 replaces.

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.memory_explorer import memory_explorer

memory_explorer()

# %% [markdown]
# Try three things. Double the KV heads and watch "users that fit". Set the weights to int4: the grey part shrinks, the green one stays. Choose DeepSeek-V3: no slider can describe it, and the line below the bar says why.
#
# <a id="users-and-contexts"></a>
# ## 5. Users times tokens
# **Core · 4 minutes**
#
# Caches are per user, weights are shared. So the same formula gives a line of the bar or a whole table. Where do the caches of Llama 3.1 8B pass its weights?

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict("With 32,768 tokens each: how many users hold as much as the weights?", key="03-crossing")

# %% [markdown]
# Most of the table is out of reach of one card: a hundred short chats fit, ten long documents do not. **How to read it:** GiB of cache; *over* is more than the H100 has left beside weights and overhead.

# %%
lengths = [2048, 8192, 32_768, 131_072]
room = split.free_bytes + split.cache_bytes
rows = []
for users in (1, 10, 100):
    row = [f"{users}"]
    for n in lengths:
        size = split_memory(model_8b, context=n, users=users, **machine).cache_bytes
        row.append(f"{size / 2**30:,.4g}{' over' if size > room else ''}")
    rows.append(row)
header = ["users", *(f"{n:,} tokens" for n in lengths)]
caption = f"Cache of Llama 3.1 8B in GiB, bf16; room: {room / 2**30:.1f} GiB"
table(header, rows, numeric=[1, 2, 3, 4], caption=caption)

# %%
at_32k = split_memory(model_8b, context=32_768, users=1, **machine).users_at_weights
remark = f"Weights of {split.weights_bytes / 1e9:.2f} GB over {4 * 2**30 / 1e9:.2f} GB a user."
reveal("03-crossing", f"{at_32k:.2f}", remark=remark)

# %% [markdown]
# It does not matter who holds the tokens. At so many tokens **in all** the caches weigh as much as the weights, and small models, or those with many KV heads, get there first:

# %%
rows = []
for name in ("smollm2", "llama-7b", "llama-3.1-8b", "llama-3.1-70b", "llama-3.1-405b"):
    row = find_model(name)
    added = 2 * read_model(name).elements_per_token
    crossing = f"{2 * row.parameters / added:,.0f}"
    rows.append((row.id.rsplit("/", 1)[-1], f"{added / 1024:g} KiB", crossing))
caption = "Weights and cache both in 16 bit"
table(["model", "a token", "tokens that equal the weights"], rows, numeric=[1, 2], caption=caption)

# %% [markdown] tags=["deep-dive"]
# <a id="other-layers"></a>
# ## 6. The formula against real models of every kind
# **Deep dive · 12 minutes**
#
# The product assumes full attention in every layer. Many models keep something else: a window, a latent, a state of fixed size, the keys of an image, or nothing because they read another layer's. Then each layer is counted as what it is, and the sum is the formula.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "A layer sees a window of 8 tokens, itself included. How many does it hold between two steps?",
    unit="tokens",
    key="03-window",
)

# %% [markdown] tags=["deep-dive"]
# We build nine tiny models with the **real classes** of transformers, decode 24 positions with each on the CPU in bf16, and add up the bytes of the tensors in transformers' own cache. The weights are random, the structure is not.

# %% tags=["deep-dive", "device", "nbval-ignore-output"]
from kvlab.model.held_bytes import measure_families
from kvlab.model.tiny_families import FAMILIES, WINDOW
from kvlab.widgets.waiting import with_progress

held = list(with_progress(measure_families(), total=len(FAMILIES), doing="build and decode"))

# %% [markdown] tags=["deep-dive"]
# Nine kinds, one rule: what is held is what the formula counts, less the bytes in the column *window*. **How to read it:** the layers as the reader found them in the config; bytes for one sequence of 24 positions.

# %% tags=["deep-dive"]
rows = []
for each in held:
    assert each.held_bytes == each.formula_bytes - each.window_bytes
    layers = ", ".join(f"{group.count} {group.kind}" for group in each.storage.groups)
    numbers = (each.formula_bytes, each.window_bytes, each.held_bytes)
    rows.append((each.family.name, each.family.known_from, layers, *(f"{n:,}" for n in numbers)))
header = ["family", "known from", "stores", "formula", "window", "held"]
table(header, rows, numeric=[3, 4, 5], caption="Bytes, formula and reality")

# %% tags=["deep-dive"]
(sliding,) = [each for each in held if each.family.name == "sliding"]
one_token = 2 * sliding.storage.elements_per_token
remark = f"The window is {WINDOW}, less one."
reveal("03-window", sliding.held_bytes // one_token, remark=remark, measured=True)

# %% [markdown] tags=["deep-dive"]
# The column *window* is no error. A window of 8 lets a query see 8 tokens, itself included. The newest one arrives with the step, so **window - 1** old ones are enough between steps, and transformers keeps just those. The formula counts the moment of the step.
#
# What each kind keeps for a sequence, in words: **full** a key and a value for each token; **windowed** the same, at most a window of them; **latent** one compressed vector and one RoPE key, with no factor 2, since keys and values are both made from it; **shared** nothing; **state** a fixed block whatever the length; **cross** the keys and values of its source, once.
#
# So the growth differs, and so does every table above. **How to read it:** one real model a row, MiB for one user after so many tokens.

# %% tags=["deep-dive"]
from kvlab.arithmetic.request import size_request

models = ("llama-3.1-8b", "mistral-7b-v0.1", "gemma-3-27b-it", "gpt-oss-20b", "deepseek-v3")
models += ("qwen3-next-80b-a3b-instruct", "gemma-3n-e2b-it")
rows = []
for name in models:
    storage = read_model(name)
    sizes = [size_request(storage, context=n).request_bytes for n in (1, 4096, 131_072)]
    layers = ", ".join(f"{group.count} {group.kind}" for group in storage.groups)
    row = (find_model(name).id.rsplit("/", 1)[-1], layers)
    rows.append((*row, *(f"{size / 2**20:,.2f}" for size in sizes)))
header = ["model", "stores", "1 token", "4,096", "131,072"]
caption = "MiB for one user, payload: bf16, recurrent states in fp32"
table(header, rows, numeric=[2, 3, 4], caption=caption)

# %% [markdown] tags=["deep-dive"]
# Look at the first column: a state is paid in full by the first token. And at the last: two models of like size can be far apart. Lengths beyond what a model was made for are arithmetic only.
#
# <a id="three-accountings"></a>
# ## 7. Three honest answers
# **Deep dive · 8 minutes**
#
# "How big is the cache?" has three answers. **Payload**: what the mathematics needs. **Reservation**: every layer at full length, as a plain static cache takes it. **Charge**: what an engine's allocator really takes, with blocks, windows and padding.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "Gemma 3 27B, one user of 10,001 tokens. How many times the payload is the reservation?",
    key="03-reserved",
)

# %% tags=["deep-dive"]
from kvlab.arithmetic.accounting import accountings

TOKENS, IN_A_STEP = 10_001, 2048
counted = {
    name: accountings(read_model(name), context=TOKENS, max_batched_tokens=IN_A_STEP)
    for name in models
}
gemma = counted["gemma-3-27b-it"]
ratio = gemma.reserved_bytes / gemma.payload_bytes
reveal("03-reserved", f"{ratio:.2f}x", remark="52 of its 62 layers need a window only.")

# %% [markdown] tags=["deep-dive"]
# For a model of equal full layers all three nearly agree. Where they differ, and why: **vLLM** gives whole blocks of 16 tokens, keeps for a windowed layer the window - 1, the tokens of one step and one block more (a window may begin inside a block), and makes all pages equally large. **llama.cpp** pads to 256 cells and gives a windowed layer its window and one small batch.
#
# For a windowed model the answers lie far apart. Here an engine sits in between, but only because its step is short: every windowed layer pays for the tokens of a step, so with long steps vLLM charges more than the reservation. **How to read it:** one user, bytes to scale; the line below names both steps.

# %% tags=["deep-dive"]
from kvlab.figures.comparison import Bar, compare_bars

parts = {"payload": (gemma.payload_bytes, "value"), "llama.cpp": (gemma.llama_cpp_bytes, "weights")}
parts |= {"vLLM": (gemma.vllm_bytes, "weights"), "reservation": (gemma.reserved_bytes, "wasted")}
bars = []
for name, (size, role) in parts.items():
    hatched = name == "reservation"
    bars.append(Bar(name, size, format_bytes(size), role, hatched=hatched))
wide = accountings(read_model("gemma-3-27b-it"), context=TOKENS, max_batched_tokens=8192)
assert wide.vllm_bytes > gemma.reserved_bytes > gemma.vllm_bytes
reading = f"vLLM schedules {IN_A_STEP:,} tokens a step here. "
reading += f"With 8,192 it charges {format_bytes(wide.vllm_bytes)}."
compare_bars(bars, title="Gemma 3 27B, 10,001 tokens, bf16", reading=reading)

# %% tags=["deep-dive"]
rows = []
for name, sizes in counted.items():
    four = (sizes.payload_bytes, sizes.llama_cpp_bytes, sizes.vllm_bytes, sizes.reserved_bytes)
    shown = ["-" if size is None else f"{size / 2**20:,.1f}" for size in four]
    rows.append((find_model(name).id.rsplit("/", 1)[-1], *shown))
header = ["model", "payload", "llama.cpp", "vLLM", "reservation"]
caption = f"MiB for one user of {TOKENS:,} tokens; vLLM with {IN_A_STEP:,} tokens a step"
table(header, rows, numeric=[1, 2, 3, 4], caption=caption)

# %% [markdown] tags=["deep-dive"]
# None of them is wrong. When two sizes disagree, ask which was counted, then change one assumption at a time. Chapter 06 builds the blocks, chapter 11 reads these numbers from real start-up logs.
#
# <a id="published-table"></a>
# ## 8. A published table
# **Deep dive · 5 minutes**
#
# A public page explains the formula well, shows it as code, and prints a table for Llama 3 8B in 16 bit. Here are its function and what it prints, in our words, and what it builds on that later: some of these statements are sound, some are not. The page says MB and GB where its code gives MiB and GiB; leave that aside here, the cards below come back to it. Exercises 03-c and 03-d are about them.

# %% tags=["deep-dive"]
import inspect

from kvlab.course.published_table import PRINTED_MIB, STATEMENTS, page_mib

source = inspect.getsource(page_mib).splitlines()
print(source[0], source[-1], sep="\n")
rows = [(f"{n:,}", f"{printed:,.0f} MB") for n, printed in PRINTED_MIB.items()]
table(["tokens", "printed"], rows, numeric=[1], caption="As printed for Llama 3 8B, 16 bit")

# %% tags=["deep-dive"]
rows = [(row.letter, row.text, row.printed) for row in STATEMENTS]
table(["", "statement", "printed"], rows, caption="What the page says later")

# %% [markdown]
# ## Your turn
# **Practice · as long as you like**
#
# Each check says "not answered yet" until you replace the `...`. Hints and worked solutions are folded; open as much as you need.
#
# **03-a The formula as a function.** Write `cache_bytes(num_layers, num_kv_heads, head_dim, bytes_per_element, seq_len, users)`: the bytes of keys and values when each user keeps `seq_len` tokens. Every layer is a full one. Roughly 1 line.


# %% tags=["exercise"]
def cache_bytes(num_layers, num_kv_heads, head_dim, bytes_per_element, seq_len, users):
    # your code
    ...


# %% tags=["check"]
from kvlab.course import check, hint_steps, solution

check("03-a", cache_bytes)

# %% tags=["hint"]
hint_steps("03-a")

# %% tags=["solution"]
solution("03-a")

# %% [markdown]
# **03-b From a config to a size.** Qwen3 4B: hidden_size 2560, num_attention_heads 32, num_key_value_heads 8, head_dim 128, num_hidden_layers 36, max_position_embeddings 40960. It runs with its weights in 4 bit and its cache in bf16. How many GiB does the cache of one request with 32,768 tokens take? Payload only.

# %% tags=["exercise"]
answer = ...

# %% tags=["check"]
check("03-b", answer)

# %% tags=["hint"]
hint_steps("03-b")

# %% tags=["solution"]
solution("03-b")

# %% [markdown]
# **03-c Run the page's own function.** A page prints these sizes for Llama 3 8B in 16 bit: 128 MB for 2,048 tokens, 512 for 8,192, 2,048 for 32,768, 8,192 for 131,072. Its function is `page_mib(num_layers, num_kv_heads, head_dim, seq_len)` of section 8. Run it with 32 layers, 8 KV heads, head_dim 128. By what must every printed size be multiplied?

# %% tags=["exercise"]
answer = ...

# %% tags=["check"]
check("03-c", answer)

# %% tags=["hint"]
hint_steps("03-c")

# %% tags=["solution"]
solution("03-c")

# %% [markdown]
# **03-d Which later numbers inherit it?** The ten statements A to J come later on the same page. Mark those that were made from the faulty table, as letters: `answer = "A C"`. Multiply, divide or copy a faulty size and the fault comes along; divide two of them and it cancels.

# %% tags=["exercise"]
answer = ...

# %% tags=["check"]
check("03-d", answer)

# %% tags=["hint"]
hint_steps("03-d")

# %% tags=["solution"]
solution("03-d")

# %% [markdown]
# **03-e How many fit on the card?** Llama 3.1 8B: 32 layers, 32 query heads, 8 KV heads, head_dim 128, cache in 16 bit. Beside its weights an 80 GB card has 62 GiB left for caches. How many requests fit if each holds 2,048 tokens? 8,192? 32,768? 131,072? Payload only. Give four whole numbers in a list.

# %% tags=["exercise"]
answer = ...

# %% tags=["check"]
check("03-e", answer)

# %% tags=["hint"]
hint_steps("03-e")

# %% tags=["solution"]
solution("03-e")

# %% [markdown]
# **03-f Growth against theory.** Measure it yourself. Write `bytes_held(tokens)`: the model at hand reads `tokens` tokens into a fresh cache and emits one; return the bytes that the cache then holds. The check calls your function at four lengths and sets its slope beside that of the formula. Roughly 2 lines.


# %% tags=["exercise"]
def bytes_held(tokens):
    # your code
    ...


# %% tags=["check"]
check("03-f", bytes_held)

# %% tags=["hint"]
hint_steps("03-f")

# %% tags=["solution"]
solution("03-f")

# %% [markdown]
# ## What interviewers listen for
# **Practice · as long as you like**
#
# Say your answer aloud first, then open it.
#
# <details><summary><b>How big is the KV cache of Llama 3.1 70B?</b></summary>
# Scope first: payload, bf16, one user, before sharing and overhead. 2 for key and value, 80 layers, 8 KV heads, 128 numbers, 2 bytes: 320 KiB a token, 2.5 GiB at 8,192 tokens, 40 GiB at 131,072. Then users multiply it, and the weights do not.
# </details>
#
# <details><summary><b>We quantised the weights to 4 bit. Does the cache shrink?</b></summary>
# No. The cache has its own dtype. The weights leave more room, so more users fit, but each still takes the same bytes. A smaller cache needs fewer KV heads, fewer or windowed layers, or a cache dtype with fewer bits.
# </details>
#
# <details><summary><b>Your number and the engine's log disagree. What now?</b></summary>
# Ask what each counts: payload, reservation or charge; per rank or pooled; GB or GiB. Then the layers: windows, latents, states, shared ones. Then head_dim: read or divided. Change one assumption at a time until the numbers meet.
# </details>

# %% [markdown]
# ## Claims you will meet
# **Practice · as long as you like**
#
# Statements from public pages. Give your verdict first: holds, only if, or wrong. The card then shows what was recomputed and the condition.

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.claims import claim_quiz

claim_quiz("formula-omits-query-heads")

# %% tags=["widget", "nbval-ignore-output"]
claim_quiz("head-dim-typical")

# %% [markdown]
# Two more. For each, ask which bytes are counted, and in which unit.

# %% tags=["widget", "nbval-ignore-output"]
claim_quiz("units-mb-vs-mib")

# %% tags=["widget", "nbval-ignore-output"]
claim_quiz("payload-upper-bound")

# %% [markdown]
# The last one names no user and no time. Say both before you judge it.

# %% tags=["widget", "nbval-ignore-output"]
claim_quiz("million-token-memory-before-attention")

# %% [markdown]
# ## Self-check
# **Practice · as long as you like**
#
# Six questions. "Fresh numbers" asks the same one anew, so you can practise until the numbers no longer matter.

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.quiz import quiz

numbers = "bytes-per-token not-a-factor many-users find-the-slip windowed latent"
quiz(ids=[f"03-{name}" for name in numbers.split()], seed=3)

# %% [markdown]
# ## Takeaways
# **The answer.** Count vectors: a key and a value for each KV head of each layer, for each token of each user, times the numbers in a vector and the bytes of a number. Nothing else of the model enters. Layers that keep something else are counted as what they keep.

# %%
per_token_70b = 2 * read_model("llama-3.1-70b").elements_per_token
latent = 2 * read_model("deepseek-v3").elements_per_token
takeaways = [
    ("2 x layers x KV heads x head_dim x bytes, for each token", f"{per_token_70b:,} B (70B)"),
    ("Users multiply the cache, never the weights", f"{at_32k:.2f} users of 32K equal the 8B"),
    ("Layers that keep something else have their own count", f"{latent:,} B (DeepSeek-V3)"),
]
table(["takeaway", "computed here"], takeaways)

# %% [markdown] tags=["instructor"]
# <details><summary><b>For instructors</b></summary>
# Collect the guess for 24 users aloud and type it into the explorer's field: it stays on the bar as a dashed ghost. Then ask what int4 weights do to the green part, and count hands before you switch.
# </details>

# %% [markdown]
# ## Sources
# - Shazeer 2019, [Fast Transformer Decoding: One Write-Head is All You Need](https://arxiv.org/abs/1911.02150), and Ainslie et al. 2023, [GQA](https://arxiv.org/abs/2305.13245): why KV heads are fewer than query heads.
# - DeepSeek-AI 2024, [DeepSeek-V2](https://arxiv.org/abs/2405.04434): the latent. Jiang et al. 2023, [Mistral 7B](https://arxiv.org/abs/2310.06825): the window.
# - Kwon et al. 2023, [PagedAttention](https://arxiv.org/abs/2309.06180): what reserving wastes.
# - Hugging Face, [cache strategies](https://huggingface.co/docs/transformers/main/kv_cache). vLLM, [documentation](https://docs.vllm.ai/).
# - Configs: [Llama 3.1 8B](https://huggingface.co/meta-llama/Llama-3.1-8B), [Qwen3 4B](https://huggingface.co/Qwen/Qwen3-4B), [SmolLM2](https://huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct).
#
# **Next:** [04 Prefill and decode](04_prefill_and_decode.ipynb) asks what it costs to read all these bytes at every step.
