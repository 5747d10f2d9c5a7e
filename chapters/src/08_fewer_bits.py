# %% [markdown]
# # 08 The cache in fewer bits
#
# [Open in Colab](https://colab.research.google.com/github/kvlab/kvlab/blob/main/chapters/08_fewer_bits.ipynb)
#
# **The question.** How few bits will do, and who notices?

# %% [markdown]
# **After this chapter you can**
#
# - encode a number in FP8 by hand, and say what a scale and a zero point are for;
# - count a quantised cache to the byte, scales and exact tokens included;
# - measure who notices, say why keys and values want different scales, and list what to check before production.
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

chapter_line("08")

# %% [markdown]
# **Core** 15 minutes, **deep dives** 20 minutes. You need the bytes of a token from chapter 03.
#
# Two models come along, both on the CPU in float32: `tiny`, whose recall is one exact number, and SmolLM2 for real language. Where SmolLM2 is not at hand, `tiny` takes its place too.

# %% tags=["setup", "device", "nbval-ignore-output"]
from kvlab.model.load import load_model
from kvlab.model.weights import is_available
from kvlab.widgets.predict import predict, reveal

tiny = load_model("tiny", device="cpu", dtype="float32")
real = load_model("smollm2", device="cpu", dtype="float32") if is_available("smollm2") else tiny
real

# %% [markdown]
# <a id="eight-bit-floats"></a>
# ## 1. A number in eight bits
# **Core · 4 minutes**
#
# FP8 is a floating-point number with 8 bits: a sign, an exponent, a fraction. E4M3 spends 4 bits on the exponent and 3 on the fraction, E5M2 spends 5 and 2. There are 256 bytes, so there can't be more than 256 numbers.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict("0.3 goes into E4M3 and comes back. As which number?", key="08-fp8")

# %% [markdown]
# By hand. Which power of two is below 0.3? That is the exponent; a **bias** is added so that it is never negative. How far above it, in eighths? That is the fraction, rounded. Sign, exponent and fraction side by side are the byte. Numbers below the smallest exponent have no leading 1: they go down to 0 in even steps.


# %%
import math


def to_e4m3(number):
    size = min(abs(number), 448)  # clamped to the largest number there is
    power = max(math.floor(math.log2(size)), -6) if size else -6
    eighths = round(size / 2**power * 8)  # 8 to 16 of them, or fewer where no leading 1 fits
    if eighths == 16:
        power, eighths = power + 1, 8
    exponent = power + 7 if eighths >= 8 else 0  # 7 is the bias
    return (number < 0) << 7 | exponent << 3 | eighths % 8


byte = to_e4m3(0.3)
f"{byte:08b}"

# %%
import torch

from kvlab.arithmetic.float8_values import float8_table, largest_float8

draw = torch.Generator().manual_seed(8)
numbers = torch.randn(4096, generator=draw) * 10 ** torch.linspace(-4, 3, 4096)
cast = numbers.clamp(-448, 448).to(torch.float8_e4m3fn).view(torch.uint8)
assert [to_e4m3(x) for x in numbers.tolist()] == cast.tolist()
table_e4m3 = float8_table("e4m3")
print(f"{len(numbers):,} numbers: every byte equal to torch's cast")
off = "The nearest numbers are 0.28125, 0.3125 and nothing between."
reveal("08-fp8", table_e4m3[byte].value, remark=off)

# %% [markdown]
# All 256, each in the place of its byte. **How to read it:** the upper half is positive. Read a row from left to right and the numbers grow in size; one row further they are about four times as large, and so are the steps between them. The lower half is the same with a minus sign.

# %%
from kvlab.figures.float8_map import float8_map, float8_rulers

float8_map("e4m3", mark=byte, title="The 256 bytes of E4M3; 0.3 becomes the outlined one")

# %% [markdown]
# The palest cells have no leading 1. There is no infinity: hatched are the two bytes that are no number. Now both formats on one ruler. **How to read it:** a stroke is one of the positive numbers, each mark below is 16 times the one before.

# %%
for kind in ("e4m3", "e5m2"):
    between = sum(1 <= entry.value < 2 for entry in float8_table(kind))
    largest = largest_float8(kind)
    print(f"{kind}: {between} numbers from 1 up to 2, the largest {largest:,.0f}")
over = torch.tensor(70_000.0).to(torch.float8_e5m2).item()
print(f"70,000 cast to e5m2 without a clamp: {over}")
float8_rulers(title="Precision or range: 8 steps for each power of two, or 4")

