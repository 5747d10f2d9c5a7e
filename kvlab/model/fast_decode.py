"""Decoding as fast as this machine reads: a fast Llama and a cache that is written in place.

The path is chosen by measuring (`fast_choice.py`); the logits are the lesson's up to the order of
sums. The C is in `fast_step.c`, what it leaves to the library in `fast_prefill.py`.
"""

from torch import Tensor

from kvlab.arithmetic.checks import whole_number
from kvlab.cache import make_cache
from kvlab.errors import InvalidArgument
from kvlab.model.fast_llama import PATHS, FastLlama
from kvlab.model.fast_weights import check_llama
from kvlab.model.llama import Llama
from kvlab.model.phases import prefill

__all__ = ["PATHS", "FastDecoder", "FastLlama"]


class FastDecoder(FastLlama):
    """A `FastLlama` with a pre-allocated cache of its own for `max_seq_len` tokens a row.

    >>> from kvlab.model.load import load_model
    >>> loaded = load_model("tiny", device="cpu")
    >>> decoder = FastDecoder(loaded.model, max_seq_len=64)
    >>> logits = decoder.prefill(loaded.encode("the key of"))
    >>> tuple(decoder.step(logits.argmax(-1)).shape) == (1, 1, loaded.model.config.vocab_size)
    True
    """

    def __init__(
        self, llama: Llama, *, max_seq_len: int, batch: int = 1, path: str = "measured"
    ) -> None:
        check_llama(llama)
        self.batch = whole_number("batch", batch)
        capacity, limit = whole_number("max_seq_len", max_seq_len), llama.config.max_seq_len
        if capacity > limit:
            raise InvalidArgument("max_seq_len", capacity, f"the model has {limit} positions")
        super().__init__(llama, path=path)
        num_layers = llama.config.num_layers
        self.cache = make_cache("preallocated", num_layers=num_layers, capacity=capacity)

    @property
    def step_bytes(self) -> int:
        """Bytes that the next step reads: weights once, and the keys and values held."""
        return self.weight_bytes + self.cache.nbytes

    def prefill(self, input_ids: Tensor, *, chunk_size: int | None = None) -> Tensor:
        """Run new tokens, (batch, P), into the cache; return logits (batch, 1, vocab_size)."""
        if _shape(input_ids)[:1] != (self.batch,) or input_ids.dim() != 2:
            rule = f"must be ({self.batch}, tokens), a row for each of the batch"
            raise InvalidArgument("input_ids", _shape(input_ids) or input_ids, rule)
        return prefill(self, input_ids, self.cache, chunk_size=chunk_size)

    def step(self, token_ids: Tensor) -> Tensor:
        """Feed one token a row, (batch, 1); return logits (batch, 1, vocab_size)."""
        if _shape(token_ids) != (self.batch, 1):
            rule = f"must be ({self.batch}, 1), one token a row"
            raise InvalidArgument("token_ids", _shape(token_ids) or token_ids, rule)
        return self(token_ids, cache=self.cache, last_token_only=True)

    def reset(self) -> None:
        """Forget all tokens; the memory stays."""
        for layer in self.cache.layers:
            layer.truncate_to(0)


def _shape(ids: object) -> tuple[int, ...]:
    """Of what is no tensor: that of a single number."""
    return tuple(ids.shape) if isinstance(ids, Tensor) else ()
