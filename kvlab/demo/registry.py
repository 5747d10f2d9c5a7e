"""Every demo in one place: its chapter, minutes, what it makes plain, and where its stages are."""

from difflib import get_close_matches

from kvlab.demo.stages import Demo
from kvlab.errors import InvalidArgument

DEMOS: tuple[Demo, ...] = (
    Demo(
        "race", "00", 5, "the same text, with and without a cache, and what it costs",
        "Recompute against cache", "kvlab.demo.show_race:RACE",
    ),
    Demo(
        "follow-token", "01", 5, "what one token leaves behind, and what is thrown away",
        "Follow one token", "kvlab.demo.show_work:FOLLOW",
    ),
    Demo(
        "recompute", "02", 6, "how much work a cache saves in a step and in an answer",
        "Recompute or remember", "kvlab.demo.show_work:RECOMPUTE",
    ),
    Demo(
        "memory-bar", "03", 8, "how many users fit: guess first, then the bar",
        "The memory bar", "kvlab.demo.show_memory:BAR",
    ),
    Demo(
        "memory-formula", "03", 5, "which factors the bytes of a token have, and which not",
        "Every factor of the formula", "kvlab.demo.show_memory:FORMULA",
    ),
    Demo(
        "roofline", "04", 6, "why reading a prompt is fast and writing is slow",
        "Prefill and decode on a roofline", "kvlab.demo.show_work:ROOFLINE",
    ),
    Demo(
        "kv-heads", "05", 6, "what fewer KV heads save, and where the saving ends",
        "Fewer KV heads", "kvlab.demo.show_heads:HEADS",
    ),
    Demo(
        "allocators", "06", 6, "where the bytes go that nobody uses",
        "Contiguous against paged", "kvlab.demo.show_allocators:ALLOCATORS",
    ),
    Demo(
        "block-size", "06", 4, "how large a block should be",
        "How large a block?", "kvlab.demo.show_allocators:BLOCK_SIZE",
    ),
    Demo(
        "prefix", "07", 5, "when two requests can use the same keys and values",
        "Prefix sharing", "kvlab.demo.show_allocators:PREFIX",
    ),
    Demo(
        "bits", "08", 5, "what fewer bits cost, and why the scale matters more than the bits",
        "The cache in fewer bits", "kvlab.demo.show_models:BITS",
    ),
    Demo(
        "eviction", "09", 6, "which tokens a cache may forget, and what it then gets wrong",
        "Windows, sinks and eviction", "kvlab.demo.show_models:EVICTION",
    ),
    Demo(
        "serving", "10", 6, "what happens when the memory is full",
        "Serving under pressure", "kvlab.demo.show_serving:SERVING",
    ),
    Demo(
        "planner", "11", 8, "how many users fit on which machine, and what binds",
        "Size a deployment", "kvlab.demo.show_serving:PLANNER",
    ),
    Demo(
        "questions", "13", 10, "whether the room can say it: questions with fresh numbers",
        "Questions for the room", "kvlab.demo.show_questions:QUESTIONS",
    ),
)  # fmt: skip
"""In the order of the chapters."""


def find_demo(name: str) -> Demo:
    """Return a demo by its name.

    Raises `InvalidArgument` with the closest name, or with all of them.

    >>> find_demo("race").chapter
    '00'
    >>> find_demo("rase")
    Traceback (most recent call last):
    kvlab.errors.InvalidArgument: demo='rase': no such demo; did you mean race?
    """
    names = [demo.name for demo in DEMOS]
    if name in names:
        return DEMOS[names.index(name)]
    close = get_close_matches(name, names, n=1)
    hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(names)}"
    raise InvalidArgument("demo", name, f"no such demo; {hint}")
