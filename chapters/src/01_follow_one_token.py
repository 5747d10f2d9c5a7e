# %% [markdown]
# # 01 Follow one token: queries, keys and values
#
# [Open in Colab](https://colab.research.google.com/github/kvlab/kvlab/blob/main/chapters/01_follow_one_token.ipynb)
#
# **The question.** A model has read A, B and C and now consumes D. What does this step leave behind for the next one, and why may it be used again?

# %% [markdown]
# **After this chapter you can**
#
# - follow one token through an attention layer and say what is read, what is written and what is thrown away;
# - give the shape of a cache and count the positions in it, without the usual off-by-one error;
# - say why old keys and values may be used again, and show on a real model where that ends.
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

chapter_line("01")

# %% [markdown]
# You need the dot product and softmax; the warm-up of chapter 00 has both. **Core** sections are the short way through, **deep dives** can wait.
#
# The next cell loads a real model for later. Where SmolLM2 is not at hand it takes the bundled `tiny` and the line below says so: words and differences will then be different, the conclusions are the same.

# %% tags=["setup", "device", "nbval-ignore-output"]
from kvlab.model.load import load_model
from kvlab.model.weights import is_available
from kvlab.widgets.predict import predict, reveal

loaded = load_model("smollm2" if is_available("smollm2") else "tiny", dtype="float32")
loaded

# %% [markdown]
# ## 1. A model small enough to print
# **Core · 3 minutes**
#
# The toy reads letters and says the next one. It has one attention layer and nothing around it, so whatever it knows came through attention. A token's vector holds four numbers for the letter, one for the position, and a constant 1. Eight letters fit into four places: A to D put +1 into one of them, E to H put -1.

# %%
from kvlab.model.toy import LETTERS, Toy, ToyCache

w = Toy(num_heads=1).w
x = w.letters[3] + w.positions[3]  # the letter D at position 3, counted from 0
print("the vector of D at position 3:", x)

# %% [markdown]
# Three matrices turn this vector into three others. The **query** says what the token looks for. The **key** says what it can be found by. The **value** is what it hands on when it is found. All three come from one vector, so a token needs nobody else to make them.

# %%
q, k, v = x @ w.w_q, x @ w.w_k, x @ w.w_v  # (head_dim,) each
print("query", q)
print("key  ", k)
print("value", v)

# %% [markdown]
# <a id="one-step"></a>
# ## 2. One step, by hand
# **Core · 5 minutes**
#
# The cache holds the keys and values of A, B and C. The next step consumes D. Commit to a guess before you go on; an empty field is fine too.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "The cache holds A, B and C; the step consumes D. How many keys does D's query meet?",
    unit="keys",
    key="01-keys-met",
)

# %% [markdown]
# Here is the whole step, once, with nothing hidden. Read it as six moves: **project** the new token, **store** its key and value, **compare** its query with every key, turn scores into **weights**, **mix** the values, and read off the next letter: one number for each letter, its *logit*, and the largest wins. As a formula: $\mathrm{softmax}(q K^\top / \sqrt{d})\,V$, with $d$ the head_dim.

# %%
import numpy as np

cache = ToyCache(num_heads=1)
Toy(num_heads=1).prefill(cache, "ABC")
old_keys, old_values = cache.keys[0, :3], cache.values[0, :3]  # (3, head_dim): A, B, C

q, k, v = x @ w.w_q, x @ w.w_k, x @ w.w_v  # project D, and D alone
keys, values = np.vstack([old_keys, k]), np.vstack([old_values, v])  # store: one row more
scores = keys @ q / np.sqrt(len(q))  # compare: one score a key
weights = np.exp(scores) / np.exp(scores).sum()  # softmax: they add up to 1
logits = weights @ values @ w.w_o @ w.unembedding  # mix the values, then read off
print("scores ", scores.round(2))
print("weights", weights.round(2))
print("after D comes", LETTERS[logits.argmax()])
remark = "Three old ones and its own: a token attends to itself too."
reveal("01-keys-met", len(keys), remark=remark)

# %% [markdown]
# The old rows were only read. One row was added, and no old token was projected again. The package does the same and keeps a record of it; its numbers must be ours.

# %%
cache = ToyCache(num_heads=1)
Toy(num_heads=1).prefill(cache, "ABC")
step = Toy(num_heads=1).step(cache, "D")
assert np.allclose(step.weights[0], weights) and np.allclose(step.logits, logits)
print("rows read", step.rows_read, "and written", step.rows_written)
print("predicts", step.prediction)