# %% [markdown]
# One infinite key spoils every score that it meets. So a cache divides by a **scale** first, such that its largest number lands on the largest of the format, and clamps what is still larger.
#
# <a id="integers"></a>
# ## 2. Integers with a scale
# **Core · 2 minutes**
#
# Four bits have 16 codes. Spread them evenly from the smallest to the largest number of a group: one step is the **scale**, and the code that means 0 is the **zero point**.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "A group reaches from -1 to 2 and is kept in INT4. How far off can a number be?", key="08-step"
)

# %%
from kvlab.cache.quantized_tensor import dequantize, quantize


def quantise(group, nbits):
    low, high = group.amin(-1, keepdim=True), group.amax(-1, keepdim=True)
    scale = (high - low) / (2**nbits - 1)
    zero = (-low / scale).round()
    codes = ((group / scale).round() + zero).clamp(0, 2**nbits - 1)
    return codes, scale, zero


def back(codes, scale, zero):
    return (codes - zero) * scale


_, scale, _ = quantise(torch.tensor([-1.0, 0.0, 2.0]), 4)
reveal("08-step", f"{scale.item() / 2:g}", remark="Half a step: 3 / 15 / 2.")

# %% [markdown]
# Is it what the package does? It rounds a scale up to FP16, because that is how it is stored. So the two may differ by a thousandth of a step for each code, or where a number lies between two codes.

# %%
group = torch.randn(1, 2, 32, 64, generator=draw)  # (batch, num_kv_heads, tokens, head_dim)
codes, scale, zero = quantise(group, 4)
stored, recipe = quantize(group, "int4", granularity="token", symmetric=False)
theirs, ours = dequantize(stored, recipe), back(codes, scale, zero)
assert torch.allclose(stored.scale.float(), scale, rtol=1e-3)
same = ((theirs - ours).abs() < 0.02 * scale).float().mean()
assert same > 0.99 and ((theirs - group).abs() <= 0.502 * scale).all()
assert (back(*quantise(torch.tensor([0.0, 0.7, 3.1]), 4))[0] == 0).item()
print(
    f"{group.numel():,} numbers, {stored.codes.nbytes:,} bytes of codes: no error above half a step"
)

# %% [markdown]
# A number that was 0 is 0 again: that is why the zero point is a whole number. Symmetric formats leave it out and spend codes on both sides of 0 alike.
#
# <a id="bytes-with-scales"></a>
# ## 3. What scales weigh
# **Core · 3 minutes**
#
# Scales and zero points are stored, too. Llama 3.1 8B takes 128 KiB a token in 16 bit; what is it in INT4?

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "INT4, groups of 64 numbers, a scale and a zero point of 16 bits each: how many times smaller than 16 bit?",
    key="08-int4",
)

# %% [markdown]
# Bits of a number = bits of its code + bits of scale and zero point / numbers that share them.

# %%
from kvlab.arithmetic.quantized_bytes import bits_per_element, compression, quantized_bytes
from kvlab.figures.tables import table

llama = {"num_kv_heads": 8, "head_dim": 128}
choices = {
    "fp8, one scale a tensor": ("fp8", {}),
    "int8, a scale for 128": ("int8", {}),
    "int4, groups of 128": ("int4", {"granularity": "group", "q_group_size": 128}),
    "int4, groups of 64": ("int4", {"granularity": "group", "q_group_size": 64}),
    "int4, groups of 32": ("int4", {"granularity": "group", "q_group_size": 32}),
}
rows = []
for name, (form, options) in choices.items():
    bits = bits_per_element(form, head_dim=128, **options)
    exact = [
        compression(form, tokens=8192, residual_length=r, **llama, **options) for r in (0, 128)
    ]
    rows.append((name, f"{bits:g}", *(f"{ratio:.3f}x" for ratio in exact)))
header = ["format", "bits a number", "times smaller", "with 128 newest exact, of 8,192"]
ratios = {row[0]: row[2:] for row in rows}
table(header, rows, numeric=[1, 2, 3], caption="Llama 3.1 8B, against 16 bit")

# %%
assert ratios["int4, groups of 64"] == ("3.556x", "3.419x")
reveal("08-int4", "3.56x", remark="4 + 32 / 64 = 4.5 bits. INT4 is not a quarter.")

# %% [markdown]
# A formula is a promise. Here is what a real cache holds, SmolLM2's shape with 8,192 tokens in one layer, packed two codes to a byte: codes, scales, zero points and exact tokens.

# %% tags=["device"]
from kvlab.cache.quantized import QuantizedLayer

states = torch.randn(1, 3, 8192, 64, generator=draw, dtype=torch.float32).half()
for form in ("fp8", "int8", "int4", "int2"):
    layer = QuantizedLayer(format=form)
    layer.update(states, states)
    counted = quantized_bytes(form, num_kv_heads=3, head_dim=64, tokens=8192)
    assert layer.nbytes == counted
    print(f"{form:4} {layer.nbytes:9,} bytes held, {counted:9,} counted", end="")
    print(f", {2 * states.nbytes / layer.nbytes:.2f} times smaller")

