"""vLLM as a plan: settings, the pool that the formulas expect, and the command that starts it.

What stops a newcomer on a processor is said here first: blocks of a multiple of 32 tokens, a cache
sized in bytes (the environment variable counts in whole GiB), a cache in FP8 only with AVX-512,
one core for each rank, no compiling (it takes minutes), no telemetry.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kvlab.arithmetic.checks import whole_number
from kvlab.arithmetic.storage import ModelStorage
from kvlab.errors import InvalidArgument, Unsupported
from kvlab.serving.engines.environments import VLLM, Environment
from kvlab.serving.engines.machine import can_cache_fp8, this_machine, usable_cores
from kvlab.serving.engines.models import model_folder, storage_of
from kvlab.serving.engines.prediction import PagedPrediction, check_fits, predict_paged

DTYPES = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}
CACHE_DTYPES = ("auto", "fp8", "fp8_e4m3", "fp8_e5m2")
CPU_BLOCK = 32
"""vLLM's attention on a processor takes blocks of a multiple of so many tokens."""


@dataclass(frozen=True)
class VllmPlan:
    """Settings of vLLM. `cache_bytes` are of each rank; `model` is a name of ours or a folder.

    >>> VllmPlan("smollm2", block_size=32, cache_bytes=94_371_840).predict().tokens
    2048
    """

    model: str = "smollm2"
    dtype: str = "float32"
    cache_dtype: str = "auto"
    block_size: int = 32
    cache_bytes: int = 188_743_680
    max_model_len: int = 1024
    tp: int = 1
    prefix_caching: bool = True
    max_running: int = 64
    max_batched_tokens: int = 2048

    engine = VLLM

    def __post_init__(self) -> None:
        whole = ("block_size", "cache_bytes", "max_model_len", "tp", "max_running")
        for name in (*whole, "max_batched_tokens"):
            whole_number(name, getattr(self, name))
        if self.dtype not in DTYPES:
            raise InvalidArgument("dtype", self.dtype, f"must be one of {', '.join(DTYPES)}")
        if self.cache_dtype not in CACHE_DTYPES:
            rule = f"must be one of {', '.join(CACHE_DTYPES)}"
            raise InvalidArgument("cache_dtype", self.cache_dtype, rule)

    @property
    def stored_dtype(self) -> str:
        """The dtype of the cache, by our name."""
        return DTYPES[self.dtype] if self.cache_dtype == "auto" else "fp8"

    def storage(self) -> ModelStorage:
        """Return what the model stores, read from its config alone."""
        return storage_of(self.model)

    def predict(self) -> PagedPrediction:
        """Return the pool that the formulas expect."""
        return predict_paged(
            self.storage(),
            cache_dtype=self.stored_dtype,
            block_size=self.block_size,
            cache_bytes=self.cache_bytes,
            max_model_len=self.max_model_len,
            tp=self.tp,
            max_batched_tokens=self.max_batched_tokens,
        )

    def check(self, environment: Environment) -> None:
        """Refuse here, in one line, what the engine would refuse after half a minute."""
        check_fits(self.predict())
        if not environment.on_cpu:
            return
        if self.block_size % CPU_BLOCK:
            rule = f"vLLM on a processor takes multiples of {CPU_BLOCK}; say 32 or 128"
            raise InvalidArgument("block_size", self.block_size, rule)
        if self.cache_dtype != "auto" and not can_cache_fp8(this_machine()):
            raise Unsupported(
                f"cache_dtype={self.cache_dtype!r}: vLLM needs AVX-512 or AMX for it on a"
                f" processor, and {this_machine().cpu} has neither; the size is predicted all the"
                f" same: {self.predict().tokens:,} tokens"
            )
        if self.tp > len(usable_cores()):
            rule = f"each rank needs a core of its own, and there are {len(usable_cores())}"
            raise InvalidArgument("tp", self.tp, rule)

    def command(self, python: Path, port: int) -> list[str]:
        """Return the command that starts the server."""
        # `vllm serve` looks for a package called vllm, which the build for processors is not.
        words = [str(python), "-m", "vllm.entrypoints.openai.api_server"]
        words += ["--model", str(model_folder(self.model)), "--served-model-name", self.name]
        words += ["--host", "127.0.0.1", "--port", str(port), "--dtype", self.dtype]
        words += ["--kv-cache-dtype", self.cache_dtype, "--block-size", str(self.block_size)]
        # Not VLLM_CPU_KVCACHE_SPACE: that counts in whole GiB.
        words += ["--kv-cache-memory-bytes", str(self.cache_bytes)]
        words += ["--max-model-len", str(self.max_model_len), "--max-num-seqs"]
        words += [str(self.max_running), "--max-num-batched-tokens", str(self.max_batched_tokens)]
        words += ["--tensor-parallel-size", str(self.tp), "--enforce-eager"]
        words += [
            "--enable-prefix-caching" if self.prefix_caching else "--no-enable-prefix-caching"
        ]
        return words

    def environ(self, cache_folder: Path) -> Mapping[str, str]:
        """Return the environment variables: no telemetry, no network, all cores, one each rank."""
        cores = usable_cores()
        share = len(cores) // self.tp
        ranks = [cores[i * share : (i + 1) * share] for i in range(self.tp)]
        bound = "|".join(",".join(map(str, rank)) for rank in ranks)
        return {
            "VLLM_NO_USAGE_STATS": "1",
            "DO_NOT_TRACK": "1",
            "VLLM_CPU_NUM_OF_RESERVED_CPU": "0",
            "VLLM_CPU_OMP_THREADS_BIND": bound if self.tp > 1 else "auto",
            "VLLM_HOST_IP": "127.0.0.1",
            "VLLM_CACHE_ROOT": str(cache_folder),
            "VLLM_CONFIG_ROOT": str(cache_folder),
            "HF_HUB_OFFLINE": "1",
            "TRANSFORMERS_OFFLINE": "1",
        }

    @property
    def name(self) -> str:
        """The name under which the model is served."""
        return Path(self.model).name

    def to_dict(self) -> dict[str, Any]:
        """Return the settings for a file."""
        return {**asdict(self), "model": self.name}