# %% [markdown]
# Now move it. At every position exactly one column is written; everything left of it is read again, and the query is gone when the step ends. **How to read it:** a column is a position, a cell one number; outlined is written now, pale is read from the cache, dashed is not there yet.

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.follow_token import follow_token

follow_token()

# %% [markdown]
# Try it: go back to position 0: one key, so its weight is 1 whatever the score. Go forward to H: eight keys, one written. Then switch to two heads and see each head spread its attention in its own way.

# %% [markdown]
# <a id="emitted-is-not-cached"></a>
# ## 3. A token that was just emitted is not in the cache
# **Core · 3 minutes**
#
# The step that consumes D emits E. It wrote the key and the value of D. E has none yet: they are made by the step that consumes E.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "The prompt is A B C. The toy has emitted four letters. How many positions are in the cache?",
    unit="positions",
    key="01-positions",
)

# %% [markdown]
# Count them line by line. The prefill consumes the whole prompt and already emits a letter. Each later step consumes the letter emitted just before. The last letter stays outside.

# %%
from kvlab.figures.tables import table
from kvlab.model.toy_runs import generate as toy_generate

toy_cache = ToyCache(num_heads=1)
run = toy_generate("ABC", 4, cache=toy_cache)
counted = []
for forward in run:
    consumed, held = "".join(s.letter for s in forward.steps), forward.last.rows_written[-1] + 1
    counted.append((forward.phase, consumed, forward.last.prediction, str(held)))
table(["phase", "consumes", "emits", "positions held"], counted, numeric=[3])

# %%
remark = f"{run[-1].last.prediction} was emitted last and never consumed: it has no row."
reveal("01-positions", toy_cache.length, remark=remark)

# %% [markdown]
# With P prompt tokens and N emitted ones the cache holds **P + N - 1** positions. The formula, the toy and the real model must agree.

# %%
from kvlab.arithmetic.flops import token_forwards_cached
from kvlab.cache import make_cache
from kvlab.model.decode import generate
from kvlab.model.inspect_cache import twin_texts

text, edited_text = twin_texts(loaded)
ids = loaded.encode(text)
real = make_cache("growing", num_layers=loaded.model.config.num_layers)
emitted = list(generate(loaded.model, ids, max_new_tokens=5, cache=real))
assert toy_cache.length == token_forwards_cached(3, 4)
assert real.get_seq_length() == token_forwards_cached(ids.shape[1], 5)
print(f"{loaded.name}, P = {ids.shape[1]}, N = {len(emitted)}: {real.get_seq_length()} positions")

# %% [markdown]
# <a id="old-queries"></a>
# ## 4. Why no query is kept
# **Core · 2 minutes**
#
# Without a cache the toy computes a query for every letter and gets a prediction from each. Look at what the old ones are good for.

# %%
from kvlab.model.toy_runs import recompute

again = recompute("ABCD")
print("queries of", [s.letter for s in again.steps], "predict", [s.prediction for s in again.steps])
print("a cache keeps", [name for name in vars(ToyCache()) if name != "length"])

# %% [markdown]
# Only the last prediction is news; the others are letters that we already have. A later step asks with its own query, and that query meets **all** keys and mixes **all** values. So old keys and values are read at every step, and an old query never again. Storing it would be possible, and useless.

# %% [markdown]
# <a id="causal-mask"></a>
# ## 5. Why old keys and values stay valid
# **Core · 4 minutes**
#
# A letter sees itself and what came before, never what comes later: that is the **causal mask**. In the picture one more letter adds one row at the bottom and changes no row above; the cell asserts it. **How to read it:** a row is a query, a column a key, a number the weight.

# %%
from kvlab.figures.attention import attention_triangle

steps = Toy(num_heads=1).prefill(ToyCache(num_heads=1), "ABCD")
shorter = Toy(num_heads=1).prefill(ToyCache(num_heads=1), "ABC")
for short, long in zip(shorter, steps[:3], strict=True):
    assert np.array_equal(short.weights[0], long.weights[0, :3])
triangle = [step.weights[0, : i + 1].tolist() for i, step in enumerate(steps)]
attention_triangle(list("ABCD"), triangle, title="Who looks at whom")

# %% [markdown]
# The toy has one layer, and there a key is made from the letter and its position alone. In a deeper layer it is made from what attention has already mixed. So the mask has to hold in **every** layer. Does it?

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    f"We replace the last of {ids.shape[1]} tokens by another word. In how many of the model's "
    f"{loaded.model.config.num_layers} layers does any earlier key or value change?",
    unit="layers",
    key="01-layers-changed",
)

