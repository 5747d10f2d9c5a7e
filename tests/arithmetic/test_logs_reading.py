"""Whatever is pasted is read: colours, prefixes, encodings, several engines, megabytes of junk."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlab.arithmetic.logs.facts import make_fact
from kvlab.arithmetic.logs.models import catalogue_row
from kvlab.arithmetic.logs.read import read_log
from kvlab.arithmetic.logs.report import explain_log
from kvlab.arithmetic.logs.rows import EngineRow, load_engine_rows
from kvlab.arithmetic.logs.text import load_log, log_text
from kvlab.errors import InvalidArgument, KvlabError

ROWS = load_engine_rows()
TOKENS = "GPU KV cache size: 463,136 tokens"


def findings(row: EngineRow, text: str) -> list[tuple[str, str, float]]:
    """Return what is found in `text` for the model of `row`, lines aside."""
    report = explain_log(text, model=row.model, config=row.config)
    return [(f.quantity, f.fact.printed, f.estimate.value) for f in report.findings]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_colours_prefixes_and_noise_change_nothing(row: EngineRow) -> None:
    plain = findings(row, row.text)
    noise = "WARNING 11-29 10:00:00 [loader.py:42] size of nothing: 12 tokens, 3.5 GiB\n"
    noisy = "".join(
        f"{noise}\x1b[36m(EngineCore_0 pid=7)\x1b[0;0m \x1b[1m2026-11-29 {line}\x1b[0m\r\n"
        for line in row.lines
    )
    assert findings(row, log_text(noisy.encode())) == plain
    assert findings(row, log_text(b"\xff\xfe" + row.text.encode("utf-16-le"))) == plain


def test_a_printed_number_keeps_what_its_digits_leave_open() -> None:
    fact = make_fact("available", "3.81", "GiB", 1, 0)
    assert (fact.low / 2**30, fact.high / 2**30) == pytest.approx((3.805, 3.815))
    assert make_fact("kv_tokens", "2,042,016", None, 1, 0).half_step == 0
    assert make_fact("available", "55", "GiB", 1, 0).half_step == 2**29


def test_two_starts_in_one_paste_are_two_runs() -> None:
    start = "Initializing a V1 LLM engine (v0.11.0) with config: tensor_parallel_size=2\n"
    first, second = read_log(f"{start}{TOKENS}\n{start}{TOKENS.replace('463', '999')}")
    assert first.whole("kv_tokens") == 463_136 and second.whole("kv_tokens") == 999_136
    assert first.whole("tp") == second.whole("tp") == 2


def test_ollama_owns_the_lines_of_the_llama_cpp_inside() -> None:
    (row,) = [row for row in load_engine_rows() if row.id == "ll-hfdisc-llama3-8b"]
    (run,) = read_log('msg="offload" memory.required.kv="256.0 MiB"\n' + row.text)
    assert run.engine == "ollama" and run.last("k_bytes") and run.last("estimate_bytes")


def test_two_engines_with_one_model_are_held_beside_each_other() -> None:
    (row,) = [row for row in ROWS if row.id == "sgl-vllm-qwen3-235b-ratio"]
    report = explain_log(row.text)
    assert [run.run.engine for run in report.runs] == ["vllm", "sglang"]
    assert "178,880" in report.notes[0] and "367,404" in report.notes[0]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("Qwen/Qwen3-235B-A22B-Instruct-2507-FP8", "Qwen/Qwen3-235B-A22B"),
        ("/data/models/Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf", "meta-llama/Llama-3.1-8B"),
        ("llama3:70b", "meta-llama/Meta-Llama-3-70B"),
        ("gemma3:27b", "google/gemma-3-27b-it"),
        ("Meta Llama 3 8B Instruct", "meta-llama/Meta-Llama-3-8B"),
        ("hugging-quants/Meta-Llama-3.1-70B-Instruct-AWQ-INT4", "meta-llama/Llama-3.1-70B"),
    ],
)
def test_a_name_finds_the_model_of_the_same_shape(name: str, found: str) -> None:
    row = catalogue_row(name)
    assert row is not None and row.id == found


@pytest.mark.parametrize("name", ["qwen3:8b", "my-llama", "gemma-2-9b", "", "llama"])
def test_a_name_that_may_be_another_shape_finds_nothing(name: str) -> None:
    assert catalogue_row(name) is None


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is empty"),
        (b" \n\t\n", "is empty"),
        (b"\x7fELF\x02\x01\x01\x00\x00", "is binary"),
        (bytes(range(256)) * 4, "is binary"),
    ],
)
def test_what_is_no_text_is_refused(data: bytes, says: str) -> None:
    with pytest.raises(InvalidArgument, match=says):
        log_text(data)


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(KvlabError, match=r"no\.log"):
        load_log(str(tmp_path / "no.log"))
    with pytest.raises(KvlabError, match="cannot read"):
        load_log(str(tmp_path))


def test_text_of_no_engine_is_refused_with_the_engines_that_are_known() -> None:
    with pytest.raises(InvalidArgument, match=r"vllm, sglang, llama\.cpp, ollama, tensorrt-llm"):
        read_log("Roses are red\nViolets are blue\n")


@pytest.mark.parametrize(
    "junk",
    [
        "a" * 10_000_000,
        "1," * 5_000_000,
        "Available KV cache memory: " * 370_000,
        "llama_kv_cache: size = 1.0 MiB ( 1 cells," * 240_000,
        "\x1b[" * 5_000_000,
    ],
    ids=["letters", "numbers", "vllm", "llama.cpp", "escapes"],
)
def test_ten_megabytes_of_junk_are_refused_without_a_search_that_explodes(junk: str) -> None:
    with pytest.raises(InvalidArgument, match="log="):
        explain_log(log_text(junk))


@given(st.text(alphabet=st.characters(exclude_characters="\0"), max_size=300))
def test_any_text_before_and_after_is_no_trouble(noise: str) -> None:
    (run,) = read_log(log_text(f"{noise}\n{TOKENS}\n{noise}"))
    assert run.whole("kv_tokens") == 463_136


@given(st.binary(max_size=200))
def test_any_bytes_give_an_answer_or_one_of_our_errors(data: bytes) -> None:
    try:
        explain_log(log_text(data))
    except KvlabError as error:
        assert "\n" not in str(error)