# %% [markdown]
# INT8 has a scale for 64 numbers here, for that is SmolLM2's head_dim, and is a bit larger for it. The last two keep their newest 128 tokens in 16 bit. Now choose yourself. **How to read it:** the green bar is what is held, the dashed outline is 16 bit. Below it are real keys and values of one head of the model: pale, how large each channel is; full, what storing it gets wrong.

# %% tags=["device", "widget", "nbval-ignore-output"]
from kvlab.widgets.bits_explorer import bits_explorer

middle = real.model.config.num_layers // 2
bits_explorer(real, layer=middle)

# %% [markdown]
# Look at the small channels while you go from channel to tensor: they drown first. And shorten the context to 128 with 128 tokens exact: nothing is left to save.
#
# <a id="two-dtypes"></a>
# ## 4. Two dtypes, two choices
# **Core · 1 minute**
#
# A 4-bit model has no 4-bit cache. The dtype of the weights and that of the cache are chosen apart.

# %% tags=["device"]
from kvlab.cache import make_cache
from kvlab.model.phases import prefill
from kvlab.model.sample_text import sample_ids

for dtype in ("float32", "bfloat16"):
    model = load_model("tiny", device="cpu", dtype=dtype)
    weights = sum(p.nbytes for p in model.model.parameters())
    for name in ("growing", "fp8"):
        cache = make_cache(name, num_layers=2)
        prefill(model.model, sample_ids(model, 512), cache)
        print(f"weights {dtype:8} {weights:9,} B | cache {name:7} {cache.nbytes:7,} B")

# %% [markdown]
# The plain cache follows the model's dtype, the FP8 cache does not. In engines it is a flag of its own; its default, "auto", follows the model, and some checkpoints bring scales for their cache along.
#
# <a id="who-notices"></a>
# ## 5. Who notices
# **Core · 5 minutes**
#
# A model reads a context, then the rest through the quantised cache. We compare with the full cache: **KL**, how far the predicted probabilities moved (in nats a token); **top-1**, how often the likeliest token stayed the same; loss; and for `tiny` the recall.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "SmolLM2, INT4 for all, one scale for all keys of a layer: how often is the likeliest token still the same?",
    unit="%",
    key="08-notice",
)

# %% [markdown]
# The context is read once. Each cache is then filled with the same keys and values, and the model reads the rest in one pass: 32 facts in 512 tokens for `tiny`, prose of our own for SmolLM2.

# %% tags=["device"]
from kvlab.model.quality_logits import Tally
from kvlab.model.quality_task import make_task


class Reader:
    def __init__(self, loaded, **sizes):
        self.model, self.task = loaded.model, make_task(loaded, **sizes)
        self.layers, start = loaded.model.config.num_layers, self.task.context_len
        self.context, ids = make_cache("growing", num_layers=self.layers), self.task.input_ids
        prefill(self.model, ids[:, :start], self.context)
        self.rest = ids[:, start:]
        self.full = self.read(self.context.clone())

    @torch.no_grad()
    def read(self, cache):
        return self.model(self.rest, cache=cache)


readers = {"tiny": Reader(tiny, num_sequences=4), real.name: Reader(real, num_sequences=2)}
steps = {name: f"{r.rest.numel()} tokens read through each cache" for name, r in readers.items()}
steps

# %% [markdown]
# A measurement fills a new cache and compares. No exact tokens are kept, unless we say so.


# %% tags=["device", "nbval-ignore-output"]
def measure(reader, form, **options):
    options = {"residual_length": 0} | options
    cache, tally = make_cache(form, num_layers=reader.layers, **options), Tally()
    for place, layer in enumerate(reader.context.layers):
        cache.update(*layer.held(), place)
    tally.add(reader.task, reader.full, reader.read(cache))
    return tally


first = measure(readers["tiny"], "fp8")
print(f"tiny, FP8: recall {first.right / first.graded:.1%}, KL {first.kl / first.steps:.3f}")

# %% [markdown]
# Now integers of 8, 4 and 2 bits with four ways to share a scale, and both FP8 formats with one scale a tensor. A bar tells how far it is.

# %% tags=["device", "nbval-ignore-output"]
from kvlab.widgets.waiting import with_progress

