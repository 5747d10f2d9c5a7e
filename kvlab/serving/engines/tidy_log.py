"""An engine's output as it is kept: no idle lines, none of this machine's folders."""

import re
import tempfile
from collections.abc import Iterable
from pathlib import Path

FIRST_LINES, LAST_LINES, LONGEST = 100, 40, 1200
SAYS_NOTHING = (
    "Route: ", "safetensors checkpoint shards", " HTTP/1.1", "llama_model_loader: - ",
    "print_info: ", "FutureWarning", "wrapper = lookup", "if hasattr(value", "DeprecationWarning",
    "warnings.warn", "load_tensors: ", "slot   ", "slot  ", "DP group leader", "DP rank 0",
    "libtcmalloc", "libiomp", "ulimit", "[Gloo]", "Triton not available", "Available routes are",
)  # fmt: skip
BANNER = re.compile(r"[█▄▀]")
OWN_PYTHON = re.compile(r"[\w./~-]*/\.venv-")
TEMPORARY = re.compile(rf"(?:/tmp|{re.escape(tempfile.gettempdir())})/(?=[\w-])")
HOME = re.compile(rf"{re.escape(str(Path.home()))}(?=[/\s'\",]|$)")


def tidy(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the lines that say something, shortened, with folders of this machine taken out.

    >>> tidy([f"model {Path.home()}/x", "Route: /health", ""])
    ('model ~/x',)
    """
    kept = []
    for line in lines:
        line = re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip()
        is_banner = bool(BANNER.search(line)) and "version" not in line
        if line and not is_banner and not any(words in line for words in SAYS_NOTHING):
            kept.append(shown(line)[:LONGEST])
    if len(kept) > FIRST_LINES + LAST_LINES:
        kept = [*kept[:FIRST_LINES], "...", *kept[-LAST_LINES:]]
    return tuple(kept)


def shown(text: str) -> str:
    """Return a text without folders of this machine: the repository is `.`, home is `~`.

    >>> shown("file:///tmp/vllm_dist_1 backend")
    'file://(temporary)/vllm_dist_1 backend'
    """
    root = str(Path(__file__).resolve().parents[3])
    text = OWN_PYTHON.sub(".venv-", text.replace(f"{root}/", "").replace(root, "."))
    return HOME.sub("~", TEMPORARY.sub("(temporary)/", text))


def shown_command(words: Iterable[str]) -> tuple[str, ...]:
    """Return a command as another machine could run it."""
    return tuple(shown(str(word)) for word in words)
