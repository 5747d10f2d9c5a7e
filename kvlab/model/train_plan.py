"""What a training run is: its settings, its batches and its learning rate. No torch."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

import numpy as np

from kvlab.arithmetic.checks import whole_number
from kvlab.errors import InvalidArgument
from kvlab.model.config import LlamaConfig
from kvlab.model.retrieval_language import Sequences, make_sequences
from kvlab.model.retrieval_words import VOCAB_SIZE
from kvlab.model.train_recipes import Recipe, Stage, find_recipe

REVIEW_SHARE = 0.4
PASS_WINDOW = 5
MAX_SEQ_LEN = 4096
MOST_THREADS = 256


@dataclass(frozen=True)
class TrainSettings:
    """All that decides a run's result; two runs of equal settings give equal weights.

    Equal to the byte on one machine with one version of torch; elsewhere sums are rounded
    otherwise, and the recall agrees, not the bytes. Raises `InvalidArgument` naming the field.
    `layer_types` holds "sliding_attention" or "full_attention" for each layer. `pooled_from` is
    the sha256 of the weights that the run began with, before its KV heads were pooled; empty where
    the first weights are drawn from the seed.
    """

    num_kv_heads: int
    num_heads: int = 4
    steps: int = 1_200
    seed: int = 0
    num_layers: int = 2
    hidden_size: int = 128
    intermediate_size: int = 512
    batch_tokens: int = 4_096
    learning_rate: float = 3e-3
    weight_decay: float = 0.1
    pass_recall: float = 0.9
    threads: int = 1
    device: str = "cpu"
    recipe: str = "tiny"
    sliding_window: int | None = None
    layer_types: tuple[str, ...] | None = None
    pooled_from: str = ""

    def __post_init__(self) -> None:
        find_recipe(self.recipe)
        for field in fields(self):
            if field.type is int:
                least = 0 if field.name == "seed" else 1
                whole_number(field.name, getattr(self, field.name), minimum=least)
        if self.threads > MOST_THREADS:
            raise InvalidArgument("threads", self.threads, f"must be {MOST_THREADS} or fewer")
        if self.seed >= 2**63:
            raise InvalidArgument("seed", self.seed, "must be below 2**63")
        for name in ("learning_rate", "pass_recall"):
            if not 0 < getattr(self, name) <= 1:
                raise InvalidArgument(name, getattr(self, name), "must be above 0 and at most 1")
        self._check_heads()

    def _check_heads(self) -> None:
        if self.hidden_size % self.num_heads:
            rule = f"must divide the hidden size, {self.hidden_size}"
            raise InvalidArgument("num_heads", self.num_heads, rule)
        if self.num_heads % self.num_kv_heads:
            rule = f"must divide the number of query heads, {self.num_heads}"
            raise InvalidArgument("num_kv_heads", self.num_kv_heads, rule)
        self.model_config()  # the model's own rules

    def model_config(self) -> LlamaConfig:
        """Return the shape of the model that is trained."""
        return LlamaConfig(
            num_layers=self.num_layers,
            num_heads=self.num_heads,
            num_kv_heads=self.num_kv_heads,
            head_dim=self.hidden_size // self.num_heads,
            hidden_size=self.hidden_size,
            intermediate_size=self.intermediate_size,
            vocab_size=VOCAB_SIZE,
            max_seq_len=MAX_SEQ_LEN,
            sliding_window=self.sliding_window,
            layer_types=self.layer_types,
        )

    @property
    def plan(self) -> Recipe:
        """Return the recipe that `recipe` names."""
        return find_recipe(self.recipe)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as JSON can hold them."""
        return asdict(self)

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote; an unknown or missing name raises `InvalidArgument`."""
        layers = settings.get("layer_types")  # JSON has lists alone
        try:
            return cls(**{**settings, "layer_types": tuple(layers) if layers else None})
        except TypeError as error:
            raise InvalidArgument("settings", dict(settings), str(error)) from None


def learning_rate_at(step: int, settings: TrainSettings) -> float:
    """Return the rate of one step: a short rise, level, then a fall over the last quarter.

    >>> [round(learning_rate_at(i, TrainSettings(2, steps=1000)), 4) for i in (0, 500, 999)]
    [0.0001, 0.003, 0.0001]
    """
    rise = min(1.0, (step + 1) / 30)
    fall = min(1.0, max(0.02, (settings.steps - step) / (0.25 * settings.steps)))
    return settings.learning_rate * rise * fall


def batch_for(step: int, stage_index: int, settings: TrainSettings) -> tuple[Stage, Sequences]:
    """Return the batch of a step: a function of seed, step and stage alone, so nothing to store."""
    plan = settings.plan
    stage = plan.stages[_drawn_stage(step, stage_index, settings.seed, plan.first_long_stage)]
    rows = max(1, settings.batch_tokens // stage.seq_len)
    return stage, make_sequences(rows, **asdict(stage), seed=(settings.seed, step))


def _drawn_stage(step: int, stage_index: int, seed: int, first_long: int) -> int:
    random = np.random.default_rng([seed, step, 1])
    if stage_index <= first_long or random.random() >= REVIEW_SHARE:
        return stage_index
    return int(random.integers(first_long, stage_index))