GRAINS = {"tensor": {}, "token": {}, "group": {"q_group_size": 32}, "channel": {"q_group_size": 32}}
runs = [(f"int{n}", {"granularity": g, **more}) for n in (8, 4, 2) for g, more in GRAINS.items()]
runs += [("fp8", {}), ("fp8-e5m2", {})]
found = {}
for form, options in with_progress(runs, total=len(runs), doing="measuring"):
    for name, reader in readers.items():
        found[name, form, options.get("granularity")] = measure(reader, form, **options)
coarse, fine = (found[real.name, "int4", grain] for grain in ("tensor", "channel"))
fp8 = found["tiny", "fp8", None]
assert coarse.kl > 2 * fine.kl and fp8.right == fp8.graded
reveal("08-notice", f"{coarse.same_top / coarse.steps:.1%}", measured=True)

# %% tags=["device", "nbval-ignore-output"]
rows, name = [], real.name
for reader, key in ((readers["tiny"], "tiny"), (readers[name], name)):
    found[key, "full", None] = same = Tally()
    same.add(reader.task, reader.full, reader.full)
for form, options in [("full", {}), *runs]:
    grain = options.get("granularity")
    own, other = found["tiny", form, grain], found[name, form, grain]
    tally = [f"{own.right / own.graded:.1%}", f"{own.kl / own.steps:.3f}"]
    tally += [f"{other.kl / other.steps:.4f}", f"{other.same_top / other.steps:.1%}"]
    tally += [f"{other.loss / other.graded:.3f}"]
    rows.append((f"{form}, {grain or 'tensor'}", *tally))
rows[0] = ("the full cache", *rows[0][1:])
header = ["format, a scale for each", "recall, tiny", "KL, tiny"]
header += [f"KL, {name}", f"top-1, {name}", f"loss, {name}"]
table(header, rows, numeric=[1, 2, 3, 4, 5], caption="As bits and granularity move, CPU, float32")

# %% [markdown]
# The same as a picture. **How to read it:** further left is a smaller cache, scales included; lower is closer to the full cache. Each line joins 2, 4 and 8 bits.

# %% tags=["device", "nbval-ignore-output"]
from kvlab.figures.curves import Axis, Series, curve_chart

looks = {"tensor": ("wasted", "dotted"), "token": ("value", "dashed")}
looks |= {"group": ("query", "solid"), "channel": ("key", "solid")}
lines, dim = [], real.model.config.head_dim
for grain, more in GRAINS.items():
    points = []
    for n in (2, 4, 8):
        tally = found[real.name, f"int{n}", grain]
        bits = bits_per_element(f"int{n}", head_dim=dim, granularity=grain, **more)
        points.append((bits, max(tally.kl / tally.steps, 1e-9)))
    lines.append(Series(grain, *zip(*points, strict=True), *looks[grain]))
x, y = Axis("bits a number, scales included"), Axis("KL, nats a token", log=True)
curve_chart(lines, x=x, y=y, height=220, title=f"Who shares a scale, {real.name}")

# %% [markdown]
# Recall alone would have told you that INT4 is free: `tiny` still recalls its facts, while its probabilities have moved. The popular rule "4 bits cost little" depends on the scales: with one a tensor the likeliest token is another far more often than with one for each channel or group, and even there it is another now and then. INT2 is broken with one scale and hurt with many. (`tiny` has head_dim 32, so its groups of 32 are its tokens.)
#
# <a id="outlier-channels"></a>
# ## 6. Channels that stand out
# **Deep dive · 6 minutes**
#
# Why does it matter who shares a scale? Look at what is stored: the largest |K| of each channel, and the largest |V|, over 256 tokens.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "In how many of K's channels is the largest key more than four times the median of its head?",
    unit="%",
    key="08-outliers",
)

# %% tags=["deep-dive", "device", "nbval-ignore-output"]
from kvlab.model.key_outliers import key_outliers

ids = readers[real.name].task.input_ids[:1]
sides = {part: key_outliers(real.model, ids, part=part) for part in ("keys", "values")}
for part, side in sides.items():
    channels = f"{len(side.above(4))} of {side.largest.size:,} channels"
    print(f"{part:6}: {channels} above 4 medians; the largest number {side.largest.max():.1f}")
share = len(sides["keys"].above(4)) / sides["keys"].largest.size
reveal("08-outliers", f"{share:.1%}", measured=True)

# %% [markdown] tags=["deep-dive"]
# The head with the channel that stands out furthest, keys above, values below. **How to read it:** a bar is a channel, the dashed line the median.

# %% tags=["deep-dive", "device", "nbval-ignore-output"]
from kvlab.figures.channel_map import Channels, channel_map

first = sides["keys"].above(2)[0]
head, bars = (first.layer - 1, first.kv_head), []
for part, side in sides.items():
    median, worst = side.median[head], side.worst[head]
    words = f"median {median:.2f}, worst {worst:.1f}x"
    sizes, name = side.largest[head].tolist(), f"largest |{part[0].upper()}|"
    bars.append(Channels(name, sizes, part[:-1], line=median, words=words))
