"""Every model of the catalogue, sorted by the bytes of a token or by how its heads are shared."""

import ipywidgets as widgets

from kvlab.arithmetic.head_sharing import (
    KINDS,
    ORDERS,
    HeadSharing,
    catalogue_sharing,
    ranked,
)
from kvlab.figures.catalogue_chart import ModelRow, catalogue_chart
from kvlab.widgets.base import Explorer, Frame
from kvlab.widgets.controls import button, dropdown, slider

ALL, NOBODY = "all kinds", "nobody"
ROWS = 16
_READING = "Blue: query heads on one KV head. Green: bytes of a token while every layer grows."


def catalogue_frame(
    order: str, largest_first: bool, kind: str, first: int, mark: str, *, scale: float = 1.0
) -> Frame:
    """Return a page of the sorted models, from the 1-based place `first` on; `mark` is a name.

    A marked model that is not on the page stands above it, with its place.

    >>> frame = catalogue_frame("bytes a token", True, "GQA", 1, "tiiuae/falcon-40b")
    >>> frame.readout["tiiuae/falcon-40b"].split(",")[0]
    '128 query heads on 8 KV heads'
    """
    everyone = catalogue_sharing()
    kinds = KINDS if kind == ALL else (kind,)
    rows = ranked(everyone, order, kinds=kinds, largest_first=largest_first)
    start = min(first, max(len(rows) - ROWS + 1, 1)) - 1
    page = list(range(start, min(start + ROWS, len(rows))))
    marked = next((place for place, row in enumerate(rows) if row.name == mark), None)
    if marked is not None and marked not in page:
        page = [marked, *page[:-1]]
    shown = [_row(place + 1, rows[place], rows[place].name == mark) for place in page]
    picture = catalogue_chart(
        shown,
        most_shared=max(row.queries_per_kv_head or 0 for row in everyone),
        most_bytes=max(row.bytes_per_token for row in everyone),
        title=f"{len(rows)} models by {order}",
        reading=_READING,
        scale=scale,
    )
    counts = {name: str(sum(row.kind == name for row in everyone)) for name in KINDS}
    chosen = next((row for row in everyone if row.name == mark), None)
    about = {} if chosen is None else {chosen.name: _heads(chosen)}
    said = "" if chosen is None else f"{chosen.short_name}: from {chosen.source}."
    return Frame(picture, counts | about, said)


def _row(rank: int, row: HeadSharing, marked: bool) -> ModelRow:
    shared = row.queries_per_kv_head
    words = "one latent for all" if shared is None else f"{shared:g} on 1"
    if row.kind == "MHA":
        words = "1 each"
    size = f"{row.bytes_per_token / 1024:,.4g} KiB"
    return ModelRow(
        rank, row.short_name, row.kind, shared, words, row.bytes_per_token, size, marked
    )


def _heads(row: HeadSharing) -> str:
    if not row.kv_heads:
        return f"{row.num_heads} query heads on one latent, {row.bytes_per_token:,} B a token"
    heads = " or ".join(map(str, row.kv_heads))
    many = "s" if row.kv_heads[0] > 1 else ""
    return (
        f"{row.num_heads} query heads on {heads} KV head{many}, {row.bytes_per_token:,} B a token"
    )


def catalogue_explorer(
    order: str = ORDERS[0], *, mark: str = NOBODY, scale: float = 1.0
) -> Explorer:
    """Return the chart; controls are `order`, `largest_first`, `kind`, `first` and `mark`.

    >>> show = catalogue_explorer()
    >>> show.controls["kind"].value = "MQA"
    >>> show.numbers["MQA"]
    '4'
    """
    names = sorted((row.name for row in catalogue_sharing()), key=str.casefold)
    models = [("nobody", NOBODY), *((name.rsplit("/", 1)[-1], name) for name in names)]
    controls: dict[str, widgets.Widget] = {
        "order": dropdown("sort by", ORDERS, order),
        "largest_first": dropdown("first", [("the largest", True), ("the smallest", False)], True),
        "kind": dropdown("kind", [ALL, *KINDS], ALL),
        "first": slider("from place", 1, 1, len(names) - ROWS + 1),
        "mark": dropdown("mark", models, mark),
    }

    def draw(**values: object) -> Frame:
        return catalogue_frame(**values, scale=scale)  # type: ignore[arg-type]

    home = button("back to the example", lambda: show.reset())
    show = Explorer(controls, draw, kind="catalogue-explorer", extras=[home])
    return show
