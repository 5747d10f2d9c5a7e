"""Chapter 00 says nothing that its functions do not say too."""

import re

import nbformat
import pytest
from chapter_pairs import CHAPTERS, notebook_of, read_source
from nbformat import NotebookNode

from kvlab.arithmetic.catalogue import model_shape
from kvlab.arithmetic.memory import kv_bytes
from kvlab.arithmetic.units import GB, GIB, format_bytes
from kvlab.course import address
from kvlab.course.bank import select_questions
from kvlab.course.chapters_map import find_chapter
from kvlab.course.claims import find_claim
from kvlab.course.exercises import find_exercise
from kvlab.course.exercises_00 import HIDDEN_SIZE, POOL_GIB, check_gib_to_gb, check_vector_bytes

SOURCE = CHAPTERS / "src" / "00_start_here.py"
P, N = 20, 55


@pytest.fixture(scope="module")
def prose() -> str:
    cells = read_source(SOURCE).cells
    return "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


@pytest.fixture(scope="module")
def stored() -> NotebookNode:
    return nbformat.read(notebook_of(SOURCE), as_version=4)


def shown(stored: NotebookNode, fragment: str) -> str:
    """Return what the one cell with `fragment` in its source shows, as text."""
    (cell,) = [c for c in stored.cells if c.cell_type == "code" and fragment in c.source]
    data = [o.get("data", {"text/plain": o.get("text", "")}) for o in cell.outputs]
    return "\n".join(str(value) for one in data for value in one.values())


def test_its_minutes_are_those_of_the_map(prose: str) -> None:
    marked = re.findall(r"\*\*(Core|Deep dive) \u00b7 (\d+) minutes?\*\*", prose)
    spent = {kind: sum(int(m) for k, m in marked if k == kind) for kind in ("Core", "Deep dive")}
    chapter = find_chapter("00")
    assert spent == {"Core": chapter.core_minutes, "Deep dive": chapter.deep_minutes}
    assert chapter.question.lower() in prose.lower()


def test_its_addresses_are_those_of_the_course(prose: str) -> None:
    assert address.colab_badge(SOURCE.stem + ".ipynb") in prose
    assert address.install_source() in SOURCE.read_text(encoding="utf-8")


def test_every_place_that_a_placement_question_names_is_there(prose: str) -> None:
    questions = select_questions(in_set="placement")
    assert len(questions) == 6
    assert "Six questions" in prose
    assert [q.anchor for q in questions if f'<a id="{q.anchor}"></a>' not in prose] == []


def test_the_cache_of_the_race_holds_what_the_formula_says(stored: NotebookNode) -> None:
    shape = model_shape("smollm2")
    held = kv_bytes(
        num_layers=shape.num_layers,
        num_kv_heads=shape.num_kv_heads,
        head_dim=shape.head_dim,
        bytes_per_element=4,
        seq_len=P + N - 1,
    )
    said = shown(stored, "formula = 2 *")
    assert f"= {held:,} bytes" in said
    assert format_bytes(held) in said


def test_the_token_forwards_are_those_of_the_two_formulas(stored: NotebookNode) -> None:
    said = shown(stored, "again, once =")
    assert f"P = {P}, N = {N}" in said
    assert f"{N * P + N * (N - 1) // 2:,}" in said
    assert f">{P + N - 1}<" in said


def test_the_takeaways_are_computed(stored: NotebookNode) -> None:
    said = shown(stored, "Keep these three")
    assert f"{(N * P + N * (N - 1) // 2) / (P + N - 1):.1f} times fewer" in said
    assert f"{100 * (GIB / GB - 1):.1f} % more" in said


def test_the_race_left_a_last_state_with_the_same_text(stored: NotebookNode) -> None:
    assert "The same text, token for token." in shown(stored, "contest.show()")


@pytest.mark.parametrize(
    ("answer", "slip"),
    [
        ("1152", ""),
        ("1,152 bytes", ""),
        (HIDDEN_SIZE * 16, "bits-as-bytes"),
        (HIDDEN_SIZE * 4, "weights-dtype"),
        (HIDDEN_SIZE, "one-byte-each"),
        (HIDDEN_SIZE * 4 // 2 * 2, "weights-dtype"),
    ],
)
def test_a_slip_in_the_bytes_of_a_vector_is_named(answer: object, slip: str) -> None:
    grade = check_vector_bytes(answer).grade
    assert (grade.misconception, grade.right) == (slip, not slip)


@pytest.mark.parametrize(
    ("answer", "slip"),
    [
        ("64.4 GB", ""),
        (POOL_GIB * GIB / GB, ""),
        (POOL_GIB, "same-number"),
        (POOL_GIB * GB / GIB, "upside-down"),
        (POOL_GIB * 1.024, "mega-step"),
    ],
)
def test_a_slip_between_gib_and_gb_is_named(answer: object, slip: str) -> None:
    grade = check_gib_to_gb(answer).grade
    assert (grade.misconception, grade.right) == (slip, not slip)


def test_a_number_of_gb_that_is_only_nearly_right_is_told_so() -> None:
    for near in (65, "64 GB", 64.2):
        grade = check_gib_to_gb(near).grade
        assert not grade.right
        assert "three digits" in grade.feedback
    assert check_gib_to_gb(70).grade.feedback == "Not right."


def test_the_first_claim_shows_what_is_needed_to_judge_it() -> None:
    shape = model_shape("llama-3.1-70b")
    sizes = f"{shape.num_layers} layers, {shape.num_kv_heads} KV heads, head_dim {shape.head_dim}"
    assert sizes in find_claim("full-context-43gb").statement


def test_the_page_says_once_how_to_guess_before_the_results(prose: str) -> None:
    assert prose.count("Clear Outputs of All Cells* now") == 1


def test_the_reason_of_the_units_exercise_is_the_units_card() -> None:
    assert f"{100 * (GIB / GB - 1):.1f} %" in find_exercise("00-b").why


def prompt_for(name: str) -> str:
    found = re.search(rf'"{name}": "(.*)",', SOURCE.read_text(encoding="utf-8"))
    assert found is not None
    return found[1]


def test_tiny_can_run_the_race_where_smollm2_is_missing() -> None:
    from kvlab.model.decode import generate
    from kvlab.model.load import load_model
    from kvlab.model.weights import is_available

    if not is_available("tiny"):
        pytest.skip("tiny is not in this copy of the course")
    loaded = load_model("tiny", device="cpu", dtype="float32")
    ids = loaded.encode(prompt_for("tiny"))
    runs = [generate(loaded.model, ids, max_new_tokens=N, cache=c) for c in ("none", "growing")]
    without, cached = ([step.token_id for step in run] for run in runs)
    assert without == cached
    assert "<unk>" not in loaded.decode(ids, skip_special=False)


@pytest.mark.weights
@pytest.mark.slow
def test_no_step_of_the_race_is_a_near_tie() -> None:
    """Rounding differs between the columns by some 1e-4; a tie would let the texts part."""
    from kvlab.model.decode import generate
    from kvlab.model.load import load_model
    from kvlab.model.weights import is_available

    if not is_available("smollm2"):
        pytest.skip("SmolLM2 is not on this machine")
    loaded = load_model("smollm2", device="cpu", dtype="float32")
    ids = loaded.encode(prompt_for("smollm2"))
    assert ids.shape[1] == P
    for step in generate(loaded.model, ids, max_new_tokens=N, keep_logits=True):
        assert step.logits is not None
        first, second = step.logits[0].topk(2).values.tolist()
        assert first - second > 0.1
