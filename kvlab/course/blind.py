"""Blind marking: two answers side by side, shuffled, some pairs twice to see the judge's noise."""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kvlab.errors import InvalidArgument

LEFT, RIGHT, EQUAL = "left", "right", "no difference"
CHOICES = (LEFT, RIGHT, EQUAL)


@dataclass(frozen=True)
class Pair:
    """One question with two answers; `kinds` says which setting wrote the left and the right."""

    number: int
    prompt: str
    left: str
    right: str
    kinds: tuple[str, str]
    repeated: bool = False


@dataclass
class BlindMarking:
    """Pairs to judge, and what was chosen for each so far."""

    pairs: tuple[Pair, ...]
    chosen: list[str] = field(default_factory=list)

    @property
    def current(self) -> Pair | None:
        """The pair to judge now; None when all are done."""
        return self.pairs[len(self.chosen)] if len(self.chosen) < len(self.pairs) else None

    def choose(self, choice: str) -> None:
        """Take in a choice. Raises `InvalidArgument` for an unknown one, or when all are done."""
        if choice not in CHOICES:
            raise InvalidArgument("choice", choice, f"must be one of {', '.join(CHOICES)}")
        if self.current is None:
            raise InvalidArgument("choice", choice, "all pairs are marked")
        self.chosen.append(choice)

    def preferred(self) -> dict[str, int]:
        """Return how often each setting was preferred; each pair counts once."""
        counts = dict.fromkeys(self.pairs[0].kinds if self.pairs else (), 0)
        for pair, choice in zip(self.pairs, self.chosen, strict=False):
            if not pair.repeated and (kind := kind_of(pair, choice)) is not None:
                counts[kind] += 1
        return counts

    def contradictions(self) -> tuple[int, int]:
        """Return (pairs judged differently the second time, pairs that came twice so far)."""
        first: dict[int, str | None] = {}
        changed = twice = 0
        for pair, choice in zip(self.pairs, self.chosen, strict=False):
            kind = kind_of(pair, choice)
            if pair.repeated:
                twice += 1
                changed += kind != first[pair.number]
            else:
                first[pair.number] = kind
        return changed, twice


def kind_of(pair: Pair, choice: str) -> str | None:
    """Return which setting a choice is for; None for no difference."""
    return None if choice == EQUAL else pair.kinds[CHOICES.index(choice)]


def blind_pairs(
    prompts: Sequence[str],
    answers: Mapping[str, Sequence[str]],
    *,
    seed: int = 0,
    most: int = 10,
    repeats: int = 4,
) -> BlindMarking:
    """Return pairs of differing answers in random order and sides; `repeats` come twice, turned.

    `answers` holds the answers of exactly two settings, one for each prompt. Raises
    `InvalidArgument` where they do not fit together.

    >>> marking = blind_pairs(["a", "b"], {"x": ["1", "2"], "y": ["1", "3"]}, repeats=1)
    >>> len(marking.pairs), marking.pairs[0].prompt, marking.pairs[1].repeated
    (2, 'b', True)
    """
    if len(answers) != 2:
        raise InvalidArgument("answers", list(answers), "must hold two settings")
    (one, left), (other, right) = answers.items()
    if not len(prompts) == len(left) == len(right):
        counts = (len(prompts), len(left), len(right))
        raise InvalidArgument("answers", counts, "must be one for each prompt, of both settings")
    draw = random.Random(seed)
    differing = [i for i in range(len(prompts)) if left[i].strip() != right[i].strip()]
    chosen = draw.sample(differing, min(most, len(differing)))
    pairs = []
    for i in chosen:
        made = Pair(i, prompts[i], left[i].strip(), right[i].strip(), (one, other))
        pairs.append(turned(made) if draw.random() < 0.5 else made)
    again = draw.sample(pairs, min(repeats, len(pairs)))
    twice = [Pair(**{**vars(turned(pair)), "repeated": True}) for pair in again]
    return BlindMarking((*pairs, *twice))


def turned(pair: Pair) -> Pair:
    """Return a pair with its sides changed."""
    left, right = pair.kinds
    return Pair(pair.number, pair.prompt, pair.right, pair.left, (right, left), pair.repeated)


def chance_of_luck(wins: int, losses: int) -> float:
    """Return how often a judge who tosses a coin gets so uneven a result, or a more uneven one.

    >>> chance_of_luck(5, 5), round(chance_of_luck(9, 1), 4)
    (1.0, 0.0215)
    """
    total, less = wins + losses, min(wins, losses)
    tail = sum(math.comb(total, k) for k in range(less + 1)) / 2**total
    return min(1.0, 2 * tail)