# %%
from kvlab.model.inspect_cache import SAME, compare_caches, read_into_cache

other_end = ids.clone()
other_end[0, -1] = ids[0, 1]  # some other word of the text
late = compare_caches(read_into_cache(loaded, ids)[0], read_into_cache(loaded, other_end)[0])
earlier = np.maximum(late.keys, late.values)[:, :-1]  # (num_layers, positions before the last)
changed = int((earlier > SAME).any(axis=1).sum())
remark = "No later token reaches back, in any layer. So a row, once written, can stay."
reveal("01-layers-changed", changed, remark=remark)

# %% [markdown]
# This is the licence for the cache, and it names its own limits. Old rows do **not** stay valid when attention looks both ways, as in an encoder, which reads a finished text; when an earlier token is edited; when positions shift; or when the weights change, for example by another adapter, a small set of weights added to the model's own.

# %% [markdown]
# <a id="shapes"></a>
# ## 6. Heads and shapes
# **Core · 3 minutes**
#
# One head of eight numbers or two heads of four: the same cells in the cache, cut differently. Each head compares and mixes by itself, so the two halves of one token may look at different places. **How to read it:** as before, one block a head.

# %%
from kvlab.figures.toy_step import toy_step

two_heads = ToyCache(num_heads=2)
Toy(num_heads=2).prefill(two_heads, "ABC")
step = Toy(num_heads=2).step(two_heads, "D")
toy_step(step, title="Two heads, the same step")

# %% [markdown]
# A real layer keeps one tensor of keys and one of values. Its axes are always the same: **(batch, KV heads, positions, head_dim)**. The number of heads that ask may be larger than the number of heads that are kept.

# %% tags=["predict", "widget", "nbval-ignore-output"]
config = loaded.model.config
predict(
    f"One layer has {config.num_heads} query heads, {config.num_kv_heads} KV heads and head_dim "
    f"{config.head_dim}. How many numbers do the keys of one token take in this layer?",
    unit="numbers",
    key="01-numbers",
)

# %%
real_cache, _ = read_into_cache(loaded, ids)
k_real, v_real = real_cache.layers[0].held()  # (batch, num_kv_heads, positions, head_dim)
assert k_real.shape == v_real.shape == (1, config.num_kv_heads, ids.shape[1], config.head_dim)
assert all(each.held()[0].shape == k_real.shape for each in real_cache.layers)
print("keys of one layer:", tuple(k_real.shape), "| layers:", len(real_cache.layers))
remark = f"KV heads times head_dim. {config.queries_per_kv_head} query heads share each KV head."
reveal("01-numbers", k_real[0, :, 0].numel(), remark=remark)

# %% [markdown]
# Two habits to keep. Multiply by **KV heads**, not by query heads; chapter 05 shows why models have fewer. And count keys *and* values, in *every* layer; chapter 03 makes bytes of it.

# %% [markdown] tags=["deep-dive"]
# ## 7. Keys are stored after RoPE
# **Deep dive · 4 minutes**
#
# Llama tells positions apart by turning query and key by an angle that grows with the position (RoPE). Is the key in the cache the one before or after the turn? We make layer 1's keys by hand and compare.

# %% tags=["deep-dive"]
import torch

from kvlab.model.rope import rotate

layer, count = loaded.model.model.layers[0], ids.shape[1]
hidden = layer.input_layernorm(loaded.model.model.embed_tokens(ids))  # no attention yet
before = layer.self_attn.k_proj(hidden).view(1, count, -1, config.head_dim).transpose(1, 2)
turn = loaded.model.rope.cos_sin(torch.arange(count, device=ids.device)[None], before.dtype)
turned = rotate(before, *turn)  # (batch, num_kv_heads, positions, head_dim)
for name, by_hand in (("before", before), ("after", turned)):
    equal = torch.isclose(k_real, by_hand, atol=1e-3, rtol=1e-2).all(dim=-1).all(dim=1)[0].tolist()
    print(f"cached key = key {name} the turn, by position: {equal}")

# %% [markdown] tags=["deep-dive"]
# After. Position 0 is turned by nothing, so there both agree. Two things follow. An old key is never turned again: its angle depends on its own position alone. And a cached key can't be moved to another position as it is. Values are not turned at all.

