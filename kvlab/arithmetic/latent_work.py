"""The work of latent attention (MLA) in one layer, by expanding and by absorbing.

Expanding makes every head's keys and values out of the latents, for all tokens in the cache, at
every pass. Absorbing puts the same matrices on the query's and the output's side: scores and sums
then run over the latents themselves, wider ones, but nothing is made for the past. One
multiply-add is 2 FLOPs. Left out: norms, RoPE, softmax; and a cache that keeps expanded heads.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from kvlab.arithmetic.checks import whole_number
from kvlab.errors import InvalidArgument

EXPAND, ABSORB = "expand", "absorb"


@dataclass(frozen=True)
class LatentShape:
    """The sizes of one layer of latent attention; `q_lora_rank` None: queries come in one step.

    >>> v3 = LatentShape(hidden_size=7168, num_heads=128, kv_lora_rank=512, qk_nope_head_dim=128,
    ...                  qk_rope_head_dim=64, v_head_dim=128, q_lora_rank=1536)
    >>> v3.elements_per_token, v3.expanded_elements_per_token
    (576, 40960)
    """

    hidden_size: int
    num_heads: int
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int
    q_lora_rank: int | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.name != "q_lora_rank" or self.q_lora_rank is not None:
                whole_number(field.name, getattr(self, field.name))

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> "LatentShape":
        """Read the sizes from the fields of a DeepSeek `config.json`."""
        theirs = {"num_heads": "num_attention_heads"}
        sizes = {}
        for field in fields(cls):
            name = theirs.get(field.name, field.name)
            sizes[field.name] = config.get(name)
            if sizes[field.name] is None and field.name != "q_lora_rank":
                raise InvalidArgument(name, None, "is missing: the shape of an MLA layer needs it")
        return cls(**sizes)

    @property
    def qk_head_dim(self) -> int:
        """Width of a head's query and key: the part without a position and the turned part."""
        return self.qk_nope_head_dim + self.qk_rope_head_dim

    @property
    def elements_per_token(self) -> int:
        """Numbers that the cache keeps for a token: the latent and the RoPE key."""
        return self.kv_lora_rank + self.qk_rope_head_dim

    @property
    def expanded_elements_per_token(self) -> int:
        """Numbers that a cache of every head's keys and values would keep."""
        return self.num_heads * (self.qk_head_dim + self.v_head_dim)


@dataclass(frozen=True)
class LatentWork:
    """FLOPs of one layer in one pass, by part; every entry is an exact int."""

    projections: int  # query, latent and output: the same both ways
    up_projection: int  # of all keys and values held, or of the new queries and outputs
    scores: int
    values: int

    @property
    def total(self) -> int:
        """All parts together."""
        return self.projections + self.up_projection + self.scores + self.values


def latent_work(
    shape: LatentShape, way: str, *, q_len: int, kv_len: int, batch: int = 1
) -> LatentWork:
    """Return the work of `q_len` new tokens that look at `kv_len`, themselves included.

    Every query is counted against all keys, masked ones too. DeepSeek-V3's layer, one token with
    8,192 in its cache: expanding is about a hundred times the work.

    >>> from kvlab.arithmetic.catalogue import find_model
    >>> v3 = LatentShape.from_config(find_model("deepseek-v3").config)
    >>> expand, absorb = (latent_work(v3, way, q_len=1, kv_len=8192) for way in (EXPAND, ABSORB))
    >>> round(expand.total / absorb.total)
    104
    """
    queries = whole_number("batch", batch) * whole_number("q_len", q_len)
    keys = batch * whole_number("kv_len", kv_len, minimum=q_len)
    pairs = queries * kv_len
    heads, rank = shape.num_heads, shape.kv_lora_rank
    if way not in (EXPAND, ABSORB):
        raise InvalidArgument("way", way, f"must be {EXPAND!r} or {ABSORB!r}")
    absorbed = way == ABSORB
    up = rank * heads * (shape.qk_nope_head_dim + shape.v_head_dim)
    return LatentWork(
        projections=2 * queries * _projection_parameters(shape),
        up_projection=2 * (queries if absorbed else keys) * up,
        scores=2 * pairs * heads * (shape.elements_per_token if absorbed else shape.qk_head_dim),
        values=2 * pairs * heads * (rank if absorbed else shape.v_head_dim),
    )


def _projection_parameters(shape: LatentShape) -> int:
    """Weights that every new token passes, whichever way is taken."""
    width = shape.num_heads * shape.qk_head_dim
    if shape.q_lora_rank is None:
        query = shape.hidden_size * width
    else:
        query = shape.q_lora_rank * (shape.hidden_size + width)
    latent = shape.hidden_size * shape.elements_per_token
    return query + latent + shape.num_heads * shape.v_head_dim * shape.hidden_size


def absorbing_pays_up_to(shape: LatentShape, *, kv_len: int) -> int:
    """Return the most new tokens in a pass over `kv_len` keys for which absorbing is less work.

    0 where it never is. DeepSeek-V3: any decode step, but a long chunk of a prompt expands.

    >>> from kvlab.arithmetic.catalogue import find_model
    >>> v3 = LatentShape.from_config(find_model("deepseek-v3").config)
    >>> [absorbing_pays_up_to(v3, kv_len=n) for n in (2, 100, 1000, 100_000)]
    [1, 63, 145, 170]
    """
    keys = whole_number("kv_len", kv_len)
    wider = 2 * shape.kv_lora_rank - shape.qk_nope_head_dim - shape.v_head_dim
    up = shape.kv_lora_rank * (shape.qk_nope_head_dim + shape.v_head_dim)
    if wider < 0:
        return keys  # a latent narrower than half a head's key and value: absorbing always pays
    # absorbing saves 2*heads*up for each of the kv_len - q_len older tokens and costs
    # 2*heads*wider for each of the q_len * kv_len pairs
    return max((up * keys - 1) // (up + wider * keys), 0)
