"""llama.cpp's own server on this machine's loopback; the engine's Python runs this file alone.

    python llamacpp_server.py '{"model": FILE, "port": 1234, "context": 4096, ...}'

It runs until it is killed. Everything that it says of itself goes to the standard output.
"""

import json
import os
import signal
import sys
import threading
from typing import Any

TALKATIVE = 4  # the level at which llama.cpp prints the size of its cache


def main(text: str) -> None:
    """Start the server with the settings in `text`, and wait."""
    import xllamacpp

    settings: dict[str, Any] = json.loads(text)
    kind = getattr(xllamacpp.ggml_type, f"GGML_TYPE_{settings['cache_type'].upper()}")
    params = xllamacpp.CommonParams()
    params.model.path = settings["model"]
    params.hostnames, params.port = ["127.0.0.1"], settings["port"]
    params.n_ctx, params.n_parallel = settings["context"], settings["slots"]
    params.cache_type_k = params.cache_type_v = kind
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings["threads"]
    params.endpoint_metrics = params.endpoint_slots = True
    params.verbosity, params.offline, params.ui, params.fit_params = TALKATIVE, True, False, False
    params.cache_ram_mib = 0  # no second cache beside the cells: what the slots hold is all
    params.warmup = False
    server = xllamacpp.Server(params)
    print(f"kvlab: xllamacpp {xllamacpp.__version__} at {server.listening_address}", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))  # nothing of it must be saved
    threading.Event().wait()


if __name__ == "__main__":
    main(sys.argv[1])
