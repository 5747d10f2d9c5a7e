"""A Llama whose passes take the fast path where there is one: the same logits, sooner.

`FastLlama` stands in for a `Llama` anywhere: in `generate`, `prefill`, in an engine. On a CPU in
float32 the passes run in C (`fast_step.c`), with the weights in their narrowest exact form; on
CUDA a step is recorded once and replayed. Anything else runs as in `llama.py`.
"""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from kvlab.arithmetic.units import format_bytes
from kvlab.errors import InvalidArgument, Unsupported
from kvlab.model.fast_choice import choose_path, choose_prefill
from kvlab.model.fast_compile import library
from kvlab.model.fast_native import NativeLlama, View
from kvlab.model.fast_prefill import MANY, WAYS, prefill_many
from kvlab.model.fast_torch import GraphStep
from kvlab.model.fast_views import advance, takes, view_of
from kvlab.model.fast_weights import NARROW, check_llama, native_of, why_not
from kvlab.model.llama import Llama
from kvlab.model.masks import check_inputs

if TYPE_CHECKING:
    from kvlab.cache import KVCacheProtocol

PATHS = ("measured", *NARROW, "graph", "plain")


class FastLlama:
    """A stand-in for `llama`: the same call, the same logits up to the order of sums.

    `path` is one of `PATHS`: "measured" takes the fastest, measured once a machine; "packed" and
    "float32" are the C with narrow weights and with the weights as they are; "graph" is for CUDA;
    "plain" is `llama` itself. When it looks at the weights again is in `fast_weights.py`. A copy or
    a pickle holds the model and makes the rest anew. Raises `InvalidArgument` for another path or
    what is no `Llama`, `Unsupported` for a path that can't be taken here.

    >>> from kvlab.model.load import load_model
    >>> loaded = load_model("tiny", device="cpu")
    >>> from kvlab.cache import make_cache
    >>> fast, ids = FastLlama(loaded.model), loaded.encode("the key of")
    >>> cache = make_cache("preallocated", num_layers=loaded.model.config.num_layers, capacity=64)
    >>> bool(torch.allclose(fast(ids, cache=cache), loaded.model(ids), atol=1e-3))
    True
    """

    def __init__(self, llama: Llama, *, path: str = "measured") -> None:
        check_llama(llama)
        if path not in PATHS:
            raise InvalidArgument("path", path, f"must be one of {', '.join(PATHS)}")
        self.llama, self.config = llama, llama.config
        self.native: NativeLlama | None = None
        self.graph: GraphStep | None = None
        self.prefill_way: str | None = None
        self.path = path if path != "measured" else self._measured()
        if self.path in NARROW:
            self.native = native_of(llama, self.path)
        if self.path == "graph" and self.device.type != "cuda":
            raise Unsupported(f"path='graph': is for CUDA, and the model is on {self.device}")

    def _measured(self) -> str:
        on_cpu = self.device.type == "cpu"
        paths = ("plain", *NARROW) if on_cpu else ("plain", "graph")
        return choose_path(self.llama, paths, lambda path: FastLlama(self.llama, path=path))

    def _by(self, way: str) -> "FastLlama":
        """Return the same path with another way through a long prompt."""
        other = FastLlama(self.llama, path=self.path)
        other.prefill_way = way
        return other

    def _prefill_way(self) -> str:
        if self.prefill_way is None:
            self.prefill_way = choose_prefill(self.llama, self.path, WAYS, self._by)
        return self.prefill_way

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "native": None, "graph": None}  # they hold addresses

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._look(sampled=True)

    @property
    def lm_head(self) -> nn.Linear:
        """The head of the model, by which others ask for its device."""
        return self.llama.lm_head

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return self.llama.lm_head.weight.device

    @property
    def weight_bytes(self) -> int:
        """Bytes of weights that one decode step reads."""
        if self.native is not None:
            return self.native.weight_bytes
        return sum(parameter.nbytes for parameter in self.llama.parameters())

    def describe(self) -> str:
        """Say in one line which path is taken, in which formats, and what a step reads."""
        size, dtype = format_bytes(self.weight_bytes), str(self.lm_head.weight.dtype)[6:]
        if self.native is None:
            return f"path '{self.path}': {size} of weights a step, in {dtype} on {self.device}"
        forms = " and ".join(sorted(f.name.lower().replace("_", " ") for f in self.native.forms))
        return (
            f"path '{self.path}': {size} of weights a step, kept in {forms}, computed in {dtype}"
            f" by {torch.get_num_threads()} thread(s); prefill by"
            f" {'the library' if self._prefill_way() == 'library' else 'the same C'} in {dtype}"
        )

    @torch.no_grad()
    def __call__(
        self,
        input_ids: Tensor,
        *,
        cache: "KVCacheProtocol | None" = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        last_token_only: bool = False,
    ) -> Tensor:
        """Return what `Llama.forward` returns, for the same arguments; raises the same errors."""
        given = {"attention_mask": attention_mask, "last_token_only": last_token_only}
        plain = self.path == "plain" or cache is None or position_ids is not None
        if plain or not takes(cache, self.llama):
            return self.llama(input_ids, cache=cache, position_ids=position_ids, **given)
        past, q_len = int(cache.get_seq_length()), input_ids.shape[-1]
        check_inputs(self.config, input_ids, past, attention_mask, None, past)
        if attention_mask is not None and bool(attention_mask.all()):
            attention_mask = None
        if q_len > 1 or not past:
            self._look(sampled=input_ids.numel() > MANY)
        found = None
        if self.path != "plain":
            found = view_of(cache, self.llama, input_ids, attention_mask)
        logits = None if found is None else self._run(input_ids, found, last_token_only)
        if logits is None:
            return self.llama(input_ids, cache=cache, **given)
        advance(cache, q_len)
        return logits

    def _look(self, *, sampled: bool) -> None:
        """Take the model's weights of now; where the C can't read them any more, the plain path."""
        if self.path in NARROW:
            try:
                self.native = native_of(self.llama, self.path, sampled=sampled)
            except Unsupported:
                self.path, self.native = "plain", None

    def _run(self, ids: Tensor, found: View, last_token_only: bool) -> Tensor | None:
        """Write the tokens in place; None where the lesson's way has to be taken."""
        logits_of = 1 if last_token_only else ids.shape[1]
        if self.native is not None and ids.numel() > MANY and self._prefill_way() == "library":
            return prefill_many(self.llama, self.native, ids, found, logits_of=logits_of)
        if self.native is not None:
            return self.native.run(ids, found, logits_of=logits_of)
        if ids.shape[1] > 1 or found.slots is not None:
            return None
        if self.graph is None or not self.graph.matches(len(ids), found.keys):
            self.graph = GraphStep(self.llama, len(ids), found.keys, found.values)
        return self.graph.run(ids, found.past, found.first)


def paged_model(model: "Llama | FastLlama") -> "Llama | FastLlama":
    """Return what runs a model over a paged store soonest: its stand-in, where one can be made.

    The stand-in attends to blocks where they lie; a `Llama` gathers every row's whole cache first.
    """
    if not isinstance(model, Llama) or why_not(model) is not None:
        return model
    try:
        library()
    except Unsupported:
        return model
    return FastLlama(model)


def fast_model(model: "Llama | FastLlama", cache: object) -> FastLlama:
    """Return a model's stand-in; `InvalidArgument` for a cache that is not written in place."""
    llama = model.llama if isinstance(model, FastLlama) else model
    check_llama(llama)
    if cache != "preallocated" and not takes(cache, llama):
        rule = "the fast path writes in place: must be 'preallocated', by name or as an object"
        raise InvalidArgument("cache", cache, rule)
    return model if isinstance(model, FastLlama) else FastLlama(model)
