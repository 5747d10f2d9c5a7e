"""Chapter 06's race: one piece of memory for each request against blocks, on one stream."""

from kvlab.widgets.allocation_race import (
    STREAMS,
    first_refusal,
    race_frame,
    race_steps,
)
from tools.site.cells import Part
from tools.site.live_frames import Choice, player, with_note

BLOCK_SIZE, POLICY, SECONDS = 16, "max", 0.25
_NOTE = (
    f"Here the block size is {BLOCK_SIZE} tokens and a piece has the longest length allowed. "
    "In a running notebook both can be changed."
)


def blocks_part() -> tuple[Part, dict[str, str]]:
    """Return the race on each of the course's streams; it starts at the first refusal."""
    choices = [_choice(number, lengths) for number, lengths in enumerate(STREAMS)]
    about = "The same requests in two memories, step by step"
    part, files = player("blocks", choices, about=about, seconds=SECONDS, choose="requests")
    return with_note(part, _NOTE), files


def _choice(number: int, lengths: str) -> Choice:
    pair = race_steps(lengths, POLICY, BLOCK_SIZE)
    frames = [race_frame(lengths, POLICY, BLOCK_SIZE, step) for step in range(max(map(len, pair)))]
    pieces, blocks = (first_refusal(steps) for steps in pair)
    jumps = (("to the first refusal", pieces), ("to a refusal of blocks", blocks))
    return Choice(lengths, f"allocation-race-{number}", frames, pieces, jumps)