channel_map(bars, title=f"{real.name}, layer {first.layer}, KV head {first.kv_head}")

# %% [markdown] tags=["deep-dive"]
# **Keys.** One scale for a whole token must reach its largest channel. Few of the 16 codes are then left for its small channels. In keys the same channels are large in every token. So give each **channel** a scale of its own: a large channel then spoils no other.
#
# **Values.** They have few such channels, and attention takes a weighted mean over tokens. With a scale for each **token**, an error of one token stays in that token.
#
# Keys by channel, values by token: that is the recipe of KIVI (see the sources). Does it hold here? All four combinations in INT4. A scale by token serves the 64 numbers of one head; a scale by channel serves 64 tokens, or one fewer where the first four are kept exact. **How to read it:** a smaller KL and a larger top-1 are closer to the full cache.


# %% tags=["deep-dive", "device", "nbval-ignore-output"]
def four_ways(sinks):
    for keys_by, values_by in ((k, v) for k in ("channel", "token") for v in ("token", "channel")):
        group = (256 - sinks) // 4  # tokens that share a scale by channel
        options = {"key_granularity": keys_by, "value_granularity": values_by}
        options |= {"key_q_group_size": group} if keys_by == "channel" else {}
        options |= {"value_q_group_size": group} if values_by == "channel" else {}
        tally = measure(readers[real.name], "int4", num_sink_tokens=sinks, **options)
        name = f"keys by {keys_by}, values by {values_by}"
        yield name, f"{tally.kl / tally.steps:.4f}", f"{tally.same_top / tally.steps:.1%}"


none_exact, four_exact = list(four_ways(0)), list(four_ways(4))
rows = [(*plain, *kept[1:]) for plain, kept in zip(none_exact, four_exact, strict=True)]
header = ["a scale shared", "KL", "top-1", "KL, first 4 exact", "top-1, first 4 exact"]
table(header, rows, numeric=[1, 2, 3, 4], caption=f"INT4 four ways, {real.name}, float32")

# %% [markdown] tags=["deep-dive"]
# Compare rows in the first column of KL. Keys by channel is the big gain. With keys by channel, values by channel do worse than values by token. But keep the first four tokens exact, and the difference is nearly gone. What is special about them? Look at how long the values of the first token are, beside those of a usual token in the same layer:

# %% tags=["deep-dive", "device", "nbval-ignore-output"]
context = readers[real.name].context
sizes = torch.stack([layer.held()[1][0].norm(dim=-1).mean(0) for layer in context.layers])
shorter = (sizes[:, 0] / sizes.median(dim=1).values).median()
print(f"values of the first token: {shorter:.2f} of the usual length, median over layers")

# %% [markdown] tags=["deep-dive"]
# They are small, and yet SmolLM2 pays most attention to its first token (chapter 09 shows it). By channel, the token shares each scale with larger neighbours, so its small values become coarse. And every query reads them. By token it has a scale of its own.
#
# Now **layer by layer**. The keys of a layer go into INT4 and come back; we divide the length of the difference by the length of the exact keys, and do the same with values. **How to read it:** solid is keys, dashed is values; lower is better.


# %% tags=["deep-dive", "device", "nbval-ignore-output"]
def layer_error(exact, grain):
    options = {"q_group_size": 64} if grain == "channel" else {}
    options |= {"granularity": grain, "residual_length": 0}
    layer = QuantizedLayer(format="int4", exact_prefill=False, **options)
    back_again, _ = layer.update(exact, exact)
    return float((back_again - exact).norm() / exact.norm())


lines = []
for place, (part, dash) in enumerate((("keys", "solid"), ("values", "dashed"))):
    for grain, role in (("token", "value"), ("channel", "key")):
        errors = [layer_error(layer.held()[place], grain) for layer in context.layers]
        name = f"{part} by {grain}"
        lines.append(Series(name, range(1, len(errors) + 1), errors, role, dash))
x, y = Axis("layer", full=True), Axis("relative error")
curve_chart(lines, x=x, y=y, height=200, title=f"INT4, layer by layer, {real.name}")

# %% [markdown] tags=["deep-dive"]
# <a id="residual"></a>
# ## 7. The newest tokens stay exact
# **Deep dive · 3 minutes**
#
# The newest tokens are read by all that follow. And a scale by channel is shared by a group of tokens, which must be whole before it can be quantised. So caches keep the newest tokens exact, at least R of them: the **residual**.
#
# Which tokens come back bit for bit? 300 tokens come in three pieces, into a cache with R = 32 whose keys are quantised by channel, in groups of 64 tokens.

