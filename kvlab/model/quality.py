"""What a smaller cache costs: recall, loss, and how far the logits move from the full cache's.

A `Bench` runs the full cache once and measures any number of others against it. Left out: errors
inside the layers (`quality_layers.py`), tables and curves of many caches (`quality_table.py`).
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import cached_property
from math import exp
from typing import Any

from kvlab.arithmetic.memory import kv_bytes
from kvlab.cache import make_cache
from kvlab.cache.build import layer_options
from kvlab.errors import InvalidArgument
from kvlab.model.load import LoadedModel, load_model
from kvlab.model.quality_logits import Reading, Tally, Watch, read
from kvlab.model.quality_start import label_of, take_a_token
from kvlab.model.quality_task import budget_tokens, make_task

MakeCache = Callable[[], Any]
FULL = "preallocated"


@dataclass(frozen=True)
class Quality:
    """What one cache kept of a model's quality, on one task.

    `recall` and `top1` are shares from 0 to 1, `loss` and `kl` nats per token; recall is None for
    prose. Bytes are those of one sequence when all its `tokens` are read. `tokens_per_second`
    counts the tokens read alone, all rows. `seed` is None where nothing was drawn. `dtype` is that
    of the model and of the full cache.
    """

    model: str
    cache: str
    recall: float | None
    loss: float
    kl: float
    top1: float
    cache_bytes: int
    full_cache_bytes: int
    tokens_per_second: float
    tokens: int
    seed: int | None
    options: dict[str, Any] = field(default_factory=dict, compare=False)
    dtype: str = "float32"

    @property
    def perplexity(self) -> float:
        """Return e to the loss: among how many tokens the model seems to choose."""
        return exp(self.loss)

    @property
    def saving(self) -> float:
        """Return how many times smaller the cache is than the full one in the model's dtype."""
        return self.full_cache_bytes / self.cache_bytes

    @property
    def label(self) -> str:
        """Return the cache's name and what sets it apart: `int4 granularity=channel`."""
        return label_of(self.cache, self.options)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as `kvlab quality --json` prints them."""
        kept = asdict(self)
        del kept["options"], kept["dtype"]
        return kept


class Bench:
    """One model, one task, the full cache's logits: what every cache is measured against.

    >>> bench = Bench("tiny", tokens=64, facts=4, num_sequences=2)
    >>> bench.measure("growing").kl
    0.0
    """

    def __init__(
        self,
        model: str | LoadedModel,
        *,
        tokens: int | None = None,
        facts: int | None = None,
        seed: int = 0,
        num_sequences: int | None = None,
    ) -> None:
        self.loaded = load_model(model) if isinstance(model, str) else model
        self.task = make_task(
            self.loaded, tokens=tokens, facts=facts, seed=seed, num_sequences=num_sequences
        )
        self.seed = seed
        self._full: list[Reading] = []

    @property
    def passes(self) -> int:
        """Return the forward passes of one measurement, for a progress bar."""
        return self.task.batches * (1 + self.task.steps)

    @property
    def has_full(self) -> bool:
        """Return whether the full cache was run already."""
        return bool(self._full)

    @cached_property
    def full_cache_bytes(self) -> int:
        """Return the bytes of the full cache of one sequence, by the formula."""
        config = self.loaded.model.config
        return kv_bytes(
            num_layers=config.num_layers,
            num_kv_heads=config.num_kv_heads,
            head_dim=config.head_dim,
            bytes_per_element=self.loaded.dtype.itemsize,
            seq_len=self.task.tokens,
        )

    def full(self, watch: Watch | None = None) -> list[Reading]:
        """Return the readings through the full cache, one a batch; run once, then remembered."""
        if not self._full:
            make = self.maker(FULL)
            self._full = [read(self.loaded.model, part, make(), watch) for part in self.task]
        return self._full

    def measure(
        self, cache: str | MakeCache, *, watch: Watch | None = None, **options: Any
    ) -> Quality:
        """Return what a cache keeps of the quality; `cache` is a name or makes a new, empty one.

        `options` go to `make_cache`; a budget may be a percentage of the task's tokens.
        """
        make = self.rehearse(cache, **options)
        full, tally, seconds = self.full(watch), Tally(), 0.0
        held = set()
        for part, known in zip(self.task, full, strict=True):
            reading = read(self.loaded.model, part, make(), watch)
            tally.add(part, known.logits, reading.logits)
            seconds += reading.seconds
            held.add(reading.cache_bytes)
        return self._quality(cache, options, tally, max(held), seconds)

    def rehearse(self, cache: str | MakeCache, **options: Any) -> MakeCache:
        """Return what `maker` does, once a cache of it has taken a token of this model."""
        make = self.maker(cache, **options)
        take_a_token(self.loaded, make())
        return make

    def maker(self, cache: str | MakeCache, **options: Any) -> MakeCache:
        """Return a function that makes a new cache of this name for this model and task."""
        if callable(cache):
            if options:
                raise InvalidArgument("options", options, "go with a cache's name, not a function")
            return cache
        given = dict(options)
        if given.get("budget") is not None:
            given["budget"] = budget_tokens(given["budget"], self.task.tokens)
        if isinstance(given.get("budgets"), list | tuple):
            given["budgets"] = [budget_tokens(one, self.task.tokens) for one in given["budgets"]]
        accepted = layer_options(cache)
        if cache == "none":
            raise InvalidArgument("cache", cache, "keeps nothing, so there is nothing to measure")
        if "seed" in accepted:
            given.setdefault("seed", self.seed)
        if given.get("positions") == "rerotated":
            given.setdefault("inv_freq", self.loaded.model.rope.inv_freq)
        for name in ("capacity", "num_layers"):
            if name in given:
                raise InvalidArgument(name, given[name], "follows from the model and the task")
        sizes = {"num_layers": self.loaded.model.config.num_layers, "capacity": self.task.tokens}
        return lambda: make_cache(cache, **sizes, **given)

    def _quality(
        self,
        cache: str | MakeCache,
        options: dict[str, Any],
        tally: Tally,
        held: int,
        seconds: float,
    ) -> Quality:
        named = isinstance(cache, str)
        draws = self.task.seed is not None or (named and "seed" in layer_options(cache))
        return Quality(
            model=self.loaded.name,
            cache=cache if named else getattr(cache, "__name__", type(cache).__name__),
            recall=tally.right / tally.graded if self.task.answer_positions is not None else None,
            loss=tally.loss / tally.graded,
            kl=tally.kl / tally.steps,
            top1=tally.same_top / tally.steps,
            cache_bytes=held,
            full_cache_bytes=self.full_cache_bytes,
            tokens_per_second=tally.steps / seconds,
            tokens=self.task.tokens,
            seed=self.seed if draws else None,
            options=options,
            dtype=str(self.loaded.dtype).removeprefix("torch."),
        )
