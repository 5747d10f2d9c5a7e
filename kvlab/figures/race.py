"""Two columns in which the same text appears, each at its own speed.

Every column tells its own tokens, seconds, tokens a second, cache bytes and token-forwards. The
state of the race comes in; nothing here measures or counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from kvlab.arithmetic.units import format_bytes
from kvlab.figures import palette
from kvlab.figures.svg import Picture
from kvlab.figures.tables import MONO, readout_html, sheet_html

STATES: dict[str, str] = {
    "ready": "ready",
    "running": "writing",
    "finished": "finished",
    "stopped": "stopped",
}
"""The states of a column and the word that tells each."""


@dataclass(frozen=True)
class Lane:
    """One column: what it wrote so far and the numbers it has reached.

    `seconds` is the lane's own time, `cache_bytes` what its cache holds; `role` colours its edge.
    """

    name: str
    text: str = ""
    num_tokens: int = 0
    max_new_tokens: int = 0
    seconds: float = 0.0
    cache_bytes: int = 0
    token_forwards: int = 0
    state: str = "ready"
    role: str = "weights"

    @property
    def tokens_per_second(self) -> float | None:
        """Tokens each second of the lane's own time; None before the first."""
        return self.num_tokens / self.seconds if self.seconds > 0 else None


def _numbers(lane: Lane) -> dict[str, str]:
    rate = lane.tokens_per_second
    return {
        "tokens written": f"{lane.num_tokens} of {lane.max_new_tokens}",
        "time": f"{lane.seconds:.2f} s",
        "speed": "\u2013" if rate is None else f"{rate:.1f} tokens/s",
        "token-forwards": f"{lane.token_forwards:,}",
        "cache holds": "nothing" if not lane.cache_bytes else format_bytes(lane.cache_bytes),
    }


def _track(lane: Lane, color: str) -> str:
    share = 100 * lane.num_tokens / lane.max_new_tokens if lane.max_new_tokens else 0
    track = "height:6px;border-radius:3px;background:rgba(128,128,128,.22);margin:8px 0 10px"
    meter = 'role="progressbar" aria-valuemin="0" '
    meter += f'aria-valuemax="{lane.max_new_tokens}" aria-valuenow="{lane.num_tokens}"'
    fill = f"height:6px;border-radius:3px;background:{color};width:{share:.1f}%"
    name = escape(f"{lane.name}: tokens written")
    return f'<div {meter} aria-label="{name}" style="{track}"><div style="{fill}"></div></div>'


def _column(lane: Lane, prompt: str) -> str:
    color = palette.color_of(lane.role)
    on = palette.text_on(color)
    chip = f"background:{color};color:{on};border-radius:4px;padding:1px 8px;font-weight:400"
    hollow = "border:1px solid rgba(128,128,128,.7);border-radius:4px;padding:0 7px;opacity:.85"
    look = chip if lane.state == "finished" else hollow
    head = '<div style="display:flex;justify-content:space-between;font-weight:600">'
    head += f"<span>{escape(lane.name)}</span>"
    head += f'<span style="{look}">{STATES.get(lane.state, escape(lane.state))}</span></div>'
    box = "min-height:6.2em;padding:10px 12px;border-radius:4px;overflow-wrap:anywhere;"
    box += f"border:1px solid rgba(128,128,128,.4);white-space:pre-wrap;{MONO}"
    caret = '<span style="opacity:.6">\u258f</span>' if lane.state == "running" else ""
    written = f'<span style="opacity:.7">{escape(prompt)}</span><span>{escape(lane.text)}</span>'
    body = f'<div style="{box}">{written}{caret}</div>'
    edge = f"border-top:4px solid {color};padding-top:10px;flex:1 1 300px;min-width:0"
    numbers = f'<div style="margin-top:10px">{readout_html(_numbers(lane))}</div>'
    return f'<div style="{edge}">{head}{_track(lane, color)}{body}{numbers}</div>'


def race(
    lanes: Sequence[Lane],
    *,
    prompt: str = "",
    verdict: str = "",
    title: str = "",
    scale: float = 1.0,
) -> Picture:
    """Return the lanes side by side; `verdict` is the line below them once both have finished.

    >>> race([Lane("with a cache", num_tokens=3, max_new_tokens=8)]).label
    'with a cache: ready, 3 of 8 tokens.'
    """
    head = f'<div style="font-weight:600;font-size:1.15em;margin-bottom:10px">{escape(title)}</div>'
    columns = "".join(_column(lane, prompt) for lane in lanes)
    body = f'<div style="display:flex;gap:24px;flex-wrap:wrap">{columns}</div>'
    foot = f'<div style="margin-top:12px;font-weight:600">{escape(verdict)}</div>'
    spoken = [
        f"{x.name}: {STATES.get(x.state, x.state)}, {x.num_tokens} of {x.max_new_tokens} tokens."
        for x in lanes
    ]
    label = " ".join([*spoken, verdict]).strip()
    content = (head if title else "") + body + (foot if verdict else "")
    return sheet_html(content, label=label, scale=scale, kind="race")
