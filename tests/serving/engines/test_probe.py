"""`kvlab probe` reads a server, and says in one line why it could not."""

import json
import socket
import sys
from collections.abc import Callable, Iterator

import pytest
from engine_stand_in import METRICS
from live_engines import STAND_IN

from kvlab.cli import run
from kvlab.errors import InvalidArgument
from kvlab.serving.engines.faults import NoAnswer
from kvlab.serving.engines.probe import probe
from kvlab.serving.engines.process import EngineProcess, free_port, is_port_free

Talk = Callable[[socket.socket, bytes], object]
Serve = Callable[[Talk], str]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A server that says what vLLM says of SmolLM2 in float32 with 188,743,680 bytes."""
    port = free_port()
    process = EngineProcess("stand-in", [sys.executable, STAND_IN, str(port)], grace=1)
    process.wait_until(lambda: not is_port_free(port), timeout=30, every=0.02)
    yield f"http://127.0.0.1:{port}"
    process.stop()


def page(body: bytes, status: bytes = b"200 OK") -> Talk:
    """Return what answers every request with one page."""
    head = b"HTTP/1.1 " + status + b"\r\nContent-Length: " + str(len(body)).encode() + b"\r\n\r\n"
    return lambda talker, _: talker.sendall(head + body)


def test_what_it_holds_and_what_the_formulas_say_agree(address: str) -> None:
    report = probe(address, model="smollm2", cache_dtype="fp32")
    told = report.to_dict()
    assert (told["num_blocks"], told["tokens"], told["running"], told["waiting"]) == (
        128,
        4096,
        2,
        1,
    )
    assert (told["preemptions"], told["prefix_hit_rate"], told["block_use"]) == (3, 0.25, 0.5)
    blocks = next(check for check in report.checks if check.quantity.startswith("blocks"))
    assert (blocks.reported, blocks.predicted, report.agrees) == (128, 128, True)


def test_a_dtype_that_is_not_the_servers_shows_as_a_difference(address: str) -> None:
    report = probe(address, model="smollm2", cache_dtype="bf16")
    assert report.agrees is False
    assert next(c for c in report.checks if not c.agrees).predicted == 256


def test_without_a_model_what_needs_none_is_still_checked(address: str) -> None:
    report = probe(address)
    assert [check.quantity for check in report.checks] == ["tokens = blocks x block size"]
    assert report.agrees and any("--model" in note for note in report.notes)


def test_the_command_prints_a_table_and_json(
    address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["probe", address, "--model", "smollm2", "--cache-dtype", "fp32"]) == 0
    shown = capsys.readouterr().out
    for words in ("128 blocks of 32 tokens", "2 of 2 numbers agree", "50.0%"):
        assert words in shown
    assert run(["probe", f"{address}/metrics", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tokens"] == 4096


def test_every_failure_is_one_line_with_the_address_and_a_status(
    socket_server: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = {
        f"http://127.0.0.1:{free_port()}": "nobody listens there",
        socket_server(page(b"hello")): "no engine we know",
        socket_server(page(b"", b"404 Not Found")): "answers 404",
        socket_server(page(b'sglang:num_running_reqs{model_name="m"} 1\n')): "this is SGLang",
        socket_server(
            lambda s, _: s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nv")
        ): "midway",
        socket_server(lambda s, _: s.sendall(b"nonsense")): "does not speak HTTP",
        socket_server(
            lambda s, _: s.sendall(b"HTTP/1.1 301 M\r\nLocation: http://10.0.0.1/\r\n\r\n")
        ): "leads elsewhere, to http://10.0.0.1/",
    }
    for url, said in cases.items():
        assert run(["probe", url, "--timeout", "2"]) == 2
        error = capsys.readouterr().err
        assert said in error and url in error and error.count("\n") == 1, error


@pytest.mark.parametrize("url", ["ftp://host", "host", "http://u:p@host", "http://"])
def test_what_is_no_address_ends_with_a_status(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["probe", url]) == 2
    assert capsys.readouterr().err.startswith("kvlab: url=")


def test_an_engine_that_dies_after_its_metrics_is_still_reported(socket_server: Serve) -> None:
    answered = []

    def once(talker: socket.socket, _: bytes) -> None:
        if not answered:
            answered.append(page(METRICS.encode())(talker, b""))

    report = probe(socket_server(once), model="smollm2", cache_dtype="fp32", timeout=1)
    assert report.readings.tokens == 4096 and report.model is None and report.agrees


def test_metrics_without_a_pool_leave_nothing_to_compare(socket_server: Serve) -> None:
    report = probe(socket_server(page(b"vllm:num_requests_running 1\n")), timeout=1)
    assert report.agrees is None and report.readings["vllm:num_requests_running"] == 1


@pytest.mark.parametrize(
    "label", ["num_gpu_blocks", "block_size", "kv_cache_size_tokens", "kv_cache_max_concurrency"]
)
@pytest.mark.parametrize("value", ["None", "-5", "1e999", "abc", "0", "\\x1b[31m"])
def test_absurd_labels_do_not_break_it(socket_server: Serve, label: str, value: str) -> None:
    text = METRICS
    start = text.index(f"{label}=") + len(label) + 2
    text = text[:start] + value + text[text.index('"', start) :]
    report = probe(socket_server(page(text.encode())), model="smollm2", timeout=1)
    json.dumps(report.to_dict())


def test_an_unknown_model_is_named(address: str) -> None:
    with pytest.raises((InvalidArgument, NoAnswer), match="no-such-model"):
        probe(address, model="no-such-model")


def test_a_wrong_model_is_told_before_the_server_is_asked() -> None:
    with pytest.raises(InvalidArgument, match=r"model='nosuch': no such model in the catalogue"):
        probe(f"http://127.0.0.1:{free_port()}", model="nosuch")


def test_an_absurd_pool_is_left_out_with_a_note_and_json_stays_json(
    socket_server: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = 'block_size="1e300",num_gpu_blocks="1e300",kv_cache_size_tokens="1e308"'
    text = f'vllm:cache_config_info{{{sizes},kv_cache_max_concurrency="1e308"}} 1\n'
    text += "vllm:num_requests_running NaN\nvllm:num_requests_waiting -3\n"
    models = b'{"data": [{"id": "m", "max_model_len": 999999999999}]}'

    def talk(talker: socket.socket, asked: bytes) -> None:
        page(models if b"/v1/models" in asked else text.encode())(talker, asked)

    assert run(["probe", socket_server(talk), "--model", "smollm2", "--json"]) == 0
    told = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert (told["tokens"], told["running"], told["agrees"]) == (None, None, None)
    assert told["metrics"]["vllm:num_requests_running"] is None
    notes = " ".join(told["notes"])
    for words in ("block_size 1e300", "num_requests_running nan", "num_requests_waiting -3"):
        assert words in notes


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["--tp", "0"], "tp=0"),
        (["--tp", "-1"], "tp=-1"),
        (["--tp", "2", "--model", "smollm2"], "tp=2: must divide the 9"),
        (["--cache-dtype", "bogus"], "cache_dtype='bogus'"),
        (["--timeout", "inf"], "timeout=inf"),
        (["--timeout", "1e300"], "timeout=1e+300"),
    ],
)
def test_a_wrong_setting_is_told_before_the_server_is_asked(
    settings: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["probe", f"http://127.0.0.1:{free_port()}", *settings]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


def test_a_guessed_dtype_says_how_to_name_it(address: str) -> None:
    notes = " ".join(probe(address, model="smollm2").notes)
    assert "started with another --dtype" in notes and "--cache-dtype fp32" in notes
    assert "--dtype holds" not in " ".join(
        probe(address, model="smollm2", cache_dtype="fp32").notes
    )


def test_a_redirect_does_not_repeat_a_secret(socket_server: Serve) -> None:
    base = socket_server(
        lambda s, _: s.sendall(b"HTTP/1.1 301 M\r\nLocation: http://u:secret@h/?t=secret\r\n\r\n")
    )
    with pytest.raises(NoAnswer) as caught:
        probe(base, timeout=2)
    assert "secret" not in str(caught.value)
