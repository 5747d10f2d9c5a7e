"""How the models of the catalogue share their KV heads, and what a token costs each of them.

Left out: what the sharing costs in quality, which no config says.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from kvlab.arithmetic.catalogue import CatalogueRow, load_models
from kvlab.arithmetic.checks import whole_number
from kvlab.arithmetic.reader import read_model
from kvlab.arithmetic.storage import GROWING, LATENT
from kvlab.errors import InvalidArgument

MHA, GQA, MQA = "MHA", "GQA", "MQA"
KINDS = (MHA, GQA, MQA, LATENT)
"""One KV head a query head; several; one for all; a latent in their place."""

ORDERS = ("bytes a token", "query heads per KV head", "KV heads", "name")
BYTES_PER_ELEMENT = 2


@dataclass(frozen=True, slots=True)
class HeadSharing:
    """One model: its query heads, the KV heads of its layers, and the bytes of a token in 16 bit.

    `kv_heads` lists each count that occurs, most first; it is empty for a latent. A token's bytes
    are those while every layer still grows.
    """

    name: str
    kind: str
    num_heads: int
    kv_heads: tuple[int, ...]
    bytes_per_token: int
    source: str

    @property
    def short_name(self) -> str:
        """The name without its owner."""
        return self.name.rsplit("/", 1)[-1]

    @property
    def queries_per_kv_head(self) -> float | None:
        """Query heads that share a KV head, in the layer with most of these; None for a latent."""
        return self.num_heads / self.kv_heads[0] if self.kv_heads else None


def sharing_kind(num_heads: int, num_kv_heads: int) -> str:
    """Return MHA, MQA or GQA for a number of query and KV heads.

    >>> [sharing_kind(64, heads) for heads in (64, 8, 1)]
    ['MHA', 'GQA', 'MQA']
    """
    queries = whole_number("num_heads", num_heads)
    if queries % whole_number("num_kv_heads", num_kv_heads):
        rule = f"must divide the {queries} query heads without rest"
        raise InvalidArgument("num_kv_heads", num_kv_heads, rule)
    if num_kv_heads == num_heads:
        return MHA
    return MQA if num_kv_heads == 1 else GQA


def kv_head_choices(num_heads: int) -> tuple[int, ...]:
    """Return the numbers of KV heads that so many query heads can share evenly, most first.

    >>> kv_head_choices(12)
    (12, 6, 4, 3, 2, 1)
    """
    queries = whole_number("num_heads", num_heads)
    return tuple(n for n in range(queries, 0, -1) if queries % n == 0)


@cache
def catalogue_sharing() -> tuple[HeadSharing, ...]:
    """Return every model of the catalogue in which tokens are kept by attention heads.

    >>> {row.short_name: row.kind for row in catalogue_sharing() if "falcon" in row.name}
    {'falcon-180B': 'GQA', 'falcon-40b': 'GQA', 'falcon-7b': 'MQA'}
    """
    found = (_sharing(row) for row in load_models())
    return tuple(row for row in found if row is not None)


def _sharing(row: CatalogueRow) -> HeadSharing | None:
    model = read_model(dict(row.config), name=row.id)
    layers = [layer for layer in model.layers if layer.kind in GROWING]
    if model.num_heads is None or not layers:
        return None
    heads = {layer.num_kv_heads for layer in layers if layer.kind != LATENT}
    counts = tuple(sorted(heads, reverse=True))
    kind = sharing_kind(model.num_heads, counts[0]) if counts else LATENT
    size = BYTES_PER_ELEMENT * model.elements_per_token
    return HeadSharing(row.id, kind, model.num_heads, counts, size, row.sources[0])


def ranked(
    rows: Iterable[HeadSharing],
    order: str = ORDERS[0],
    *,
    kinds: Sequence[str] = KINDS,
    largest_first: bool = True,
) -> tuple[HeadSharing, ...]:
    """Return the rows of these kinds in an order of `ORDERS`; what has no number comes last.

    >>> [row.short_name for row in ranked(catalogue_sharing(), "query heads per KV head")][:2]
    ['falcon-7b', 'falcon-180B']
    """
    if order not in ORDERS:
        raise InvalidArgument("order", order, f"must be one of {', '.join(ORDERS)}")
    if unknown := set(kinds) - set(KINDS):
        raise InvalidArgument("kinds", sorted(unknown)[0], f"must be among {', '.join(KINDS)}")
    chosen = sorted((row for row in rows if row.kind in kinds), key=lambda r: r.name.casefold())
    if order == "name":
        return tuple(chosen if largest_first else reversed(chosen))
    numbered = [row for row in chosen if _number(row, order) is not None]
    numbered.sort(key=lambda row: _number(row, order) or 0, reverse=largest_first)
    return (*numbered, *(row for row in chosen if _number(row, order) is None))


def _number(row: HeadSharing, order: str) -> float | None:
    if order == "bytes a token":
        return row.bytes_per_token
    if order == "KV heads":
        return row.kv_heads[0] if row.kv_heads else None
    return row.queries_per_kv_head
