"""The terminal command `kvlab`: a table of sub-commands, each read only when it is called.

Every error of kvlab's becomes one line on stderr and exit code 2; an interrupt becomes 130.
"""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import typer
from typer.core import TyperGroup

from kvlab.errors import KvlabError, is_out_of_memory

COMMANDS = {
    "doctor": "kvlab.cli_doctor:doctor",
    "fetch": "kvlab.cli_weights:fetch",
    "generate": "kvlab.cli_generate:generate",
    "flops": "kvlab.cli_flops:flops",
    "size": "kvlab.cli_size:size",
    "explain-log": "kvlab.cli_explain_log:explain_log_command",
    "plan": "kvlab.cli_plan:plan",
    "quality": "kvlab.cli_quality:quality",
    "simulate": "kvlab.cli_simulate:simulate",
    "serve-demo": "kvlab.cli_serve_demo:serve_demo",
    "probe": "kvlab.cli_probe:probe_command",
    "bench": "kvlab.cli_bench:bench",
    "audit": "kvlab.cli_audit:audit",
    "quiz": "kvlab.cli_quiz:quiz",
    "demo": "kvlab.cli_demo:demo",
    "train-tiny": "kvlab.cli_train:train_tiny",
    "uptrain": "kvlab.cli_uptrain:uptrain",
}
"""Command -> "module:function" (or a typer app). Such a module imports no torch at its top."""

INVALID, INTERRUPTED = 2, 130


class LazyGroup(TyperGroup):
    """A command group that imports a command's module when the command is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the commands whose module is there, in the order of the table."""
        return [name for name, target in COMMANDS.items() if _is_present(target)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return one command, importing its module now; None when there is no such command."""
        target = COMMANDS.get(cmd_name)
        if target is None or not _is_present(target):
            return None
        module, attribute = target.split(":")
        found = getattr(import_module(module), attribute)
        if not isinstance(found, typer.Typer):
            found, function = typer.Typer(add_completion=False), found
            found.command(name=cmd_name)(function)
        command = typer.main.get_command(found)
        command.name = cmd_name
        return command


app = typer.Typer(cls=LazyGroup, add_completion=False, no_args_is_help=True)


@app.callback()
def kvlab() -> None:
    """Compute, measure and judge the transformer KV cache."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code; no traceback for a known error."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code: 0, 2 for bad input, 130 when interrupted."""
    try:
        code = app(args=list(arguments), prog_name="kvlab", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except KvlabError as error:
        return _say(str(error), INVALID)
    except BrokenPipeError:  # the reader of our output went away, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if is_out_of_memory(error):
            return _say("out of memory: try a smaller model, fewer tokens or bfloat16", INVALID)
        if not hasattr(error, "format_message"):  # not a usage error of typer's: a bug, show it
            raise
        return _say(error.format_message() or "no command given; see kvlab --help", INVALID)
    if code == INTERRUPTED:
        return _say("stopped", INTERRUPTED)
    return code if isinstance(code, int) else 0


def _is_present(target: str) -> bool:
    return find_spec(target.split(":")[0]) is not None


def _say(message: str, code: int) -> int:
    print("kvlab:", " ".join(message.split()), file=sys.stderr)
    return code


if __name__ == "__main__":
    main()
