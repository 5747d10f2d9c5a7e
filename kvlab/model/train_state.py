"""The whole state of a training run, and its checkpoint: one safetensors file, no pickle.

A checkpoint holds weights, AdamW's two averages and, as JSON in the file's header, the step, the
curriculum and the log. It is written beside the old one and then renamed onto it, so a run that
is killed at any moment leaves a whole checkpoint. Batches are a function of seed and step, so
there is no random state to keep.
"""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from kvlab.errors import InvalidArgument, NotVerified
from kvlab.model.llama import Llama
from kvlab.model.train_plan import TrainSettings

CHECKPOINT = "checkpoint.safetensors"
AVERAGES = ("exp_avg", "exp_avg_sq")
BETAS = (0.9, 0.95)


@dataclass(eq=False)
class TrainState:
    """A run between two steps: `step` steps are done; `recent` holds this stage's last recalls."""

    settings: TrainSettings
    model: Llama
    optimizer: torch.optim.AdamW
    step: int = 0
    stage_index: int = 0
    recent: list[float] = field(default_factory=list)
    log: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0

    @classmethod
    def new(cls, settings: TrainSettings, first: Llama | None = None) -> Self:
        """Return the state before the first step; `first` stands in for weights that are drawn."""
        model = (new_model(settings) if first is None else first).to(settings.device)
        optimizer = torch.optim.AdamW(
            model.parameters(),
            lr=settings.learning_rate,
            betas=BETAS,
            weight_decay=settings.weight_decay,
        )
        return cls(settings, model, optimizer)

    def save(self, folder: Path) -> None:
        """Write the checkpoint whole or not at all."""
        progress = {
            "settings": self.settings.to_dict(),
            "step": self.step,
            "stage_index": self.stage_index,
            "recent": self.recent,
            "log": self.log,
            "seconds": self.seconds,
        }
        write_safetensors(folder / CHECKPOINT, self._tensors(), {"progress": json.dumps(progress)})

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read a checkpoint back; raises `NotVerified` for a file that is no whole checkpoint."""
        path = folder / CHECKPOINT
        try:
            with safe_open(path, framework="pt") as file:
                progress = json.loads(file.metadata()["progress"])
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            state = cls.new(TrainSettings.from_dict(progress.pop("settings")))
            state._restore(tensors, **progress)
        except (SafetensorError, OSError, KeyError, TypeError, ValueError, RuntimeError) as error:
            rule = "not a whole checkpoint of kvlab's; delete it to start again"
            raise NotVerified(f"{path}: {rule} ({error})") from None
        return state

    def _tensors(self) -> dict[str, Tensor]:
        tensors = {f"weights.{name}": value for name, value in self.model.state_dict().items()}
        for name, parameter in self.model.named_parameters():
            kept = self.optimizer.state.get(parameter, {})
            tensors |= {f"{key}.{name}": kept[key] for key in AVERAGES if key in kept}
        return tensors

    def _restore(self, tensors: dict[str, Tensor], **progress: Any) -> None:
        self.step, self.stage_index = int(progress["step"]), int(progress["stage_index"])
        self.recent, self.log = list(progress["recent"]), list(progress["log"])
        self.seconds = float(progress["seconds"])
        prefix = "weights."
        weights = {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
        self.model.load_state_dict(weights)
        for name, parameter in self.model.named_parameters():
            if self.step:
                kept = {key: tensors[f"{key}.{name}"].to(parameter.device) for key in AVERAGES}
                self.optimizer.state[parameter] = {"step": torch.tensor(float(self.step)), **kept}


@torch.no_grad()
def new_model(settings: TrainSettings) -> Llama:
    """Return first weights: variance 1/hidden_size, embeddings of variance 1 around one vector.

    A start with one vector shared by all embeddings left the plateau at once, where a start
    without it stayed for hundreds of steps and kept some names confused. Our guess at the cause,
    not measured: a head can look one position back whatever word stands there.
    """
    std = settings.hidden_size**-0.5
    model = Llama(settings.model_config()).init_weights(settings.seed, std)
    generator = torch.Generator("cpu").manual_seed(settings.seed + 1)
    shared = torch.empty(settings.hidden_size).normal_(generator=generator)
    model.model.embed_tokens.weight.div_(std).add_(shared)
    return model


def check_same_run(state: TrainState, settings: TrainSettings, folder: Path) -> None:
    """Refuse to go on with a checkpoint of other settings: the result would be neither's."""
    wanted, found = settings.to_dict(), state.settings.to_dict()
    for name, value in wanted.items():
        if found[name] != value:
            rule = f"the checkpoint in {folder} was made with {found[name]!r}"
            raise InvalidArgument(name, value, f"{rule}; give that, or another folder")


def write_safetensors(path: Path, tensors: dict[str, Tensor], header: dict[str, str]) -> None:
    """Write a safetensors file beside `path`, flush it to the disk, then rename it onto `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    whole = {name: tensor.detach().contiguous().cpu() for name, tensor in tensors.items()}
    save_file(whole, part, metadata=header)
    part.chmod(0o644)  # the library makes it readable by its owner alone
    with part.open("rb+") as file:
        os.fsync(file.fileno())
    part.replace(path)


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8", newline="\n")
    part.replace(path)
