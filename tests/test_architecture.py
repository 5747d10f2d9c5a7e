"""The house keeps its floors: who may import whom, and how long a file may be."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "kvlab"
FLOORS = (
    ("errors", "_paths", "__init__"),
    ("arithmetic",),
    ("paging",),
    ("cache",),
    ("model",),
    ("serving", "course"),
    ("figures",),
    ("widgets",),
    ("doctor", "demo", "bench", "cli"),
)
TORCH_FREE = ("arithmetic", "paging", "serving", "course", "figures")
RUNS_A_MODEL = (PACKAGE / "serving" / "engine.py", PACKAGE / "serving" / "llama_worker.py")
MAX_FILE_LINES, MAX_FUNCTION_LINES = 200, 40
ADAPTER = (PACKAGE / "cache" / "hf.py", PACKAGE / "cache" / "hf_caches.py")
FILES = sorted(PACKAGE.rglob("*.py"))
OWN_CODE = [*FILES, *sorted((ROOT / "tools").rglob("*.py"))]


def floor_of(module: str) -> int:
    """Return the floor on which a module of the package stands: `kvlab.cache.base` -> 2."""
    room = [*module.split("."), "__init__"][1]
    room = next((top for top in FLOORS[-1] if room.split("_")[0] == top), room)
    (floor,) = [i for i, rooms in enumerate(FLOORS) if room in rooms] or [-1]
    assert floor >= 0, f"{module}: kvlab/{room} stands on no floor; add it to FLOORS"
    return floor


def module_of(path: Path) -> str:
    """Return the dotted name of a file of the package."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def imports(tree: ast.AST, here: str, *, at_import: bool = False) -> Iterator[str]:
    """Give each module that is imported; with `at_import` only those read when `here` is."""
    for node in tree.body if at_import else ast.walk(tree):  # type: ignore[attr-defined]
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = here.split(".")[: -node.level] if node.level else []
            yield ".".join([*base, *filter(None, [node.module])])


def upward_imports(source: str, here: str) -> list[str]:
    """Return what `here` imports from its own floor's other rooms, or from above."""
    found = []
    for name in imports(ast.parse(source), here):
        if name.split(".")[0] == "kvlab" and name != "kvlab":
            same_room = name.split(".")[1:2] == here.split(".")[1:2]
            if not same_room and floor_of(name) >= floor_of(here) and floor_of(name) > 0:
                found.append(f"{here} imports {name}")
    both_top = floor_of(here) == len(FLOORS) - 1
    return [] if both_top else found


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_rooms_import_only_from_the_floors_below(path: Path) -> None:
    assert upward_imports(path.read_text(encoding="utf-8"), module_of(path)) == []


def test_an_import_of_a_higher_floor_is_found() -> None:
    assert upward_imports("from kvlab.widgets import race", "kvlab.figures.race")
    assert upward_imports("import kvlab.course.grading", "kvlab.serving.engine")
    assert not upward_imports("from kvlab.cache.base import KVLayer", "kvlab.model.decode")


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_only_the_adapter_knows_the_cache_names_of_transformers(path: Path) -> None:
    if path in ADAPTER:
        return
    text = path.read_text(encoding="utf-8")
    names = imports(ast.parse(text), module_of(path))
    assert not [name for name in names if name.startswith("transformers.cache")]
    code = "\n".join(ast.unparse(n) for n in ast.walk(ast.parse(text)) if is_name(n))
    assert "past_key_values" not in code and "key_cache" not in code


def is_name(node: ast.AST) -> bool:
    """Return whether a node is a name in code, not a word in a text."""
    return isinstance(node, (ast.Name, ast.Attribute, ast.keyword))


def test_the_llama_meets_caches_in_the_protocol_alone() -> None:
    path = PACKAGE / "model" / "llama.py"
    names = imports(ast.parse(path.read_text(encoding="utf-8")), module_of(path))
    ours = {name for name in names if name.startswith("kvlab.cache")}
    assert ours <= {"kvlab.cache.protocol"}


def test_rooms_without_torch_load_none() -> None:
    rooms = [p for p in FILES if p.relative_to(PACKAGE).parts[0] in TORCH_FREE]
    rooms = [path for path in rooms if path not in RUNS_A_MODEL]
    lines = [f"import {module_of(path).removesuffix('.__init__')}" for path in rooms]
    heavy = "print(sorted({'torch', 'transformers'} & set(sys.modules)))"
    script = "\n".join(["import sys", "import kvlab", *lines, heavy])
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("path", OWN_CODE, ids=lambda p: p.name)
def test_files_and_functions_are_short(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    lines = len(text.splitlines())
    assert lines <= MAX_FILE_LINES, f"{lines} lines"
    long = [f.name for f in functions(text) if length(f) > MAX_FUNCTION_LINES]
    assert long == []


@pytest.mark.parametrize("path", OWN_CODE, ids=lambda p: p.name)
def test_public_names_are_documented_and_typed(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not text or ast.get_docstring(ast.parse(text)), "the file does not say what it is"
    every = functions(text)
    untyped = [f.name for f in every if not is_typed(f)]
    inner = {node for f in every for node in ast.walk(f) if node is not f}
    classes = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.ClassDef)]
    outer = [n for n in (*every, *classes) if n not in inner and not n.name.startswith("_")]
    assert ([n.name for n in outer if ast.get_docstring(n) is None], untyped) == ([], [])


@pytest.mark.parametrize("path", OWN_CODE, ids=lambda p: p.name)
def test_text_files_are_opened_with_their_encoding(path: Path) -> None:
    assert unsaid_encodings(path.read_text(encoding="utf-8")) == []


def test_a_missing_encoding_is_found() -> None:
    assert unsaid_encodings("p.read_text()") and unsaid_encodings("open(p)")
    assert not unsaid_encodings("open(p, 'rb'); p.write_text(t, encoding='utf-8')")


def functions(text: str) -> list[ast.FunctionDef]:
    """Return every function of a file, methods included."""
    return [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)]


def length(function: ast.FunctionDef) -> int:
    """Return a function's lines of code, its documentation left out."""
    doc = function.body[0] if ast.get_docstring(function) else None
    doc_lines = (doc.end_lineno or 0) - doc.lineno + 1 if doc else 0
    return (function.end_lineno or 0) - function.lineno + 1 - doc_lines


def is_typed(function: ast.FunctionDef) -> bool:
    """Return whether every argument and the result carry a type."""
    given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    named = [a for a in given if a.arg not in ("self", "cls")]
    return all(a.annotation for a in named) and function.returns is not None


def unsaid_encodings(text: str) -> list[int]:
    """Return the lines that read or write text without saying its encoding."""
    calls = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call) and opens_text(n)]
    return [n.lineno for n in calls if not any(k.arg == "encoding" for k in n.keywords)]


def opens_text(call: ast.Call) -> bool:
    """Return whether a call is `open`, or a path's `open`, `read_text` or `write_text`, as text."""
    modes = [a.value for a in call.args if isinstance(a, ast.Constant) and a.value != ""]
    if any(isinstance(mode, str) and "b" in mode for mode in modes):
        return False
    if isinstance(call.func, ast.Name):
        return call.func.id == "open"
    name = getattr(call.func, "attr", "")
    of_a_path = not call.args or isinstance(call.args[0], ast.Constant)
    return name in ("read_text", "write_text") or (name == "open" and of_a_path)
