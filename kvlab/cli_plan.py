"""`kvlab plan`: does a model fit on these GPUs, for how many users, and what to change."""

import json
import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from kvlab.arithmetic.plan_checks import gib_to_bytes
from kvlab.arithmetic.plan_report import plan_report
from kvlab.arithmetic.plan_search import gpus_needed
from kvlab.arithmetic.sizing import Plan
from kvlab.arithmetic.sizing import plan as make_plan
from kvlab.cli_plan_tables import show_plan
from kvlab.cli_tokens import token_count
from kvlab.errors import InvalidArgument, KvlabError


def plan(
    model: Annotated[str, typer.Option(help="A name in the catalogue, a config.json, a hub id.")],
    context: Annotated[
        int,
        typer.Option(parser=token_count, help="Tokens of an admitted request."),
    ],
    gpu: Annotated[str | None, typer.Option(help="A GPU of the catalogue, such as H100.")] = None,
    gpus: Annotated[int | None, typer.Option(help="GPUs in all.")] = None,
    tp: Annotated[int | None, typer.Option(help="Tensor-parallel ranks of a replica.")] = None,
    pp: Annotated[int, typer.Option(help="Pipeline stages of a replica.")] = 1,
    dp: Annotated[int | None, typer.Option(help="Replicas.")] = None,
    output: Annotated[int, typer.Option(help="Tokens reserved for a request to grow.")] = 0,
    users: Annotated[int | None, typer.Option(help="Requests at once, over all replicas.")] = None,
    cache_dtype: Annotated[str, typer.Option(help="bf16, fp8 ...")] = "bf16",
    weights_dtype: Annotated[str, typer.Option(help="bf16, fp8, int4 ...")] = "bf16",
    utilization: Annotated[float, typer.Option(help="Share of the memory in use.")] = 0.9,
    overhead_gib: Annotated[float, typer.Option(help="Activations and buffers, each GPU.")] = 0.0,
    gpu_bytes: Annotated[int | None, typer.Option(help="Memory of one GPU, in bytes.")] = None,
    block_size: Annotated[int, typer.Option(help="Tokens of a block.")] = 16,
    ttft_ms: Annotated[float | None, typer.Option(help="Target: first token.")] = None,
    tpot_ms: Annotated[float | None, typer.Option(help="Target: each token after it.")] = None,
    parameters: Annotated[int | None, typer.Option(help="Weights, when unknown.")] = None,
    source_length: Annotated[int, typer.Option(help="Encoder or image positions.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Plan a deployment: what each rank holds, what binds, and what the next change buys."""
    given: dict[str, Any] = dict(locals())
    given.pop("as_json")
    given["overhead_bytes"] = gib_to_bytes("overhead_gib", given.pop("overhead_gib"))
    for target in ("ttft", "tpot"):
        given[f"{target}_target"] = _seconds(f"{target}_ms", given.pop(f"{target}_ms"))
    made, said = _planned(given)
    report = plan_report(made)
    report["notes"] = [*said, *report["notes"]]
    _name_folder(report, model)
    print(json.dumps(report, indent=2)) if as_json else show_plan(report)


def _planned(given: dict[str, Any]) -> tuple[Plan, list[str]]:
    """The plan of a layout, or of the fewest GPUs for the users when no layout was given."""
    laid_out = any(given[name] is not None for name in ("gpus", "tp", "dp")) or given["pp"] != 1
    if given["users"] is not None and not laid_out:
        asked = {key: x for key, x in given.items() if key not in ("gpus", "tp", "pp", "dp")}
        try:
            found = gpus_needed(**asked, allow_hub=True)
        except InvalidArgument:
            raise
        except KvlabError as error:
            return make_plan(**given, allow_hub=True), [f"{error}; one GPU is shown"]
        return found, ["no layout was given: the fewest GPUs that serve the users are shown"]
    return make_plan(**given, allow_hub=True), []


def _name_folder(report: dict[str, Any], model: str) -> None:
    """A config on disk has no name that an engine knows: the command serves its folder."""
    path = Path(model).expanduser()
    if not report["command"] or not path.exists():
        return
    folder = str(path if path.is_dir() else path.parent)
    named = f"vllm serve {shlex.quote(report['model'])} "
    if report["command"].startswith(named):
        rest = report["command"].removeprefix(named)
        report["command"] = f"vllm serve {shlex.quote(folder)} {rest}"
        report["notes"].append("the command serves the folder of the config: put the weights there")


def _seconds(argument: str, milliseconds: float | None) -> float | None:
    if milliseconds is not None and not 0 < milliseconds < float("inf"):
        raise InvalidArgument(argument, milliseconds, "must be a finite number above 0")
    return None if milliseconds is None else milliseconds / 1000
