"""How unevenly attention falls, head by head: the share that the top positions of a text hold."""

import ipywidgets as widgets

from kvlab.figures.head_shares import head_shares
from kvlab.model.attention_share import TOP_PERCENTS, AttentionShare
from kvlab.widgets.base import Explorer, Frame
from kvlab.widgets.controls import button

FIRST = "the first token alone"
_READING = (
    "A column is a layer, a cell one query head. The number is the share, in percent, of all the "
    "attention that this head hands out."
)


def share_frame(share: AttentionShare, which: str | int, name: str, *, scale: float = 1.0) -> Frame:
    """Return the map of one share: of the top `which` percent of positions, or of the first token.

    >>> import torch
    >>> flat = AttentionShare(torch.ones(2, 3, 100), num_kv_heads=1)
    >>> share_frame(flat, 5, "flat").readout["mean"]
    '5.0 %'
    """
    if which == FIRST:
        shares, count, who = share.first_share(1), 1, FIRST
    else:
        shares, count = share.top_share(which), share.top_count(which)
        who = f"the top {which} % of positions"
    low, mean, high = (float(part) for part in (shares.min(), shares.mean(), shares.max()))
    readout = {
        "positions counted": f"{count} of {share.num_tokens}",
        "mean": f"{100 * mean:.1f} %",
        "least of all heads": f"{100 * low:.1f} %",
        "most of all heads": f"{100 * high:.1f} %",
    }
    picture = head_shares(
        shares.clamp(max=1.0).tolist(),
        title=f"{name}: attention on {who}",
        reading=_READING,
        scale=scale,
    )
    event = f"{count} of {share.num_tokens} positions get {100 * mean:.0f} % of the attention, "
    return Frame(picture, readout, event + f"from {100 * low:.0f} to {100 * high:.0f} % by head.")


def share_explorer(
    share: AttentionShare, *, name: str, which: str | int = 1, scale: float = 1.0
) -> Explorer:
    """Return the explorer; its control is `which`, a percentage of positions or the first token.

    >>> import torch
    >>> show = share_explorer(AttentionShare(torch.ones(1, 1, 100), num_kv_heads=1), name="flat")
    >>> show.controls["which"].value = 20
    >>> show.numbers["positions counted"]
    '20 of 100'
    """
    options = [("the first token", FIRST), *((f"the top {p} %", p) for p in TOP_PERCENTS)]
    choice = widgets.SelectionSlider(
        options=options,
        value=which,
        description="attention on",
        style={"description_width": "initial"},
        layout=widgets.Layout(width="380px"),
    )
    controls: dict[str, widgets.Widget] = {"which": choice}

    def draw(which: str | int) -> Frame:
        return share_frame(share, which, name, scale=scale)

    home = button("back to the example", lambda: show.reset())
    show = Explorer(controls, draw, kind="share-explorer", extras=[home])
    return show
