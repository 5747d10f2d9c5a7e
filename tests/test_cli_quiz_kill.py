"""`kvlab quiz` is killed: by SIGKILL, by Ctrl+C, at any question and at random moments."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from quiz_lines import answers_of

from kvlab.course.asked import ask
from kvlab.course.bank import select_questions
from kvlab.course.progress import Progress


def start(path: Path) -> "subprocess.Popen[bytes]":
    """Start a quiz of six in a process of its own, with pipes."""
    code = "from kvlab.cli import main; main(['quiz', '--count', '6', '--seed', '2'])"
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env=os.environ | {"KVLAB_PROGRESS": str(path), "PYTHONUNBUFFERED": "1"},
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
    )


def read_to_prompt(process: "subprocess.Popen[bytes]") -> None:
    """Read until the quiz waits for a line."""
    seen = b""
    while not seen.endswith(b"> "):
        byte = process.stdout.read(1)  # type: ignore[union-attr]
        assert byte, seen
        seen += byte


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="signals of POSIX")
@pytest.mark.parametrize("how", ["SIGKILL", "SIGINT"])
def test_a_kill_at_any_question_loses_at_most_the_answer_under_way(
    tmp_path: Path, how: str
) -> None:
    lines, after = answers_of(ask(select_questions(), seed=2, count=6))
    for stop in (0, 1, len(lines) // 2, len(lines) - 1):
        path = tmp_path / f"{how}-{stop}.json"
        process = start(path)
        read_to_prompt(process)
        for line in lines[:stop]:
            process.stdin.write(f"{line}\n".encode())  # type: ignore[union-attr]
            process.stdin.flush()  # type: ignore[union-attr]
            read_to_prompt(process)
        process.send_signal(getattr(signal, how))
        out, err = process.communicate()
        assert list(Progress(path).answers()) == after[stop]
        assert err == b""
        assert process.returncode == (0 if how == "SIGINT" else -signal.SIGKILL)
        assert (b"stopped; " in out) is (how == "SIGINT")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="signals of POSIX")
def test_a_kill_at_a_random_moment_leaves_a_readable_file_of_the_first_answers(
    tmp_path: Path,
) -> None:
    lines, after = answers_of(ask(select_questions(), seed=2, count=6))
    moments = random.Random(3)
    for number in range(6):
        path = tmp_path / f"{number}.json"
        process = start(path)
        read_to_prompt(process)
        process.stdin.write("".join(f"{line}\n" for line in lines).encode())  # type: ignore[union-attr]
        process.stdin.flush()  # type: ignore[union-attr]
        time.sleep(moments.uniform(0, 0.03))
        process.kill()
        out = process.communicate()[0].decode()
        progress = Progress(path)
        found = list(progress.answers())
        assert found in after and progress.note == ""
        assert len(found) >= len(re.findall(r"Right\.|\d of \d points\.", out))


def test_bytes_that_are_no_text_are_an_answer_that_cannot_be_read(tmp_path: Path) -> None:
    process = start(tmp_path / "progress.json")
    out, err = process.communicate(b"\xff\xfe\n\x00\nq\n")
    assert (process.returncode, err) == (0, b"")
    assert out.count(b"cannot be read") == 2 and b"stopped; nothing was answered" in out
