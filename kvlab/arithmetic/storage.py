"""What the layers of a model store while it generates: the nouns of every sizing.

A layer of the model may own several stores: attention beside a recurrent state, or self-attention
beside cross-attention. Left out: where the numbers come from (`reader`) and what a byte costs
(`dtypes`).
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from operator import attrgetter

from kvlab.arithmetic.checks import whole_number
from kvlab.errors import InvalidArgument

FULL, WINDOWED, CHUNKED, LATENT = "full", "windowed", "chunked", "latent"
SHARED, CROSS, STATE, NONE = "shared", "cross", "state", "none"
KINDS = (FULL, WINDOWED, CHUNKED, LATENT, SHARED, CROSS, STATE, NONE)
GROWING = (FULL, WINDOWED, CHUNKED, LATENT)
"""The kinds whose stores grow with the tokens of the request."""


@dataclass(frozen=True, slots=True)
class StateTensor:
    """A tensor of fixed size that a sequence keeps, whatever its length.

    `units` are the parts that tensor parallelism spreads (heads, channels or groups). `dtype` is
    a name of `dtypes`, or None for the dtype in which the model computes. A convolution says its
    `kernel`: the positions it keeps here; engines keep one less (`engine_elements_per_unit`).

    >>> StateTensor("recurrent", units=32, elements_per_unit=128 * 128, dtype="fp32").elements
    524288
    """

    name: str
    units: int
    elements_per_unit: int
    dtype: str | None = None
    kernel: int = 0

    @property
    def elements(self) -> int:
        """Elements of the whole tensor."""
        return self.units * self.elements_per_unit

    @property
    def engine_elements_per_unit(self) -> int:
        """Elements of a unit in vLLM and llama.cpp: the newest position is an input, not kept."""
        if not self.kernel:
            return self.elements_per_unit
        return self.elements_per_unit // self.kernel * (self.kernel - 1)


@dataclass(frozen=True, slots=True)
class LayerStorage:
    """One store of one layer.

    A head keeps `k_dim` + `v_dim` elements for an entry. A latent layer is one head whose "key" is
    the latent and whose "value" is the RoPE key: nothing is doubled. An entry is one token, or
    `stride` tokens pressed into one. `window` caps the entries that are kept.

    >>> LayerStorage(0, "full", num_kv_heads=8, k_dim=128, v_dim=128).elements_per_token
    2048
    >>> LayerStorage(0, "latent", num_kv_heads=1, k_dim=512, v_dim=64).elements_per_token
    576
    """

    index: int
    kind: str
    num_kv_heads: int = 0
    k_dim: int = 0
    v_dim: int = 0
    window: int | None = None
    index_elements: int = 0
    states: tuple[StateTensor, ...] = ()
    stride: int = 1

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InvalidArgument("kind", self.kind, f"must be one of {', '.join(KINDS)}")

    @property
    def elements_per_entry(self) -> int:
        """Elements of one entry: all heads, K and V."""
        return self.num_kv_heads * (self.k_dim + self.v_dim)

    @property
    def elements_per_token(self) -> int:
        """Elements that a token adds while the store grows; a source's store gets none from it."""
        return 0 if self.kind == CROSS else self.elements_per_entry // self.stride

    def entries(self, tokens: int) -> int:
        """Return the entries kept after `tokens` tokens.

        >>> LayerStorage(0, "windowed", 8, 64, 64, window=128).entries(8192)
        128
        """
        kept = tokens if self.window is None else min(tokens, self.window)
        return kept // self.stride


@dataclass(frozen=True, slots=True)
class LayerGroup:
    """Stores that are alike: what a table shows in one line."""

    kind: str
    count: int
    elements_per_token: int
    window: int | None


@dataclass(frozen=True)
class ModelStorage:
    """All stores of a model in the order of its layers, and what was assumed to read them.

    `num_heads` are query heads: they never enter a size, only the rule of tensor parallelism.
    `text_block` names the part of a nested config that was read ("" for a flat one).

    >>> from kvlab.arithmetic.reader import read_model
    >>> model = read_model("llama-3.1-70b")
    >>> model.num_layers, model.elements_per_token
    (80, 163840)
    >>> model.groups
    (LayerGroup(kind='full', count=80, elements_per_token=2048, window=None),)
    """

    name: str
    model_type: str
    layers: tuple[LayerStorage, ...]
    notes: tuple[str, ...] = ()
    num_heads: int | None = None
    hidden_size: int | None = None
    max_seq_len: int | None = None
    weights_dtype: str | None = None
    text_block: str = ""

    @cached_property
    def num_layers(self) -> int:
        """Layers of the model, those that store nothing included."""
        return max((layer.index for layer in self.layers), default=-1) + 1

    @cached_property
    def groups(self) -> tuple[LayerGroup, ...]:
        """Equal stores counted together, in the order in which they first appear."""
        counts: dict[tuple[str, int, int | None], int] = {}
        for layer in self.layers:
            key = layer.kind, layer.elements_per_token, layer.window
            counts[key] = counts.get(key, 0) + 1
        return tuple(LayerGroup(kind, n, e, window) for (kind, e, window), n in counts.items())

    @cached_property
    def elements_per_token(self) -> int:
        """Elements of keys, values and latents that a token adds while every layer still grows."""
        return sum(layer.elements_per_token for layer in self.layers if layer.kind in GROWING)

    @cached_property
    def counted(self) -> tuple[tuple[LayerStorage, int], ...]:
        """Each distinct store (its index set to 0) with how often it occurs: sums run over this."""
        return count_stores(self.layers)

    @cached_property
    def stage_counts(self) -> dict[int, tuple[tuple[tuple[LayerStorage, int], ...], ...]]:
        """A memory for `ranks.counted_stages`: pipeline stages -> the counted stores of each."""
        return {}

    def max_kv_heads(self) -> int:
        """Return the most KV heads of any layer that grows (0 when none does)."""
        return max((x.num_kv_heads for x in self.layers if x.kind in GROWING), default=0)


def count_stores(layers: Iterable[LayerStorage]) -> tuple[tuple[LayerStorage, int], ...]:
    """Return each distinct store, its index set to 0, with how often it occurs."""
    counts: dict[tuple[object, ...], int] = {}
    firsts: dict[tuple[object, ...], LayerStorage] = {}
    for layer in layers:
        key = _ALL_BUT_INDEX(layer)
        counts[key] = counts.get(key, 0) + 1
        firsts.setdefault(key, layer)
    return tuple((replace(firsts[key], index=0), count) for key, count in counts.items())


_ALL_BUT_INDEX = attrgetter(*(f.name for f in fields(LayerStorage) if f.name != "index"))


def uniform_model(
    *, num_layers: int, num_kv_heads: int, head_dim: int, num_heads: int | None = None
) -> ModelStorage:
    """Return a model of equal full layers, for questions that name no model.

    >>> uniform_model(num_layers=80, num_kv_heads=1, head_dim=128).elements_per_token
    20480
    """
    layers = whole_number("num_layers", num_layers)
    heads = whole_number("num_kv_heads", num_kv_heads)
    width = whole_number("head_dim", head_dim)
    stores = (LayerStorage(i, FULL, heads, width, width) for i in range(layers))
    return ModelStorage("uniform", "", tuple(stores), num_heads=num_heads)
