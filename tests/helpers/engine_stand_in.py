"""A small real HTTP server that stands in for an engine where the subject is its process.

    python engine_stand_in.py PORT [stubborn]

It starts a child, and one that leaves the process group, as engines start workers. `stubborn`: it
ignores the polite signal, and holds shared memory, for which Python starts one more process.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.shared_memory import SharedMemory

METRICS = """# HELP vllm:num_requests_running Running.
vllm:num_requests_running{engine="0",model_name="m"} 2.0
vllm:num_requests_waiting{engine="0",model_name="m"} 1.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.5
vllm:num_preemptions_total{engine="0",model_name="m"} 3.0
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 200.0
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 50.0
vllm:generation_tokens_total{engine="0",model_name="m"} 77.0
vllm:request_success_total{engine="0",finished_reason="stop",model_name="m"} 4.0
vllm:request_success_total{engine="0",finished_reason="length",model_name="m"} 5.0
vllm:cache_config_info{block_size="32",cache_dtype="auto",engine="0",kv_cache_max_concurrency="4.0",\
kv_cache_memory_bytes="188743680",kv_cache_size_tokens="4096",num_gpu_blocks="128"} 1.0
"""


class Handler(BaseHTTPRequestHandler):
    """Answers /health, and /metrics as vLLM would."""

    def do_GET(self) -> None:
        """Answer one request."""
        body = {"/health": b"", "/metrics": METRICS.encode()}.get(self.path)
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *_: object) -> None:
        """Say nothing of requests."""


def main(port: int, how: str) -> None:
    """Start the helpers, then serve."""
    nap = [sys.executable, "-c", "import time; time.sleep(600)"]
    subprocess.Popen(nap)
    subprocess.Popen(nap, start_new_session=True)
    if how == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if how == "fails":
        print("ValueError: No common block size for 16 (CPU_ATTN: [MultipleOf(32)])", flush=True)
        sys.exit(3)
    if how == "silent":
        time.sleep(600)
    if how == "stubborn":
        held = SharedMemory(create=True, size=1000)  # nobody takes it away, as after a kill
        _, leftover = tempfile.mkstemp()
        print(f"holds /dev/shm/{held.name} {leftover}", flush=True)
    print(f"stand-in {os.getpid()} at {port}", flush=True)
    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "")
