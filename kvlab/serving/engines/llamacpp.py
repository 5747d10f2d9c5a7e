"""llama.cpp as a plan: cells and slots, the bytes that the formulas expect, and how to start it."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kvlab.arithmetic.checks import whole_number
from kvlab.arithmetic.storage import ModelStorage
from kvlab.errors import InvalidArgument
from kvlab.serving.engines.environments import LLAMACPP, Environment
from kvlab.serving.engines.machine import usable_cores
from kvlab.serving.engines.models import gguf_file, storage_of
from kvlab.serving.engines.prediction import CellsPrediction, predict_cells

CELL_TYPES = ("f16", "bf16", "f32", "q8_0", "q4_0")
MOST_SLOTS, MOST_THREADS, MOST_CELLS = 256, 512, 2**31 - 1
"""What llama.cpp itself takes: LLAMA_MAX_SEQ, GGML_MAX_N_THREADS, and a 32-bit count."""

SERVER = Path(__file__).with_name("llamacpp_server.py")


@dataclass(frozen=True)
class LlamaCppPlan:
    """Settings of llama.cpp: `context` cells in all, shared out evenly to `slots` requests.

    `model` is "smollm2" or the path of a Llama's .gguf file, whose shape is read from its header.

    >>> LlamaCppPlan(context=4096, cache_type="q8_0").predict().mib
    47.8125
    """

    model: str = "smollm2"
    context: int = 4096
    slots: int = 1
    cache_type: str = "f16"
    threads: int | None = None

    engine = LLAMACPP

    def __post_init__(self) -> None:
        if isinstance(self.model, Path):
            object.__setattr__(self, "model", str(self.model))
        if not isinstance(self.model, str) or not self.model.strip():
            raise InvalidArgument("model", self.model, "must be text: 'smollm2' or a .gguf file")
        _count("slots", self.slots, MOST_SLOTS)
        _count("context", self.context, MOST_CELLS)
        if self.context < self.slots:
            rule = f"must be at least 1 cell for each of the {self.slots} slots"
            raise InvalidArgument("context", self.context, rule)
        if self.threads is not None:
            _count("threads", self.threads, MOST_THREADS)
        if self.cache_type not in CELL_TYPES:
            rule = f"must be one of {', '.join(CELL_TYPES)}"
            raise InvalidArgument("cache_type", self.cache_type, rule)

    def storage(self) -> ModelStorage:
        """Return what the model stores, read from its config alone."""
        return storage_of(self.model)

    def predict(self) -> CellsPrediction:
        """Return the cells that the formulas expect."""
        return predict_cells(
            self.storage(), context=self.context, slots=self.slots, cache_dtype=self.cache_type
        )

    def check(self, environment: Environment) -> None:
        """Nothing is refused that the engine would take."""

    def command(self, python: Path, port: int) -> list[str]:
        """Return the command that starts the server."""
        settings = {
            "model": str(gguf_file(self.model)),
            "port": port,
            "context": self.context,
            "slots": self.slots,
            "cache_type": self.cache_type,
            "threads": self.threads or len(usable_cores()),
        }
        return [str(python), "-I", str(SERVER), json.dumps(settings)]

    def environ(self, cache_folder: Path) -> Mapping[str, str]:
        """Return the environment variables: threads that wait sleep."""
        return {"OMP_WAIT_POLICY": "PASSIVE"}

    @property
    def name(self) -> str:
        """The name of the model."""
        return Path(self.model).name

    def to_dict(self) -> dict[str, Any]:
        """Return the settings for a file."""
        return {**asdict(self), "model": self.name}


def _count(name: str, value: object, most: int) -> None:
    if whole_number(name, value) > most:
        raise InvalidArgument(name, value, f"must be {most:,} or less")
