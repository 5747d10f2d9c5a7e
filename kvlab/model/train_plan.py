"""What a training run is: its settings, its curriculum and its learning rate. No torch.

The curriculum grows the number of facts first, then the length: a model that starts with many
facts stays near chance for a long time, since nothing yet tells it which word goes with which.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

import numpy as np

from kvlab.arithmetic.checks import whole_number
from kvlab.errors import InvalidArgument
from kvlab.model.config import LlamaConfig
from kvlab.model.retrieval_language import Sequences, make_sequences
from kvlab.model.retrieval_words import VOCAB_SIZE


@dataclass(frozen=True)
class Stage:
    """One step of the curriculum: sequences of `seq_len` tokens with `num_facts` facts."""

    num_facts: int
    seq_len: int
    num_questions: int
    num_names: int


CURRICULUM = (
    Stage(num_facts=2, seq_len=16, num_questions=1, num_names=4),
    Stage(num_facts=3, seq_len=20, num_questions=2, num_names=8),
    Stage(num_facts=4, seq_len=24, num_questions=4, num_names=16),
    Stage(num_facts=6, seq_len=36, num_questions=6, num_names=32),
    Stage(num_facts=8, seq_len=48, num_questions=8, num_names=64),
    Stage(num_facts=12, seq_len=72, num_questions=12, num_names=128),
    Stage(num_facts=16, seq_len=96, num_questions=16, num_names=128),
    Stage(num_facts=24, seq_len=160, num_questions=24, num_names=128),
    Stage(num_facts=32, seq_len=256, num_questions=32, num_names=128),
    Stage(num_facts=32, seq_len=512, num_questions=32, num_names=128),
    Stage(num_facts=32, seq_len=1024, num_questions=32, num_names=128),
    Stage(num_facts=32, seq_len=2048, num_questions=32, num_names=128),
)
"""Facts grow first, then length; the names to tell apart grow with the facts."""

FIRST_LONG_STAGE = 8
"""From this stage on, part of the batches come from the earlier long stages again."""

REVIEW_SHARE = 0.4
PASS_WINDOW = 5
MAX_SEQ_LEN = 4096


@dataclass(frozen=True)
class TrainSettings:
    """All that decides a run's result; two runs of equal settings give equal weights.

    Equal to the byte on one machine with one version of torch; elsewhere sums are rounded
    otherwise, and the recall agrees, not the bytes. Raises `InvalidArgument` naming the field.
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

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.type is int:
                least = 0 if field.name == "seed" else 1
                whole_number(field.name, getattr(self, field.name), minimum=least)
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
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as JSON can hold them."""
        return asdict(self)

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote; an unknown or missing name raises `InvalidArgument`."""
        try:
            return cls(**settings)
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
    stage = CURRICULUM[_drawn_stage(step, stage_index, settings.seed)]
    rows = max(1, settings.batch_tokens // stage.seq_len)
    return stage, make_sequences(rows, **asdict(stage), seed=(settings.seed, step))


def _drawn_stage(step: int, stage_index: int, seed: int) -> int:
    random = np.random.default_rng([seed, step, 1])
    if stage_index <= FIRST_LONG_STAGE or random.random() >= REVIEW_SHARE:
        return stage_index
    return int(random.integers(FIRST_LONG_STAGE, stage_index))