# %% tags=["deep-dive", "device", "nbval-ignore-output"]
layer = QuantizedLayer(format="int4", residual_length=32)
for piece in states[:, :, :300].split((200, 1, 99), dim=2):
    seen, _ = layer.update(piece, piece)  # what attention would read
exact = (seen == states[:, :, :300]).all(dim=(0, 1, 3))  # one answer for each token
kept = 300 - layer.num_quantized[0]
assert exact[-kept:].all() and not exact[:-kept].any()
assert kept == 300 - (300 - 32) // 64 * 64  # as many whole groups as leave 32
print(f"{kept} newest tokens exact, {300 - kept} quantised: {(300 - kept) // 64} groups of 64")

# %% [markdown] tags=["deep-dive"]
# More than 32, for the fifth group is not whole yet. So "R" means R up to R + group - 1.
#
# And what does a residual buy? `tiny` in INT2, the format that hurt most:

# %% tags=["deep-dive", "device", "nbval-ignore-output"]
for length in (0, 32, 128):
    tally = measure(readers["tiny"], "int2", residual_length=length)
    print(f"R = {length:3}: recall {tally.right / tally.graded:.1%}", end="")
    print(f", KL {tally.kl / tally.steps:.2f}")

# %% [markdown] tags=["deep-dive"]
# A little recall, and a smaller KL. In short contexts the residual is most of the cache, so ask for the length before you believe a ratio.
#
# <a id="frozen-scales"></a>
# ## 8. One scale, frozen or never measured
# **Deep dive · 4 minutes**
#
# One scale for a whole tensor has to be known before the tokens come. Some caches take it from the tokens of the first call, and then **freeze** it. A number that comes later and is larger than the scale reaches is **clamped**: cut down to the largest one that fits.
#
# We take 256 tokens of prose and the keys of the model's middle layer. The first few tokens fix an FP8 scale, then the others come.

# %% tags=["predict", "widget", "nbval-ignore-output"]
predict(
    "The scale is frozen by the first token alone. What share of the 255 later tokens has at least one number in its keys that is clamped?",
    unit="%",
    key="08-frozen",
)

# %% tags=["deep-dive", "device", "nbval-ignore-output"]
keys = context.layers[middle].held()[0][:1]  # (1, num_kv_heads, 256 tokens, head_dim)


def frozen_after(count):
    first, later = keys[:, :, :count], keys[:, :, count:]
    layer = QuantizedLayer(format="fp8", exact_prefill=False)
    layer.update(first, first)  # here the scale is taken, and frozen
    seen, _ = layer.update(later, later)
    too_large = (later.abs() > first.abs().max()).any(dim=(0, 1, 3))  # one answer a token
    return too_large.float().mean().item(), ((seen - keys).norm() / keys.norm()).item()


clamped = {}
for count in (1, 4, 16, 64):
    clamped[count], error = frozen_after(count)
    print(f"frozen after {count:2}: {clamped[count]:6.1%} of later tokens clamped", end="")
    print(f", relative error of all keys {error:.1%}")
reveal("08-frozen", f"{clamped[1]:.1%}", measured=True)

# %% [markdown] tags=["deep-dive"]
# A first call of one token, such as a lone start token, freezes a scale that fits nothing else.
#
# Some engines measure no scale at all: they leave it at 1.0 unless you calibrate. FP8 is a float, so that costs little, until numbers pass the end of the format. We store the same keys, then keys 50 times as large, as another model may have them; each with a measured scale and with 1.0.

# %% tags=["deep-dive", "device", "nbval-ignore-output"]
for factor in (1, 50):
    larger = keys * factor
    for scale in (None, 1.0):
        layer = QuantizedLayer(format="fp8", exact_prefill=False, key_scale=scale)
        seen, _ = layer.update(larger, larger)
        error = ((seen - larger).norm() / larger.norm()).item()
        words = "measured" if scale is None else f"{scale:g}"
        print(f"largest |K| {larger.abs().max():6.1f}, scale {words:8}: error {error:.1%}", end="")
        print(f", largest read {seen.abs().max():.1f}")

# %% [markdown] tags=["deep-dive"]
# Nothing warns you: no infinity, no error, only large keys that all end at 448.
#
# <a id="speed"></a>
# ## 9. Fewer bytes, more work
# **Deep dive · 4 minutes**
#
# A decode step waits for what it reads, so fewer bytes should be faster. But codes have to be unpacked. One query against one layer of 4,096 tokens, on this CPU, where attention reads float32:

# %% tags=["deep-dive", "timing", "nbval-ignore-output"]
from time import perf_counter

