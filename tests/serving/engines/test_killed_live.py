"""A real engine does not outlive a notebook's kernel, nor a plain Python, that is killed."""

import json
import os
import signal
import subprocess
import sys

import pytest
from live_engines import asked_for, is_alive, need_engine, wait_gone

from kvlab.model.weights import is_available
from kvlab.serving.engines.process import is_port_free

START = """
import json
from kvlab.serving.engines.llamacpp import LlamaCppPlan
from kvlab.serving.engines.running import start
from kvlab.serving.engines.vllm import VllmPlan
plan = {plan}
engine = start(plan, progress=False)
print(json.dumps([engine.port, engine.process.guard_pid, *engine.process.pids()]), flush=True)
"""
PLANS = {
    "llamacpp": "LlamaCppPlan(context=256)",
    "vllm": "VllmPlan('tiny', cache_bytes=2**24, max_model_len=256)",
}

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.mark.parametrize("name", PLANS)
def test_a_killed_python_takes_its_engine_along(name: str) -> None:
    need_engine(name, only_when_asked=name == "vllm")
    if name == "llamacpp" and not is_available("smollm2"):
        pytest.skip("SmolLM2 is not here: kvlab fetch smollm2")
    script = START.format(plan=PLANS[name]) + "\nimport time\ntime.sleep(600)\n"
    holder = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    port, *pids = json.loads(holder.stdout.readline())
    assert len(pids) >= 2 and all(map(is_alive, pids)) and not is_port_free(port)
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert wait_gone(pids, 30) == [] and is_port_free(port)


def test_a_killed_kernel_takes_its_engine_along() -> None:
    need_engine("llamacpp")
    if not (is_available("smollm2") and asked_for("llamacpp")):
        pytest.skip("starts a kernel: make test-engines runs it")
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3")
    try:
        client.execute("import os; print(os.getpid())\n" + START.format(plan=PLANS["llamacpp"]))
        kernel, port, *pids = _printed(client)
        assert all(map(is_alive, pids)) and not is_port_free(port)
        os.kill(kernel, signal.SIGKILL)
        assert wait_gone(pids, 30) == [] and is_port_free(port)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def _printed(client: object) -> list[int]:
    """Return the numbers that a cell has printed: its own process, then the engine's."""
    text = ""
    while text.count("\n") < 2:
        message = client.get_iopub_msg(timeout=60)  # type: ignore[attr-defined]
        assert message["msg_type"] != "error", message["content"]
        if message["msg_type"] == "stream":
            text += message["content"]["text"]
    first, second = text.strip().split("\n")[-2:]
    return [int(first), *json.loads(second)]