# %% [markdown] tags=["deep-dive"]
# <a id="same-word-another-context"></a>
# ## 8. The same word in another context
# **Deep dive · 9 minutes**
#
# Two conversations, equal but for one early word. All later words are the same, at the same positions. Could the second conversation take over their keys and values?

# %% tags=["deep-dive"]
from kvlab.model.inspect_cache import token_names

edited_ids = loaded.encode(edited_text)
edit = int((ids != edited_ids)[0].nonzero()[0])  # where the two differ
print(token_names(loaded, text))
print(token_names(loaded, edited_text))
print("they differ at position", edit)

# %% tags=["deep-dive", "predict", "widget", "nbval-ignore-output"]
predict(
    "From which layer on does the key of the last word differ? The first layer is 1.",
    unit="",
    key="01-first-layer",
)

# %% [markdown] tags=["deep-dive"]
# Both texts are read into caches of their own. A difference is measured as a share of the vector's own norm (the root of the sum of its squares), all KV heads of a position together.

# %% tags=["deep-dive"]
ours, logits_ours = read_into_cache(loaded, ids)
theirs, logits_theirs = read_into_cache(loaded, edited_ids)
apart = compare_caches(ours, theirs)  # keys and values: (num_layers, positions)
first_keys = [apart.first_layer(i) for i in range(ids.shape[1])]
first_values = [apart.first_layer(i, "values") for i in range(ids.shape[1])]
print("first layer that differs, by position:", first_keys)
assert first_values == first_keys
remark = "Layer 1 makes its keys before any attention; the next one has heard of the edit."
reveal("01-first-layer", first_keys[-1], remark=remark)

# %% [markdown] tags=["deep-dive"]
# Three regions. Before the edit nothing changes, in any layer. At the edited word everything changes. After it the first layer is untouched and every deeper layer differs. **How to read it:** a row is a layer, a column a position; the number is the difference in percent, grey means none.

# %% tags=["deep-dive", "device", "nbval-ignore-output"]
from kvlab.figures.layer_map import layer_map

layer_map(
    token_names(loaded, edited_text),
    apart.keys.tolist(),
    apart.values.tolist(),
    changed=edit,
    title="One early word is changed",
    reading=repr(loaded),
)

# %% [markdown] tags=["deep-dive"]
# The three regions as assertions, and the key of the last word in numbers. In the first layer it is the same: same token, same position, same matrices. One layer deeper it has heard of the edited word: a little at first, a lot at the end.

# %% tags=["deep-dive"]
after = edit + 1
both = np.minimum(apart.keys, apart.values)  # the smaller of the two differences
assert max(apart.keys[:, :edit].max(), apart.values[:, :edit].max()) <= SAME
assert max(apart.keys[0, after:].max(), apart.values[0, after:].max()) <= SAME
assert both[1:, edit:].min() > 100 * SAME
shown = [1, 2, 3, 10, 20, 30] if config.num_layers == 30 else range(1, config.num_layers + 1)
for number in shown:
    print(f"layer {number:2}: the last word's key differs by {apart.keys[number - 1, -1]:.1%}")

# %% [markdown] tags=["deep-dive"]
# Does it matter? We let the second conversation use rows of the first one, then consume its last word as usual. Nothing complains. With all rows borrowed the model answers the *other* question; with all but the edited row borrowed the answer may look right while the logits are off.

# %% tags=["deep-dive", "device", "nbval-ignore-output"]
from kvlab.model.inspect_cache import finish_with

own_rows = {"all": [], "all but the edited one": [edit], "none": range(ids.shape[1])}
off, endings = [], []
for borrowed, own in own_rows.items():
    said = finish_with(loaded, ours, theirs, own, edited_ids)  # logits, (1, vocab_size)
    off.append(float((said - logits_theirs).abs().max()))
    endings.append((borrowed, loaded.decode(said.argmax(-1)).strip(), f"{off[-1]:.1f}"))
head = ["rows borrowed", "next word", "largest logit difference"]
table(head, endings, numeric=[2], caption=repr(loaded))

# %% tags=["deep-dive"]
rounding = 1e-3  # the last word was consumed alone, not with the others
assert off[2] < rounding < min(off[:2])
print("off by more than rounding:", [value > rounding for value in off])

# %% [markdown] tags=["deep-dive"]
# So a deeper key stands for **the whole text up to its word**, not for the word. "Same word, same position" is not enough for taking it over; the same *prefix* is. That is the rule behind prefix sharing in chapter 07: there a block is found by a hash over everything before it.

