"""How many bytes of weights a rank holds: what the cache has to share the memory with.

Left out: scales of quantised weights, and padding of the vocabulary and of matrices by engines.
"""

from dataclasses import dataclass
from functools import lru_cache

from kvlab.arithmetic.checks import whole_number
from kvlab.arithmetic.dtypes import CacheDtype, cache_dtype
from kvlab.arithmetic.ranks import heads_on_rank
from kvlab.errors import InvalidArgument


@dataclass(frozen=True, slots=True)
class Experts:
    """Routed experts of a model: `routed` parameters of all of them, `per_token` of `count` run.

    >>> mixtral = Experts(routed=45_097_156_608, count=8, per_token=2)
    >>> mixtral.share_read(1), round(mixtral.share_read(16), 3)
    (0.25, 0.99)
    """

    routed: int
    count: int
    per_token: int

    def share_read(self, tokens: int) -> float:
        """Return the share of the experts that a pass over `tokens` tokens reads.

        Every token is taken to choose its experts evenly and on its own: 1 - (1 - k/E)^tokens.
        """
        return 1 - (1 - self.per_token / self.count) ** min(tokens, 10**6)

    @property
    def idle(self) -> int:
        """Parameters of routed experts that one token leaves out."""
        return self.routed - self.routed * self.per_token // self.count


@dataclass(frozen=True, slots=True)
class Weights:
    """The parameters of a model by how ranks share them; `source` says where they are from.

    `split` is spread over tensor-parallel ranks, `per_kv_head` is what one KV head brings over all
    layers (a rank holds it for each of its heads), `copied` is whole on every rank (norms). The
    embedding and the head are spread by rows of the vocabulary; a tied head has no weights of its
    own, but a pipeline's last stage holds a copy of the embedding for it.
    """

    num_layers: int
    split: int
    per_kv_head: int
    num_kv_heads: int
    copied: int
    embedding: int
    head: int
    final_norm: int
    source: str
    tied: bool = False
    experts: Experts | None = None

    @property
    def body(self) -> int:
        """Parameters of all layers."""
        return self.split + self.per_kv_head * self.num_kv_heads + self.copied

    @property
    def parameters(self) -> int:
        """All parameters, each counted once."""
        return self.body + self.embedding + self.head + self.final_norm

    @property
    def multiplied_per_token(self) -> int:
        """Parameters of the layers that one token is multiplied with; idle experts left out."""
        idle = self.experts.idle if self.experts else 0
        return self.body - self.copied - idle

    @property
    def head_parameters(self) -> int:
        """Parameters of the LM head, tied or not."""
        return self.embedding if self.tied else self.head

    def total_bytes(self, weights_dtype: "str | CacheDtype" = "bf16") -> int:
        """Return the bytes of the model on one device."""
        return self.bytes_on_rank(weights_dtype=weights_dtype, layers=self.num_layers)

    def bytes_on_rank(
        self,
        *,
        layers: int,
        tp: int = 1,
        first: bool = True,
        last: bool = True,
        weights_dtype: "str | CacheDtype" = "bf16",
    ) -> int:
        """Return the bytes on the fullest rank of a pipeline stage of `layers` layers.

        `first` and `last` say whether the stage holds the embedding and the head. A type of less
        than 16 bits is used for the layers' matrices; embedding, head and norms stay in 16 bit.
        """
        narrow = weights_format(weights_dtype)
        wide = narrow if narrow.bits_per_element >= 16 else cache_dtype("bf16")
        heads = heads_on_rank(self.num_kv_heads, tp)
        matrices = self._of_stage(self.split, layers, tp) + self._of_stage(
            self.per_kv_head * heads, layers
        )
        tables = self.embedding if first else 0
        if last:
            tables += self.head if not self.tied or first else self.embedding
        norms = self._of_stage(self.copied, layers) + (self.final_norm if last else 0)
        return narrow.bytes_for(matrices) + wide.bytes_for(-(-tables // tp) + norms)

    def _of_stage(self, parameters: int, layers: int, tp: int = 1) -> int:
        return -(-parameters * layers // (max(self.num_layers, 1) * tp))


@lru_cache(maxsize=32)
def weights_format(name: "str | CacheDtype") -> CacheDtype:
    """Return the element type of weights called `name`; raises `InvalidArgument` naming it.

    >>> weights_format("int4").bits_per_element
    4.0
    """
    try:
        return cache_dtype(name)
    except InvalidArgument as error:
        raise InvalidArgument("weights_dtype", name, error.rule) from None


def given_weights(
    parameters: int, num_layers: int, *, embedding: int = 0, head: int = 0
) -> Weights:
    """Return weights of which only the number is known: spread evenly over layers and ranks.

    >>> given_weights(70_553_706_496, 80).bytes_on_rank(layers=80, tp=8) / 1e9
    17.638426624
    """
    count = whole_number("parameters", parameters)
    layers = whole_number("num_layers", num_layers, minimum=0)
    if embedding + head > count:
        rule = f"must be at least the {embedding + head:,} of the embedding and the head"
        raise InvalidArgument("parameters", parameters, rule)
    body, said = count - embedding - head, "the number given, spread evenly"
    return Weights(layers, body, 0, 0, 0, embedding, head, 0, said, tied=not head)
