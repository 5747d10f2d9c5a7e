"""One decode step by every path that can be taken here, beside the least time of its reading.

The paths take turns and feed the same tokens, so the comparison is fair also on a busy machine.
The least time is that of `measure_device`: what all threads together read from memory a second.
"""

from dataclasses import dataclass

from torch import Tensor

from kvlab.arithmetic.checks import whole_number
from kvlab.errors import Unsupported
from kvlab.model.fast_choice import ROUNDS, time_in_turn
from kvlab.model.fast_compile import library
from kvlab.model.fast_decode import FastDecoder
from kvlab.model.fast_weights import why_not
from kvlab.model.load import LoadedModel
from kvlab.model.measure_device import measure_device
from kvlab.model.sample_text import sample_ids


@dataclass(frozen=True)
class StepTiming:
    """A step of one path: the bytes it has to read, its seconds, and the least they could be."""

    path: str
    bytes: int
    seconds: float
    least_seconds: float

    @property
    def share(self) -> float:
        """How much of the machine's reading speed the step reaches; 1.0 is the limit.

        >>> StepTiming("plain", bytes=10**9, seconds=0.1, least_seconds=0.05).share
        0.5
        """
        return self.least_seconds / self.seconds


def paths_here(loaded: LoadedModel) -> tuple[str, ...]:
    """Return the paths that a loaded model can take on this machine, the lesson's first."""
    if loaded.device.type == "cuda":
        return ("plain", "graph")
    try:
        library()
    except Unsupported:
        return ("plain",)
    return ("plain",) if why_not(loaded.model) else ("plain", "float32", "packed")


def time_paths(
    loaded: LoadedModel, *, prompt_tokens: int, rounds: int = ROUNDS
) -> tuple[StepTiming, ...]:
    """Return the median step of each path behind a prompt; two first steps are left out."""
    ids = sample_ids(loaded, whole_number("prompt_tokens", prompt_tokens))
    steps = whole_number("rounds", rounds) + 2
    speed, decoders, ways = measure_device(loaded.device), {}, {}
    for path in paths_here(loaded):
        decoder = FastDecoder(loaded.model, max_seq_len=prompt_tokens + steps, path=path)
        decoders[path], ways[path] = decoder, _Writer(decoder, ids)
    time_in_turn(ways, rounds=2)
    seconds = time_in_turn(ways, rounds=rounds)
    middle, found = prompt_tokens + 2 + rounds // 2, []  # tokens that the middle step attends to
    for path, decoder in decoders.items():
        cache_bytes = decoder.cache.nbytes * middle // (prompt_tokens + steps)
        num_bytes = decoder.weight_bytes + cache_bytes
        least = speed.seconds_to_read(num_bytes)
        found.append(StepTiming(path, num_bytes, seconds[path], least))
    return tuple(found)


class _Writer:
    """Each call feeds the token chosen last and returns the next logits."""

    def __init__(self, decoder: FastDecoder, ids: Tensor) -> None:
        self.decoder, self.token = decoder, decoder.prefill(ids).argmax(-1)

    def __call__(self) -> Tensor:
        logits = self.decoder.step(self.token)
        self.token = logits.argmax(-1)
        return logits