import torch.nn.functional as F

rows, states = [], torch.randn(1, 3, 4096, 64, generator=draw)
query = torch.randn(1, 9, 1, 64, generator=draw)
for form in ("exact", "fp8", "int8", "int4", "int2"):
    layer = QuantizedLayer(residual_length=0, key_format=form, value_format=form)
    layer.update(states, states)
    times = []
    for _ in range(7):
        started = perf_counter()
        k, v = layer.read()
        unpacked = perf_counter()
        F.scaled_dot_product_attention(query, k, v, enable_gqa=True)
        times.append((unpacked - started, perf_counter() - unpacked))
    read, attend = (sorted(column)[3] * 1e3 for column in zip(*times, strict=True))
    rows.append((form, f"{layer.nbytes:,}", f"{read:.2f}", f"{attend:.2f}"))
header = ["format", "bytes held", "ms to unpack", "ms to attend"]
table(header, rows, numeric=[1, 2, 3], caption="One layer, float32, middle of 7 runs")

# %% [markdown] tags=["deep-dive"]
# Bytes go down, work goes up: here unpacking writes everything out in float32 again, so no time is saved at all. On a GPU a fused kernel unpacks in registers, and then the bytes count.
#
# <a id="before-production"></a>
# ## 10. Before you switch it on
# **Deep dive · 3 minutes**
#
# FP8 for the cache is one flag. The vLLM project published what it found on 22 April 2026; the last row is from its documentation. **How to read it:** each row is one test, first with a 16-bit cache, then with FP8. *Needle in a haystack* and *MRCR* ask for facts hidden in a long text; *FA3* is the attention kernel (FlashAttention 3).

# %% tags=["deep-dive"]
from kvlab.course.fp8_reports import load_reports

reports = load_reports()
rows = [(report.what, report.before, report.after) for report in reports]
day, last = (f"{r.as_of:%d %B %Y}" for r in (reports[0], reports[-1]))
caption = f"Published {day}, last row read {last}; nothing of it measured here"
table(["what was tested", "16-bit cache", "FP8 cache"], rows, caption=caption)

# %% [markdown] tags=["deep-dive"]
# So validate, on your own stack:
#
# 1. **Your task, your lengths.** Retrieval at the longest context, not the average of short questions.
# 2. **KL or top-1 against 16 bit** on your prompts: it moves long before a score does.
# 3. **Scales.** Calibrated, or 1.0? Which layers, and how many numbers are clamped?
# 4. **Your kernel and GPU.** The same format was fine on one and broken on another.
# 5. **Speed at your context.** In short contexts 16 bit can be faster.
# 6. **A way back.** Sliding-window or sensitive layers can stay in 16 bit.

# %% [markdown]
# ## Your turn
# **Practice · as long as you like**
#
# Each check says "not answered yet" until you replace the `...`. Hints and worked solutions are folded; open as much as you need.
#
# **08-a What INT4 really takes.** Llama 3.1 8B has 32 layers, 8 KV heads and head_dim 128. Its cache holds 8,192 tokens in INT4, in groups of 64 with an FP16 scale and an FP16 zero point each; the newest 128 tokens stay in 16 bit. How many MiB?

# %% tags=["exercise"]
answer_a = ...

# %% tags=["check"]
from kvlab.course import check, hint_steps, solution

check("08-a", answer_a)

# %% tags=["hint"]
hint_steps("08-a")

# %% tags=["solution"]
solution("08-a")

# %% [markdown]
# **08-b A scale for each channel.** `keys` is an array of shape (tokens, channels). Write `through(keys, nbits)`: the keys as they come back after quantising with codes from 0 to 2^nbits - 1, where each channel has its own scale and its own whole zero point. Leave scales unrounded. Roughly 5 lines.


# %% tags=["exercise"]
def through(keys, nbits):
    # your code
    ...


# %% tags=["check"]
check("08-b", through)

# %% tags=["hint"]
hint_steps("08-b")

# %% tags=["solution"]
solution("08-b")

# %% [markdown]
# **08-c A byte by hand.** Which byte does E4M3 keep for 21.3, with scale 1? Answer with the eight bits as text, such as "0 0000 000". The same byte in hexadecimal, such as "0x00", will do: each of its two digits stands for four bits.

# %% tags=["exercise"]
answer_c = ...

# %% tags=["check"]
check("08-c", answer_c)

# %% tags=["hint"]
hint_steps("08-c")

# %% tags=["solution"]
solution("08-c")

# %% [markdown]
# **08-d Find the error.** A page says: Llama 3 8B (32 layers, 8 KV heads, head_dim 128) at 32,768 tokens goes from 2,048 to 1,024 MB with FP8, one scale a tensor. The ratio is right, both sizes are not. How many MiB does the FP8 cache take?

