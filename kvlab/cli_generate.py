"""`kvlab generate`: write text with a real model and a chosen cache, and say what it took."""

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kvlab.arithmetic.checks import whole_number
from kvlab.arithmetic.units import format_bytes
from kvlab.errors import InvalidArgument

if TYPE_CHECKING:
    from kvlab.model.decode import Step
    from kvlab.model.load import LoadedModel


def generate(
    prompt: Annotated[str, typer.Option(help="The text to go on from, taken as it is.")],
    model: Annotated[str, typer.Option(help="smollm2, a model folder or a hub id.")] = "smollm2",
    max_new_tokens: Annotated[int, typer.Option(help="Most tokens to write, N.")] = 40,
    cache: Annotated[
        str | None,
        typer.Option(help="none, growing (the default), preallocated, fp8, int4, offloaded."),
    ] = None,
    fast: Annotated[
        bool, typer.Option("--fast", help="Take the fast path, with a preallocated cache.")
    ] = False,
    device: Annotated[str | None, typer.Option(help="cpu or cuda; else what is there.")] = None,
    dtype: Annotated[str | None, typer.Option(help="float32, bfloat16 or float16.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, no stream.")] = False,
) -> None:
    """Write text greedily after a raw prompt; no chat template. Stops early at a stop token."""
    cache = cache or ("preallocated" if fast else "growing")
    check_request(prompt, max_new_tokens, cache, fast)
    from kvlab.model.load import load_model

    loaded = load_model(model, device=device, dtype=dtype)
    if fast:
        loaded = with_fast_path(loaded)
    show = _ignore if as_json else _show_piece
    report = generate_report(loaded, prompt, max_new_tokens, cache, show)
    if as_json:
        print(json.dumps(report, indent=2))
    else:
        print(flush=True)
        print(_summary(report), file=sys.stderr)


def check_request(prompt: str, max_new_tokens: int, cache: str, fast: bool = False) -> None:
    """Refuse what no model could do, before a model is fetched or loaded."""
    if not prompt:
        raise InvalidArgument("prompt", prompt, "is empty: give 1 token or more")
    whole_number("max_new_tokens", max_new_tokens)
    from kvlab.cache import make_cache

    make_cache(cache, num_layers=1, capacity=1)
    if fast and cache != "preallocated":
        raise InvalidArgument(
            "cache", cache, "--fast writes in place: preallocated, or leave it out"
        )


def with_fast_path(loaded: "LoadedModel") -> "LoadedModel":
    """Return the same with a model that takes the fast path, and say on stderr which one."""
    from kvlab.model.fast_llama import FastLlama

    model = FastLlama(loaded.model)
    print(f"kvlab: {model.describe()}", file=sys.stderr)
    return replace(loaded, model=model)


def generate_report(
    loaded: "LoadedModel",
    prompt: str,
    max_new_tokens: int,
    cache: str,
    show: "Callable[[str], None]",
) -> dict[str, Any]:
    """Write the text, pass each new piece to `show`, and return what `--json` prints.

    `text` is the new text alone. `tokens_per_second` is new tokens over all seconds, prefill
    included. Bytes are those after the last step.
    """
    from kvlab.model.decode import generate as steps_of

    ids = loaded.encode(prompt)[0].tolist()
    options = {"max_new_tokens": max_new_tokens, "cache": cache, "stop_ids": loaded.stop_ids}
    steps: list[Step] = []
    pieces = []
    for piece in stream_text(loaded, steps_of(loaded.model, ids, **options), steps):
        pieces.append(piece)
        show(piece)
    seconds = [step.seconds for step in steps]
    return {
        "text": "".join(pieces),
        "prompt_tokens": len(ids),
        "new_tokens": len(steps),
        "token_forwards": steps[-1].total_token_forwards,
        "cache_bytes": steps[-1].cache_bytes,
        "cache_reserved_bytes": steps[-1].cache_reserved_bytes,
        "prefill_seconds": seconds[0],
        "decode_seconds": sum(seconds[1:]),
        "tokens_per_second": len(steps) / sum(seconds),
        "device": str(loaded.device),
        "dtype": str(loaded.dtype).removeprefix("torch."),
    }


def stream_text(
    loaded: "LoadedModel", running: "Iterator[Step]", steps: "list[Step]"
) -> Iterator[str]:
    """Yield the text as it comes, whole characters only, and keep every step in `steps`."""
    from kvlab.model.stream import TextStream

    stream = TextStream(loaded.decode)
    for step in running:
        steps.append(step)
        yield stream.push(step.token_id)
    yield stream.close()


def _ignore(piece: str) -> None:
    """Show nothing."""


def _show_piece(piece: str) -> None:
    print(piece, end="", flush=True)


def _summary(report: dict[str, Any]) -> str:
    held = format_bytes(report["cache_bytes"])
    reserved = format_bytes(report["cache_reserved_bytes"])
    return (
        f"{report['new_tokens']} tokens after {report['prompt_tokens']},"
        f" {report['tokens_per_second']:.1f} a second"
        f" (prefill {report['prefill_seconds']:.2f} s, decode {report['decode_seconds']:.2f} s)"
        f" on {report['device']} in {report['dtype']};"
        f" {report['token_forwards']:,} token-forwards;"
        f" cache {held} held, {reserved} reserved"
    )