# %% [markdown] tags=["deep-dive"]
# ## 9. Three mistakes that raise no error
# **Deep dive · 7 minutes**
#
# If the toy gave the right letter with a wrong mask, it would not be using the mask. So we break it on purpose: a wrong position offset, the first row of a square mask for a late query, and left padding (filler tokens in front, so that texts of a batch are equally long) whose positions are counted in two ways.

# %% tags=["deep-dive", "predict", "widget", "nbval-ignore-output"]
predict("How many of these three mistakes raise an error?", unit="mistakes", key="01-errors")

# %% tags=["deep-dive"]
from kvlab.model.toy_mistakes import MISTAKES

wrongs = []
for make in MISTAKES[:3]:  # the fourth is not about positions or masks
    mistake = make()
    outcome = mistake.right.prediction, mistake.wrong.prediction
    wrongs.append((mistake.name, mistake.what, mistake.first_wrong, *outcome))
table(["mistake", "what was done", "first wrong", "right", "it says"], wrongs)

# %% [markdown] tags=["deep-dive"]
# All run to the end. The column "first wrong" names the first part of the step that is off. A wrong offset spoils the embedding itself, a square mask only what is visible. In the padded row the new token is right and the *old keys* are wrong.

# %% tags=["deep-dive"]
silent = sum(right != got for *_, right, got in wrongs)
remark = f"All {silent} run to the end and say a wrong letter."
reveal("01-errors", len(wrongs) - silent, remark=remark)

# %% [markdown] tags=["deep-dive"]
# Now the same three in the real Llama, on the first text. **How to read it:** each number is the first layer, from 1, in which keys or values differ from the right run; a dash means that they never do.

# %% tags=["deep-dive", "device", "nbval-ignore-output"]
from kvlab.model.llama_mistakes import LLAMA_MISTAKES

made = [make(loaded, text) for make in LLAMA_MISTAKES]
broken = [[str(layer or "-") for layer in mistake.breaks.values()] for mistake in made]
words = [(mistake.right_token.strip(), mistake.wrong_token.strip()) for mistake in made]
rows = [(m.name, *b, *w) for m, b, w in zip(made, broken, words, strict=True)]
table(["mistake", *made[0].breaks, "right", "it says"], rows, caption=repr(loaded))

# %% tags=["deep-dive"]
assert broken == [["-", "-", "1", "2"], ["-", "-", "2", "2"], ["1", "-", "2", "2"]]
print("logits off by more than 1:", [mistake.logit_difference > 1 for mistake in made])

# %% [markdown] tags=["deep-dive"]
# The **wrong offset** turns the new key by a wrong angle at once; its values suffer one layer later. The **square mask** leaves layer 1's key and value intact and spoils what attention mixes. **Left padding** is the sly one: all prompt keys are turned too far *together*, RoPE sees only distances, and no value changes. The break comes when the next token counts differently.
#
# The cure for all three is one source of positions: the length of the cache, per row.

# %% [markdown]
# ## Your turn
# **Practice · as long as you like**
#
# Each check says "not answered yet" until you replace the `...`. Hints and worked solutions are folded; open as much as you need.

# %% [markdown]
# **01-a Attention of one query over the cache.** Write `attend(query, keys, values)`: the output of one attention head for the newest token. `query` has shape (head_dim,), `keys` and `values` (kv_len, head_dim). Numpy only; roughly 4 lines.


# %% tags=["exercise"]
def attend(query, keys, values):
    # your code
    ...


# %% tags=["check"]
from kvlab.course import check, hint_steps, solution

check("01-a", attend)

# %% tags=["hint"]
hint_steps("01-a")

# %% tags=["solution"]
solution("01-a")

# %% [markdown]
# **01-b The position of what comes next.** Write `new_positions(q_len, cached_tokens)`: the list of 0-based positions of `q_len` new tokens when the cache already holds `cached_tokens`. Roughly 1 line.


# %% tags=["exercise"]
def new_positions(q_len, cached_tokens):
    # your code
    ...


# %% tags=["check"]
check("01-b", new_positions)

# %% tags=["hint"]
hint_steps("01-b")

# %% tags=["solution"]
solution("01-b")

# %% [markdown]
# **01-c The shape of one layer's keys.** SmolLM2-135M has 30 layers, 9 query heads, 3 KV heads, head_dim 64 and hidden size 576. One sequence: a prompt of 12 tokens, then 5 tokens emitted. What shape do the keys of one layer have? Answer with a tuple (batch, KV heads, positions, head_dim).

