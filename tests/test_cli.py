"""The terminal: what it prints, its exit codes, and one line for every error."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from kvlab import cli, cli_generate
from kvlab.model.config import LlamaConfig
from kvlab.model.llama import Llama
from kvlab.model.load import load_model
from kvlab.model.weights import is_available

CONFIG = {
    "model_type": "llama",
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "hidden_size": 32,
    "intermediate_size": 48,
    "vocab_size": 40,
    "max_position_embeddings": 64,
    "tie_word_embeddings": False,
    "rms_norm_eps": 1e-5,
}
GENERATE_KEYS = [
    "text",
    "prompt_tokens",
    "new_tokens",
    "token_forwards",
    "cache_bytes",
    "cache_reserved_bytes",
    "prefill_seconds",
    "decode_seconds",
    "tokens_per_second",
    "device",
    "dtype",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama of two layers on disk, with a tokenizer of words that adds a start token."""
    path = tmp_path_factory.mktemp("model")
    (path / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    model = Llama(LlamaConfig.from_hf(CONFIG)).init_weights(seed=3, std=0.3)
    save_file(model.state_dict(), path / "model.safetensors", metadata={"format": "pt"})
    words = ["<s>", "<unk>", *(f"w{i}" for i in range(38))]
    tokenizer = Tokenizer(WordLevel({w: i for i, w in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.add_special_tokens(["<s>"])
    tokenizer.post_processor = TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    tokenizer.save(str(path / "tokenizer.json"))
    return path


def generate_json(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, object]:
    assert cli.run(["generate", "--json", *options]) == 0
    return json.loads(capsys.readouterr().out)


# -- flops ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "ratio"), [("meta-llama/Llama-3.1-70B", 825.7), ("LLAMA-3.1-8b-instruct", 807.4)]
)
def test_flops_counts_as_the_formulas_do(
    capsys: pytest.CaptureFixture[str], model: str, ratio: float
) -> None:
    options = ["--model", model, "--prompt", "2000", "--new", "1000"]
    assert cli.run(["flops", *options, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert list(report) == [
        "cached_token_forwards",
        "uncached_token_forwards",
        "cached_flops",
        "uncached_flops",
        "ratio",
        "by_part",
    ]
    assert report["cached_token_forwards"] == 2_999
    assert report["uncached_token_forwards"] == 2_499_500
    assert round(report["ratio"], 1) == ratio
    for which in ("cached", "uncached"):
        assert sum(report["by_part"][which].values()) == report[f"{which}_flops"]
    assert cli.run(["flops", *options]) == 0
    table = capsys.readouterr().out
    assert all(text in table for text in ("2,999", "2,499,500", str(ratio)))


# -- generate --------------------------------------------------------------------------------


def test_all_caches_write_the_same_text_and_count_exactly(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    options = ["--model", str(folder), "--prompt", "w1 w2 w3 w4", "--max-new-tokens", "6"]
    reports = {
        name: generate_json(capsys, *options, "--device", "cpu", "--cache", name)
        for name in ("none", "growing", "preallocated")
    }
    for name, report in reports.items():
        assert list(report) == GENERATE_KEYS
        assert report["text"] == reports["none"]["text"] != ""
        assert (report["prompt_tokens"], report["new_tokens"]) == (5, 6)
        assert report["token_forwards"] == (6 * 5 + 15 if name == "none" else 5 + 6 - 1)
        held = 0 if name == "none" else 10 * 2 * 2 * 2 * 8 * 4
        assert report["cache_bytes"] == report["cache_reserved_bytes"] == held
        assert (report["device"], report["dtype"]) == ("cpu", "float32")
        assert report["tokens_per_second"] > 0


def test_text_streams_to_stdout_and_the_account_to_stderr(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    options = ["--model", str(folder), "--prompt", "w1 w2", "--max-new-tokens", "4"]
    text = generate_json(capsys, *options)["text"]
    assert cli.run(["generate", *options]) == 0
    captured = capsys.readouterr()
    assert captured.out == f"{text}\n"
    assert "4 tokens after 3" in captured.err


def test_a_prompt_gets_one_start_token_however_it_is_written(folder: Path) -> None:
    loaded = load_model(folder, device="cpu")
    assert loaded.tokenizer.encode("w1 w2") == [0, 3, 4]
    assert loaded.tokenizer.encode("<s> w1 w2") == [0, 3, 4]
    assert loaded.tokenizer.encode("w1 w1") == [0, 3, 3]


def test_half_a_character_waits_for_its_other_half() -> None:
    from kvlab.model.stream import TextStream

    stream = TextStream(lambda ids: bytes(ids).decode("utf-8", errors="replace"))
    snowman = "\N{SNOWMAN}".encode()
    assert [stream.push(byte) for byte in snowman] == ["", "", "\N{SNOWMAN}"]
    stream.push(snowman[0])
    assert stream.close() == "\N{REPLACEMENT CHARACTER}"


@pytest.mark.weights
@pytest.mark.skipif(not is_available("smollm2"), reason="SmolLM2 is not on this machine")
def test_smollm2_knows_the_capital_of_france(capsys: pytest.CaptureFixture[str]) -> None:
    prompt = ["--prompt", "The capital of France is", "--max-new-tokens", "12"]
    options = ["--model", "smollm2", "--device", "cpu", *prompt]
    texts = set()
    for name in ("none", "growing", "preallocated"):
        report = generate_json(capsys, *options, "--cache", name)
        prompt_tokens, new = report["prompt_tokens"], report["new_tokens"]
        cached = prompt_tokens + new - 1
        uncached = new * prompt_tokens + new * (new - 1) // 2
        assert report["token_forwards"] == (uncached if name == "none" else cached)
        held = 0 if name == "none" else cached * 2 * 30 * 3 * 64 * 4
        assert report["cache_bytes"] == held
        texts.add(report["text"])
    assert len(texts) == 1
    assert "Paris" in texts.pop()


def test_doctor_answers_in_json_and_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["doctor", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)
    assert cli.run(["doctor"]) == 0
    assert "python" in capsys.readouterr().out


# -- errors and interrupts -------------------------------------------------------------------

NO_CUDA = pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has CUDA")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["generate", "--prompt", ""], "prompt='': is empty"),
        (["generate", "--prompt", "w1", "--max-new-tokens", "0"], "max_new_tokens=0"),
        (["generate", "--prompt", "w1", "--max-new-tokens", "-2"], "max_new_tokens=-2"),
        (["generate", "--prompt", "w1", "--max-new-tokens", "x"], "--max-new-tokens"),
        (["generate", "--prompt", "w1", "--cache", "fast"], "cache='fast'"),
        (["generate", "--prompt", "w1 " * 70], "positions"),
        (["generate", "--prompt", "w1", "--dtype", "int3"], "dtype='int3'"),
        pytest.param(
            ["generate", "--prompt", "w1", "--device", "cuda"], "no CUDA device", marks=NO_CUDA
        ),
        (["generate", "--prompt", "w1", "--model", "./no-such-folder"], "no-such-folder"),
        (["generate"], "--prompt"),
        (["flops", "--model", "nobody/Nothing-1B", "--prompt", "1", "--new", "1"], "Nothing-1B"),
        (["flops", "--model", "llama-3.1-8b", "--prompt", "0", "--new", "1"], "prompt_tokens=0"),
        (["flops", "--model", "llama-3.1-8b", "--prompt", "1", "--new", "0"], "new_tokens=0"),
        (["fly"], "fly"),
    ],
)
def test_bad_input_is_one_line_on_stderr_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], folder: Path, options: list[str], message: str
) -> None:
    if options[0] == "generate" and "--model" not in options:
        options = [*options, "--model", str(folder)]
    assert cli.run(options) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("kvlab: ")
    assert message in captured.err


def test_an_interrupt_ends_with_one_line_and_exit_code_130(
    capsys: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli_generate, "generate_report", interrupted)
    assert cli.run(["generate", "--model", str(folder), "--prompt", "w1"]) == 130
    assert capsys.readouterr().err == "kvlab: stopped\n"


def test_an_error_that_is_no_fault_of_the_input_is_not_hidden(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli_generate, "generate_report", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        cli.run(["generate", "--model", str(folder), "--prompt", "w1", "--json"])


# -- the table of commands -------------------------------------------------------------------


def test_help_lists_every_command_that_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--help"]) == 0
    text = capsys.readouterr().out
    for name in ("doctor", "generate", "flops", "fetch"):
        assert name in text


def test_a_command_whose_module_is_missing_is_not_offered(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(cli.COMMANDS, "fly", "kvlab.cli_no_such_room:fly")
    assert cli.run(["--help"]) == 0
    assert "fly" not in capsys.readouterr().out
    assert cli.run(["fly"]) == 2


def test_help_and_flops_load_neither_torch_nor_transformers() -> None:
    code = (
        "import sys, kvlab.cli as cli\n"
        "for arguments in (['--help'], ['generate', '--help'], ['flops', '--model', 'smollm2',"
        " '--prompt', '5', '--new', '5']):\n"
        "    assert cli.run(arguments) == 0\n"
        "loaded = {'torch', 'transformers', 'numpy'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_the_command_is_installed_and_leaves_with_its_exit_code() -> None:
    command = [sys.executable, "-m", "kvlab.cli", "flops", "--model", "x", "--prompt", "1"]
    done = subprocess.run([*command, "--new", "1"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("kvlab: model='x'")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("CUDA out of memory. Tried ...")])
def test_memory_that_runs_out_is_one_line(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*args: object) -> None:
        raise error

    monkeypatch.setattr("kvlab.cli_flops.flops_report", refuse)
    assert cli.run(["flops", "--model", "smollm2", "--prompt", "1", "--new", "1"]) == 2
    assert capsys.readouterr().err.startswith("kvlab: out of memory")


@pytest.mark.parametrize("text", ["[" * 100_000, '{"vocab_size": ' + "9" * 5000 + "}"])
def test_a_config_that_json_cannot_read_is_one_line(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.json").write_text(text, encoding="utf-8")
    assert cli.run(["flops", "--model", str(tmp_path), "--prompt", "1", "--new", "1"]) == 2
    assert "cannot read config.json" in capsys.readouterr().err
