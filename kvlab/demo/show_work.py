"""Demos of the first chapters: one token, the work of a step and of an answer, the roofline."""

from kvlab.demo.stages import Preset, Stage, put
from kvlab.widgets.follow_token import follow_token
from kvlab.widgets.recompute_or_remember import recompute_or_remember
from kvlab.widgets.roofline_explorer import roofline_explorer
from kvlab.widgets.work_explorer import work_explorer

FOLLOW = (
    Stage(
        "the toy",
        follow_token,
        "step",
        (
            Preset(
                "What is thrown away?",
                put(heads=1, step=3),
                "The cache now holds {n[cache now holds]}. When this step ends, what is thrown "
                "away: keys, values or the query?",
            ),
            Preset(
                "The first token",
                put(heads=1, step=0),
                "Nothing is there to read yet: {n[projected this step]} is projected, and the "
                "cache holds {n[cache now holds]} afterwards.",
            ),
            Preset(
                "The last token",
                put(heads=1, step=7),
                "Still {n[projected this step]} is projected; without a cache it would be "
                "{n[without a cache]}. The cache holds {n[cache now holds]}.",
            ),
            Preset(
                "Two heads",
                put(heads=2, step=3),
                "The same numbers in {v[heads]}: keys of shape "
                "{n[keys in the cache (heads, positions, head_dim)]}. Heads are counted before "
                "they are multiplied.",
            ),
        ),
    ),
)
RECOMPUTE = (
    Stage(
        "one step",
        recompute_or_remember,
        "step",
        (
            Preset(
                "The fourth token",
                put(step=3),
                "Vectors made in this step: recompute {n[recompute: vectors computed]}, remember "
                "{n[remember: vectors computed]}. What will it be at the last token?",
            ),
            Preset(
                "The last token",
                put(step=7),
                "Vectors: recompute {n[recompute: vectors computed]}, remember still "
                "{n[remember: vectors computed]}. Scores: {n[recompute: scores computed]}, and "
                "{n[remember: scores computed]}, for a query still reads all that was kept.",
            ),
        ),
    ),
    Stage(
        "a whole answer",
        work_explorer,
        "new_tokens",
        (
            Preset(
                "A real answer",
                put(model="meta-llama/Llama-3.1-70B", prompt_tokens=2048, new_tokens=1024),
                "{v[model]}, {v[prompt_tokens]} tokens in, {v[new_tokens]} out: "
                "{n[work, uncached]} without a cache, {n[work, cached]} with one: a ratio of "
                "{n[FLOP ratio]}.",
            ),
            Preset(
                "One token: no gain",
                put(prompt_tokens=2048, new_tokens=1),
                "For a single new token the ratio is {n[FLOP ratio]}: there is nothing to use "
                "the cache for.",
            ),
            Preset(
                "Where attention takes over",
                put(prompt_tokens=131_072, new_tokens=1024),
                "From position {n[attention overtakes at position]} on attention over the past "
                "costs more than the rest of a step: a cache does not make long texts free.",
            ),
        ),
    ),
)
ROOFLINE = (
    Stage(
        "the roofline",
        roofline_explorer,
        "batch",
        (
            Preset(
                "One user",
                put(context=8192, batch=1),
                "Reading {v[context]} tokens waits for {n[prefill waits for]}, "
                "writing one for {n[decode waits for]}: {n[weights moved a step]} of weights "
                "for each token, {n[throughput]}.",
            ),
            Preset(
                "Share the weights",
                put(context=1024, batch=64),
                "{v[batch]} requests share one reading of the weights: {n[throughput]}, and a "
                "step takes {n[TPOT, whole batch]}.",
            ),
            Preset(
                "Doubling stops helping",
                put(context=8192, batch=64),
                "Each request brings a cache of its own: {n[cache moved a step]} a step beside "
                "{n[weights moved a step]}. Cache passes weights at "
                "{n[cache overtakes weights at]}, and the disc stops near "
                "{n[decode stops climbing near]}.",
            ),
            Preset(
                "Does it fit?",
                put(context=8192, batch=256),
                "{n[weights and cache]}. {n[throughput]} are a bound, not a promise.",
            ),
        ),
    ),
)