# %% tags=["exercise"]
answer_c = ...

# %% tags=["check"]
check("01-c", answer_c)

# %% tags=["hint"]
hint_steps("01-c")

# %% tags=["solution"]
solution("01-c")

# %% [markdown]
# **01-d A causal mask that knows of the cache.** Write `causal_mask(q_len, cached_tokens)`: a boolean array of shape (q_len, cached_tokens + q_len), True where a new query (row) may see a key (column). Roughly 2 lines of numpy.


# %% tags=["exercise"]
def causal_mask(q_len, cached_tokens):
    # your code
    ...


# %% tags=["check"]
check("01-d", causal_mask)

# %% tags=["hint"]
hint_steps("01-d")

# %% tags=["solution"]
solution("01-d")

# %% [markdown]
# ## What interviewers listen for
# **Practice · as long as you like**
#
# Say your answer aloud first, then open it.
#
# <details><summary><b>Why does the cache hold keys and values, but no queries?</b></summary>
# Scope first: a causal decoder whose text only grows. Each step asks with the newest query alone, and that query reads the keys and values of all positions. An old query has done its work; nobody asks with it again.
# </details>
#
# <details><summary><b>Why may old keys and values be used again at all?</b></summary>
# The causal mask keeps every position, in every layer, independent of later tokens. So a row written once can't be changed by what comes after. It fails for attention that looks both ways, an edited prefix, shifted positions, other weights.
# </details>
#
# <details><summary><b>A prompt of P tokens, N emitted: how many positions are cached?</b></summary>
# P + N - 1. The prefill writes P and emits the first token; each of the N - 1 further steps writes one. The last emitted token is not consumed. Without this answer every capacity estimate is off by one from the start, and every rollback too.
# </details>

# %% [markdown]
# ## Claims you will meet
# **Practice · as long as you like**
#
# Statements from public pages. Give your verdict first: holds, only if, or wrong. The card then shows what was recomputed and the condition.

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.claims import claim_quiz

claim_quiz("only-q-changes")

# %% tags=["widget", "nbval-ignore-output"]
claim_quiz("attend-all-previous")

# %% [markdown]
# One more; think of the limits at the end of section 5.

# %% tags=["widget", "nbval-ignore-output"]
claim_quiz("kv-of-token-1-never-changes")

# %% [markdown]
# ## Self-check
# **Practice · as long as you like**
#
# Six questions. "Fresh numbers" asks the same one anew, so you can practise until the numbers no longer matter.

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.quiz import quiz

names = ["written-by-a-step", "positions-held", "why-not-queries"]
names += ["cache-shape", "why-old-stay-valid", "same-word-elsewhere"]
quiz(ids=[f"01-{name}" for name in names], seed=1)

# %% [markdown]
# ## Takeaways
# **The answer.** The step that consumes D leaves one key and one value per layer and KV head, those of D. They may be used again because no later token can change them, as long as everything before them stays as it was.

# %%
decode = run[1].last
written = f"row {decode.rows_written[0]} for {decode.letter}, which predicts {decode.prediction}"
takeaways = [
    ("A step writes the row of the token it consumes", written),
    ("P + N - 1 positions are held", f"{token_forwards_cached(3, 4)} for P = 3, N = 4"),
    ("Past layer 1 a key stands for its whole prefix", f"edit seen in layer {first_keys[-1]}"),
]
table(["takeaway", "computed here"], takeaways)

# %% [markdown] tags=["instructor"]
# <details><summary><b>For instructors</b></summary>
# Stop the player at position 3 and ask what is thrown away when the step ends. Most say "the old keys". Then ask for the number of positions after four emitted letters and count hands for six and seven.
# </details>

# %% [markdown]
# ## Sources
# - Vaswani et al. 2017, [Attention Is All You Need](https://arxiv.org/abs/1706.03762): queries, keys, values and the mask.
# - Shazeer 2019, [Fast Transformer Decoding: One Write-Head is All You Need](https://arxiv.org/abs/1911.02150): decoding with stored keys and values.
# - Su et al. 2021, [RoFormer: Enhanced Transformer with Rotary Position Embedding](https://arxiv.org/abs/2104.09864): RoPE.
# - Hugging Face, [how a cache works in transformers](https://huggingface.co/docs/transformers/main/cache_explanation).
# - The real model: [SmolLM2-135M-Instruct](https://huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct).
#
# **Next:** [02 Recompute or remember](02_recompute_or_remember.ipynb) counts what this one row a step saves.
