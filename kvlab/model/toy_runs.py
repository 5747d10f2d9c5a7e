"""Whole runs of the toy, with and without a cache, and the work of each forward counted."""

from dataclasses import dataclass, replace

from kvlab.arithmetic.checks import whole_number
from kvlab.errors import InvalidArgument
from kvlab.model.toy import Toy, ToyCache, ToyStep
from kvlab.model.toy_weights import NUM_POSITIONS, TOTAL_HEAD_SIZE, letter_ids


@dataclass(frozen=True)
class ToyCost:
    """What one forward did; a cell is one number of a key or a value.

    Scores count the pairs that the causal mask lets through, once a head.
    """

    tokens_projected: int
    kv_cells_computed: int
    scores_computed: int
    kv_cells_read: int
    kv_cells_written: int


def forward_cost(*, past: int, new: int, num_heads: int, cached: bool = True) -> ToyCost:
    """Count a forward of `new` tokens behind `past` cached ones.

    >>> forward_cost(past=3, new=1, num_heads=1).kv_cells_read  # 3 rows of 8 + 8 numbers
    48
    """
    cells = 2 * TOTAL_HEAD_SIZE
    pairs = sum(past + i + 1 for i in range(new))
    read, written = (past * cells, new * cells) if cached else (0, 0)
    return ToyCost(new, new * cells, num_heads * pairs, read, written)


@dataclass(frozen=True)
class ToyForward:
    """One forward: `phase` is "prefill", "decode" or "recompute"; one step for each token fed."""

    phase: str
    steps: tuple[ToyStep, ...]
    cost: ToyCost

    @property
    def last(self) -> ToyStep:
        """The step of the last token: the one that predicts."""
        return self.steps[-1]


def recompute(letters: str, *, num_heads: int = 1) -> ToyForward:
    """Project every letter again and attend from all of them; nothing is kept.

    >>> recompute("ABCD").last.prediction, recompute("ABCD").cost.tokens_projected
    ('E', 4)
    """
    scratch = ToyCache(num_heads)  # holds this forward's own rows, thrown away after it
    steps = Toy(num_heads).prefill(scratch, letters)
    steps = tuple(replace(step, rows_read=(), rows_written=()) for step in steps)
    cost = forward_cost(past=0, new=len(letters), num_heads=num_heads, cached=False)
    return ToyForward("recompute", steps, cost)


def generate(
    prompt: str,
    num_new: int,
    *,
    num_heads: int = 1,
    cached: bool = True,
    cache: ToyCache | None = None,
) -> tuple[ToyForward, ...]:
    """Emit `num_new` letters; one forward each, and the prefill emits the first.

    The last letter emitted is never consumed, so prompt + num_new - 1 letters must fit. A cache of
    your own must be empty (`CacheInUse` otherwise) and holds the run afterwards.

    >>> "".join(forward.last.prediction for forward in generate("ABC", 3))
    'DEF'
    """
    letter_ids(prompt)
    whole_number("num_new", num_new)
    if len(prompt) + num_new - 1 > NUM_POSITIONS:
        most = NUM_POSITIONS + 1 - len(prompt)
        raise InvalidArgument("num_new", num_new, f"must be {most} or less behind this prompt")
    if not cached:
        return _generate_uncached(prompt, num_new, num_heads)
    toy, cache = Toy(num_heads), ToyCache(num_heads) if cache is None else cache
    steps = toy.prefill(cache, prompt)
    forwards = [
        ToyForward("prefill", steps, forward_cost(past=0, new=len(prompt), num_heads=num_heads))
    ]
    for past in range(len(prompt), len(prompt) + num_new - 1):
        step = toy.step(cache, forwards[-1].last.prediction)
        cost = forward_cost(past=past, new=1, num_heads=num_heads)
        forwards.append(ToyForward("decode", (step,), cost))
    return tuple(forwards)


def _generate_uncached(prompt: str, num_new: int, num_heads: int) -> tuple[ToyForward, ...]:
    forwards: list[ToyForward] = []
    for _ in range(num_new):
        forwards.append(recompute(prompt, num_heads=num_heads))
        prompt += forwards[-1].last.prediction
    return tuple(forwards)
