"""`kvlab size`: how many bytes a model's cache needs, from its config alone."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kvlab.arithmetic.reader import read_model
from kvlab.arithmetic.request import RequestSize, size_request
from kvlab.arithmetic.storage import ModelStorage
from kvlab.cli_tokens import token_count
from kvlab.errors import InvalidArgument

if TYPE_CHECKING:
    from kvlab.arithmetic.accounting import Accountings


def size(
    context: Annotated[int, typer.Option(parser=token_count, help="Tokens of each request.")],
    model: Annotated[str | None, typer.Option(help="A name in the catalogue.")] = None,
    config: Annotated[str | None, typer.Option(help="Path of a config.json.")] = None,
    batch: Annotated[int, typer.Option(help="Requests at once.")] = 1,
    cache_dtype: Annotated[str, typer.Option(help="fp32, bf16, fp8, int4, q8_0 ...")] = "bf16",
    tp: Annotated[int, typer.Option(help="Tensor-parallel ranks.")] = 1,
    pp: Annotated[int, typer.Option(help="Pipeline stages.")] = 1,
    source_length: Annotated[int, typer.Option(help="Encoder or image positions.")] = 0,
    max_batched_tokens: Annotated[
        int | None, typer.Option(help="Tokens of a step of vLLM's, which windows pay for; 8192.")
    ] = None,
    include_mtp: Annotated[bool, typer.Option("--mtp", help="Count MTP layers too.")] = False,
    hub: Annotated[bool, typer.Option("--hub", help="Ask the hub for an unknown name.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Size the cache of a model: payload and reservation, whole and on the tightest rank."""
    storage = read_chosen(model, config, include_mtp=include_mtp, allow_hub=hub)
    amounts = {"context": context, "batch": batch, "tp": tp, "pp": pp}
    sized = size_request(storage, **amounts, cache_dtype=cache_dtype, source_length=source_length)
    report = size_report(storage, sized)
    if as_json:
        print(json.dumps(report, indent=2))
        return
    from kvlab.arithmetic.accounting import MAX_BATCHED_TOKENS, accountings

    batched = MAX_BATCHED_TOKENS if max_batched_tokens is None else max_batched_tokens
    charged = accountings(
        storage,
        **amounts,
        cache_type=cache_dtype,
        source_length=source_length,
        max_batched_tokens=batched,
    )
    report["notes"] += [*_length_notes(storage, context), *_batch_notes(storage, batched)]
    title = f"{batch:,} x {context:,} tokens in {cache_dtype}, tp {tp}, pp {pp}"
    _show(report, charged, title)


def read_chosen(
    model: str | None, config: str | None, *, include_mtp: bool = False, allow_hub: bool = False
) -> ModelStorage:
    """Return the model named by exactly one of the two options."""
    if (model is None) == (config is None):
        raise InvalidArgument("model", model, "give either --model NAME or --config FILE")
    if config is not None:
        return read_model(Path(config).expanduser(), include_mtp=include_mtp)
    return read_model(str(model), include_mtp=include_mtp, allow_hub=allow_hub)


def _length_notes(model: ModelStorage, context: int) -> list[str]:
    longest = model.max_seq_len
    if longest is None or context <= longest:
        return []
    return [f"{context:,} tokens asked for: the model was made for {longest:,} positions"]


def _batch_notes(model: ModelStorage, batched: int) -> list[str]:
    if all(group.window is None for group in model.groups):
        return []
    said = f"vLLM charges a window with the {batched:,} tokens of a step on top"
    return [f"{said} (--max-batched-tokens)"]


def size_report(model: ModelStorage, sized: RequestSize) -> dict[str, Any]:
    """Return what `--json` prints.

    >>> model = read_model("llama-3.1-70b")
    >>> report = size_report(model, size_request(model, context=8192))
    >>> report["bytes_per_token"], report["kv_bytes"], report["layers"][0]["count"]
    (327680, 2684354560, 80)
    """
    return {
        "model": model.name,
        "bytes_per_token": sized.bytes_per_token,
        "bytes_per_token_per_rank": sized.bytes_per_token_per_rank,
        "kv_bytes": sized.kv_bytes,
        "state_bytes": sized.state_bytes,
        "cross_bytes": sized.cross_bytes,
        "index_bytes": sized.index_bytes,
        "request_bytes": sized.request_bytes,
        "request_bytes_per_rank": sized.request_bytes_per_rank,
        "reserved_bytes": sized.reserved_bytes,
        "layers": [
            {
                "kind": group.kind,
                "count": group.count,
                "elements_per_token": group.elements_per_token,
                "window": group.window,
            }
            for group in model.groups
        ],
        "notes": list(sized.notes),
    }


def _show(report: dict[str, Any], charged: "Accountings", title: str) -> None:
    from rich.console import Console
    from rich.markup import escape

    console = Console()
    console.print(_layer_table(report))
    console.print(_byte_table(report, charged, title))
    for note in [*report["notes"], *charged.notes]:
        console.print(f"  - {escape(note)}")


def _layer_table(report: dict[str, Any]) -> Any:
    from rich.table import Table

    table = Table(title=f"{report['model']}: what its layers store")
    table.add_column("kind")
    for column in ("layers", "elements per token", "window"):
        table.add_column(column, justify="right")
    for group in report["layers"]:
        window = "" if group["window"] is None else f"{group['window']:,}"
        cells = f"{group['count']:,}", f"{group['elements_per_token']:,}", window
        table.add_row(group["kind"], *cells)
    return table


BEFORE_WINDOWS = ", before any window is full"
BYTE_ROWS = {
    "bytes_per_token": f"one more token{BEFORE_WINDOWS}",
    "bytes_per_token_per_rank": "one token, on the tightest rank",
    "kv_bytes": "keys, values and latents",
    "state_bytes": "recurrent and conv states",
    "cross_bytes": "cross-attention",
    "index_bytes": "indexer keys",
    "request_bytes": "payload of all requests",
    "request_bytes_per_rank": "payload on the tightest rank",
    "reserved_bytes": "reservation: every layer in full",
}


def _byte_table(report: dict[str, Any], charged: "Accountings", title: str) -> Any:
    from rich.table import Table

    from kvlab.arithmetic.units import format_bytes

    table = Table(title=title)
    table.add_column("")
    table.add_column("size", justify="right")
    table.add_column("bytes", justify="right")
    has_windows = any(group["window"] for group in report["layers"])
    for key, label in BYTE_ROWS.items():
        if _is_shown(report, key):
            said = label if has_windows else label.removesuffix(BEFORE_WINDOWS)
            table.add_row(said, format_bytes(report[key]), f"{report[key]:,}")
    table.add_section()
    engines = {"vLLM": charged.vllm_bytes, "llama.cpp": charged.llama_cpp_bytes}
    for engine, amount in engines.items():
        if amount is not None:
            label = f"{engine} charges, tightest rank"
            table.add_row(label, format_bytes(amount), f"{amount:,}")
    return table


def _is_shown(report: dict[str, Any], key: str) -> bool:
    """Leave out what is nothing, and what only repeats the row it is a part or a share of."""
    same = {
        "bytes_per_token_per_rank": "bytes_per_token",
        "kv_bytes": "request_bytes",
        "request_bytes_per_rank": "request_bytes",
        "reserved_bytes": "request_bytes",
    }
    if key in same:
        return bool(report[key]) and report[key] != report[same[key]]
    return bool(report[key]) or key in ("bytes_per_token", "request_bytes")