# %% tags=["exercise"]
answer_d = ...

# %% tags=["check"]
check("08-d", answer_d)

# %% tags=["hint"]
hint_steps("08-d")

# %% tags=["solution"]
solution("08-d")

# %% [markdown]
# ## What interviewers listen for
# **Practice · as long as you like**
#
# Say your answer aloud first, then open it.
#
# <details><summary><b>What does a quantised cache save?</b></summary>
# Scope first: which format, what shares a scale, how many tokens stay exact, at which context. FP8 with one scale a tensor halves it; INT4 in groups of 64 with scale and zero point is 4.5 bits, 3.56 times smaller, less with a residual.
# </details>
#
# <details><summary><b>Why keys by channel and values by token?</b></summary>
# Keys have channels that are large for every token; a scale across channels is ruled by them. Values don't, and a token's error should stay with that token.
# </details>
#
# <details><summary><b>Is it faster?</b></summary>
# Fewer bytes to read, more work to unpack. It pays where a decode step waits for the cache and the kernel unpacks on the way: long contexts, large batches. Measure your own.
# </details>

# %% [markdown]
# ## Claims you will meet
# **Practice · as long as you like**
#
# Statements from public pages. Give your verdict first: holds, only if, or wrong. The card then shows what was recomputed and the condition.

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.claims import claim_quiz

claim_quiz("int4-quarters")

# %% tags=["widget", "nbval-ignore-output"]
claim_quiz("fp8-always-good-default")

# %% [markdown]
# Two about sizes.

# %% tags=["widget", "nbval-ignore-output"]
claim_quiz("int8-halves")

# %% tags=["widget", "nbval-ignore-output"]
claim_quiz("fp8-2048-to-1024")

# %% [markdown]
# ## Self-check
# **Practice · as long as you like**
#
# Six questions. "Fresh numbers" asks the same one anew, so you can practise until the numbers no longer matter.

# %% tags=["widget", "nbval-ignore-output"]
from kvlab.widgets.quiz import quiz

names = "bits halves-of-e4m3 who-shares frozen two-dtypes short-context"
quiz(ids=[f"08-{name}" for name in names.split()], seed=8)

# %% [markdown]
# ## Takeaways
# **The answer.** Eight bits did, on both models: FP8 and INT8 left recall as it was and moved loss little. Four bits keep the facts, too, but the likeliest token changes now and then even with a scale for each channel, group or token, and far more often where one scale serves a whole tensor. Two bits are noticed. The first to notice is the KL, long before a score is.


# %% tags=["device", "nbval-ignore-output"]
kl = {grain: found[real.name, "int4", grain].kl / coarse.steps for grain in GRAINS}
rules = (
    "Scales and exact tokens are bytes, too",
    "Who shares a scale matters as much as the bits",
    "A frozen scale clamps what comes later",
)
words = (
    "INT4 in groups of 64: {}; with 128 of 8,192 exact: {}".format(*ratios["int4, groups of 64"]),
    f"KL of INT4: one a tensor {kl['tensor']:.3f}, one a channel {kl['channel']:.3f}",
    f"frozen by the first token: {clamped[1]:.0%} of later tokens; by 64: {clamped[64]:.0%}",
)
takeaways = list(zip(rules, words, strict=True))
table(["takeaway", "computed here"], takeaways)

# %% [markdown] tags=["instructor"]
# <details><summary><b>For instructors</b></summary>
# Open the explorer at INT4, one scale a tensor, and let the room find the cheapest setting whose error of keys is below 5 %. Then ask why the same setting isn't the best one for values. Common wrong answer: "INT4 is a quarter"; let them count the zero points.
# </details>

# %% [markdown]
# ## Sources
# - Micikevicius et al. 2022, [FP8 formats for deep learning](https://arxiv.org/abs/2209.05433): E4M3 and E5M2.
# - Liu et al. 2024, [KIVI](https://arxiv.org/abs/2402.02750): keys by channel, values by token, the newest tokens exact.
# - vLLM, [quantized KV cache](https://docs.vllm.ai/en/latest/features/quantization/quantized_kvcache/): flags, scales, capacity and speed; read 2026-11-30.
# - vLLM project, 22 April 2026, [the state of FP8 KV-cache](https://github.com/vllm-project/vllm-project.github.io/blob/main/_posts/2026-04-22-fp8-kvcache.md): where it holds and where to avoid it.
# - Hugging Face, [cache strategies](https://huggingface.co/docs/transformers/main/kv_cache): quantised caches in transformers.
#
# **Next:** 09 Windows, sinks and eviction asks which tokens a cache may forget.
