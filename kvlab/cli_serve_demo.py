"""`kvlab serve-demo`: many prompts through one small pool, live: who runs, waits and gives way."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kvlab.arithmetic.checks import whole_number
from kvlab.cli_flags import in_flags
from kvlab.errors import InvalidArgument

if TYPE_CHECKING:
    from kvlab.model.load import LoadedModel
    from kvlab.serving.engine import Answer, Engine
    from kvlab.serving.loop import ServingLoop
    from kvlab.serving.request import Request

OPTIONS = (
    "model prompt requests samples max_new_tokens block_size num_blocks preemption device dtype"
)
FLAGS = {name: "--" + name.replace("_", "-") for name in OPTIONS.split()}
FLAGS["name_or_path"] = "--model"
"""What Python calls an argument, and the flag that gives it."""

COMMON = "A short list of facts, each told in one plain sentence.\n"
PROMPTS = (
    "The capital of France is",
    "A library keeps its books on",
    "Water boils when",
    "Bread needs flour, salt and",
    "In the morning the fisherman",
    "The longest river in Africa is",
    "A bicycle has two wheels and",
    "The moon pulls at the sea, and so",
)


def serve_demo(
    model: Annotated[str, typer.Option(help="smollm2, tiny, a model folder or a hub id.")] = (
        "smollm2"
    ),
    prompt: Annotated[
        list[str] | None, typer.Option(help="A prompt; say it again for more. Else our own.")
    ] = None,
    requests: Annotated[int, typer.Option(help="Requests; they come back to the prompts.")] = 8,
    samples: Annotated[int, typer.Option(help="Answers to each prompt.")] = 1,
    max_new_tokens: Annotated[int, typer.Option(help="Most tokens of an answer.")] = 24,
    block_size: Annotated[int, typer.Option(help="Tokens of a block.")] = 8,
    num_blocks: Annotated[
        int | None, typer.Option(help="Blocks of the pool; else half of what all would fill.")
    ] = None,
    preemption: Annotated[str, typer.Option(help="recompute or swap.")] = "recompute",
    device: Annotated[str | None, typer.Option(help="cpu or cuda; else what is there.")] = None,
    dtype: Annotated[str | None, typer.Option(help="float32, bfloat16 or float16.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, no table.")] = False,
) -> None:
    """Serve a batch of prompts with a real model and a pool too small for all of them at once.

    The table shows each answer as it grows, and what the scheduler does. The same scheduler drives
    `kvlab simulate`.
    """
    from kvlab.model.load import load_model
    from kvlab.serving.engine import Engine
    from kvlab.serving.limits import Limits

    answers: dict[tuple[int, int], Answer] = {}
    with in_flags(FLAGS):
        for name, count in (("requests", requests), ("samples", samples)):
            whole_number(name, count)
        if any(not text for text in prompt or ()):
            raise InvalidArgument("prompt", "", "is empty: give 1 token or more")
        limits = Limits(preemption=preemption)
        loaded = load_model(model, device=device, dtype=dtype)
        asked = demo_requests(loaded, tuple(prompt or ()), requests, samples, max_new_tokens)
        pool = pool_size(asked, num_blocks, block_size)
        engine = Engine(loaded.model, num_blocks=pool, block_size=block_size, limits=limits)
        loop = engine.start(asked, answers)
    if as_json:
        loop.run()
        print(json.dumps(demo_report(loaded, engine, loop, asked, answers), indent=2))
    else:
        run_live(loaded, loop, asked, answers)


def demo_requests(
    loaded: "LoadedModel",
    prompts: tuple[str, ...],
    count: int,
    samples: int,
    max_new_tokens: int,
) -> "list[Request]":
    """Return `count` greedy requests, or drawn ones where each wants several samples."""
    from kvlab.model.sample_text import speaks_retrieval
    from kvlab.serving.request import Sampling
    from kvlab.serving.request import prompt as make_prompt

    if not prompts and speaks_retrieval(loaded):
        from kvlab.model.retrieval_language import make_sequences

        rows = make_sequences(count, seq_len=40, num_facts=2, seed=3).input_ids.tolist()
    else:
        texts = prompts or tuple(COMMON + words for words in PROMPTS)
        rows = [loaded.encode(texts[i % len(texts)])[0].tolist() for i in range(count)]
    return [
        make_prompt(
            number,
            row,
            max_new_tokens,
            num_samples=samples,
            stop_ids=frozenset(loaded.stop_ids),
            sampling=Sampling(0.8 if samples > 1 else 0.0, seed=number),
        )
        for number, row in enumerate(rows)
    ]


def pool_size(asked: "list[Request]", num_blocks: int | None, block_size: int) -> int:
    """Return the blocks of the pool: those asked for, or else a tight one."""
    size = whole_number("block_size", block_size)
    return tight_pool(asked, size) if num_blocks is None else whole_number("num_blocks", num_blocks)


def tight_pool(asked: "list[Request]", block_size: int) -> int:
    """Return half the blocks that all requests would fill together, but enough for each alone."""
    each = [-(-request.peak_tokens // block_size) for request in asked]
    wanted = sum(blocks * request.num_samples for blocks, request in zip(each, asked, strict=True))
    return max(*each, wanted // 2) if len(each) > 1 else max(each[0], wanted // 2)


def demo_report(
    loaded: "LoadedModel",
    engine: "Engine",
    loop: "ServingLoop",
    asked: "list[Request]",
    answers: "dict[tuple[int, int], Answer]",
) -> dict[str, Any]:
    """Return what `--json` prints: the answers, the times measured, and vLLM's metrics."""
    metrics, counts = loop.metrics, loop.scheduler.counts
    prompts = {request.request_id: request.prompt_ids for request in asked}
    return {
        "model": loaded.name,
        "num_blocks": engine.manager.num_blocks,
        "block_size": engine.manager.block_size,
        "requests_finished": metrics.requests_finished,
        "tokens_generated": counts.generation_tokens,
        "preemptions": counts.preemptions,
        "prefix_hit_tokens": counts.prefix_hit_tokens,
        "makespan_seconds": metrics.makespan,
        "ttft_seconds": metrics.ttft.summary(),
        "tpot_seconds": metrics.tpot.summary(),
        "metrics": metrics.as_vllm(loop.scheduler),
        "answers": [
            {
                "request": number,
                "sample": sample,
                "prompt": loaded.decode(prompts[number]),
                "text": loaded.decode(answer.token_ids),
                "end_reason": answer.end_reason,
                "error": answer.error,
            }
            for (number, sample), answer in sorted(answers.items())
        ],
    }


def run_live(
    loaded: "LoadedModel",
    loop: "ServingLoop",
    asked: "list[Request]",
    answers: "dict[tuple[int, int], Answer]",
) -> None:
    """Serve with a table that is drawn anew after every step."""
    from rich.live import Live

    from kvlab.cli_serve_table import serving_table

    with Live(serving_table(loaded, loop, asked, answers), auto_refresh=False) as live:
        while loop.step() is not None:
            live.update(serving_table(loaded, loop, asked, answers), refresh=True)
