"""`kvlab quality`: what a smaller cache costs, measured against the full one on the same task."""

import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kvlab.arithmetic.units import format_bytes
from kvlab.cli_flags import in_flags
from kvlab.errors import InvalidArgument

if TYPE_CHECKING:
    from kvlab.model.quality import Bench, Quality
    from kvlab.model.quality_layers import LayerError

NAMES = (
    "preallocated, fp8, fp8-e5m2, int8, int4, int2, window, sinks, h2o, keynorm, keydiff,"
    " expected, random, offloaded, paged"
)

FLAGS = {
    "name_or_path": "--model",
    "q_group_size": "--group",
    "residual_length": "--residual",
    "num_sink_tokens": "--sinks",
    "symmetric": "--zero-point/--symmetric",
    "num_sequences": "--sequences",
}
SAME = "model cache budget granularity tier option seed tokens facts device dtype layers"
FLAGS |= {name: f"--{name}" for name in SAME.split()}
"""What Python calls an argument, and the flag that gives it."""

Text, Number = str | None, int | None
Budget = Annotated[Text, typer.Option(help="Tokens kept, or a share such as 25%.")]
Granularity = Annotated[
    Text, typer.Option(help="What shares a scale: tensor, token, group, channel.")
]
Group = Annotated[Number, typer.Option(help="Numbers that share a scale.")]
Residual = Annotated[Number, typer.Option(help="Newest tokens left exact.")]
Sinks = Annotated[Number, typer.Option(help="First tokens kept, or left exact.")]
ZeroPoint = Annotated[
    bool | None, typer.Option("--zero-point/--symmetric", help="A zero point beside each scale?")
]
Tier = Annotated[Text, typer.Option(help="Where an offloaded cache rests: host or disk.")]
Others = Annotated[
    list[str] | None, typer.Option("--option", help="Any other option: --option recent=8.")
]
Seed = Annotated[int, typer.Option(help="Draws the sequences, and what random keeps.")]
Tokens = Annotated[Number, typer.Option(help="Tokens read: 512 if left out, 256 of prose.")]
Facts = Annotated[Number, typer.Option(help="Facts to recall: 32 if left out; none in prose.")]
Sequences = Annotated[Number, typer.Option(help="Sequences: 16 if left out, 4 of prose.")]
Device = Annotated[Text, typer.Option(help="cpu or cuda; else what is there.")]
Dtype = Annotated[Text, typer.Option(help="float32, bfloat16 or float16.")]
Layers = Annotated[bool, typer.Option("--layers", help="Show the error layer by layer.")]


def quality(
    model: Annotated[str, typer.Option(help="tiny, smollm2, a model folder or a hub id.")],
    cache: Annotated[str, typer.Option(help=f"One of {NAMES}.")],
    budget: Budget = None,
    granularity: Granularity = None,
    group: Group = None,
    residual: Residual = None,
    sinks: Sinks = None,
    zero_point: ZeroPoint = None,
    tier: Tier = None,
    others: Others = None,
    seed: Seed = 0,
    tokens: Tokens = None,
    facts: Facts = None,
    sequences: Sequences = None,
    device: Device = None,
    dtype: Dtype = None,
    layers: Layers = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure recall, loss and logits through a cache, against those through the full one."""
    named = {
        "budget": budget,
        "granularity": granularity,
        "q_group_size": group,
        "residual_length": residual,
        "num_sink_tokens": sinks,
        "symmetric": None if zero_point is None else not zero_point,
        "tier": tier,
    }
    options = {name: value for name, value in named.items() if value is not None}
    task = {"tokens": tokens, "facts": facts, "seed": seed, "num_sequences": sequences}
    with in_flags(FLAGS):
        if layers and as_json:
            raise InvalidArgument("layers", True, "is a table to look at; leave out --json")
        options |= read_options(others or [])
        bench = open_bench(model, cache, options, task, device, dtype)
        result, errors = measure_with_bar(bench, cache, options, layers)
    print(json.dumps(result.to_dict(), indent=2)) if as_json else show(result, errors)


def read_options(given: list[str]) -> dict[str, Any]:
    """Return `name=value` texts as options; a value is a number, true, false, null or a word.

    >>> read_options(["key_format=exact", "exact_prefill=false", "nbits=4"])
    {'key_format': 'exact', 'exact_prefill': False, 'nbits': 4}
    """
    options = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise InvalidArgument("option", text, "must be name=value")
        try:
            options[name] = json.loads(value)
        except ValueError:
            options[name] = value
    return options


def open_bench(
    model: str,
    cache: str,
    options: dict[str, Any],
    task: dict[str, int | None],
    device: str | None,
    dtype: str | None,
) -> "Bench":
    """Load the model and draw its task, once the cache's name and options are known to be right."""
    from kvlab.cache.build import check_options

    check_options(cache, options, capacity=1)
    from kvlab.model.load import load_model
    from kvlab.model.quality import Bench

    return Bench(load_model(model, device=device, dtype=dtype), **task)


def measure_with_bar(
    bench: "Bench", cache: str, options: dict[str, Any], layers: bool
) -> "tuple[Quality, list[LayerError]]":
    """Measure with a progress bar on stderr; the layers only where they are asked for."""
    from tqdm import tqdm

    from kvlab.model.quality_layers import layer_errors

    bench.rehearse(cache, **options)  # what can't be is said before the bar
    one_batch = 1 + bench.task.steps
    total = 2 * bench.passes + (one_batch if layers else 0)
    with tqdm(total=total, desc=f"{bench.loaded.name}, {cache}", leave=False) as bar:
        watch: Callable[[], object] = bar.update
        result = bench.measure(cache, watch=watch, **options)
        errors = layer_errors(bench, cache, watch=watch, **options) if layers else []
    return result, errors


def show(result: "Quality", errors: "list[LayerError]") -> None:
    """Print the numbers as a table, and one more for the layers."""
    from rich.console import Console
    from rich.table import Table

    table = Table(
        title=f"{result.model}: {result.label}, {result.tokens:,} tokens", show_header=False
    )
    for name, value in rows(result):
        table.add_row(name, value)
    console = Console()
    console.print(table)
    if errors:
        console.print(layer_table(errors))
    if result.seed is not None:
        print(
            f"seed {result.seed}; the same seed gives the same numbers, but for the time",
            file=sys.stderr,
        )


def rows(result: "Quality") -> list[tuple[str, str]]:
    """Return the lines of the table: a name, and a value with its unit."""
    held, full = (format_bytes(n) for n in (result.cache_bytes, result.full_cache_bytes))
    recall = [] if result.recall is None else [("recall", f"{result.recall:.2%}")]
    return [
        *recall,
        ("loss", f"{result.loss:.4f} nats a token, perplexity {result.perplexity:.2f}"),
        ("logit KL to the full cache", f"{result.kl:.3g} nats a token"),
        ("same first choice", f"{result.top1:.2%} of the tokens"),
        ("cache of one sequence", held),
        ("the full one", f"{full} in {result.dtype}, {result.saving:.2f} times as much"),
        ("speed", f"{result.tokens_per_second:,.0f} tokens/s in decode, all sequences together"),
    ]


def layer_table(errors: "list[LayerError]") -> Any:
    """Return the relative errors of the layers as a table."""
    from rich.table import Table

    table = Table(title="Relative error of each layer, given exact input")
    for column in ("layer", "keys", "values", "attention"):
        table.add_column(column, justify="right")
    for error in errors:
        shares = (error.keys, error.values, error.attention)
        table.add_row(str(error.layer), *("-" if x is None else f"{x:.3%}" for x in shares))
    return table
