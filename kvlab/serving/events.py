"""What happens to requests, as plain rows: engine and simulator write the same ones.

A row says the step, not the time: the scheduler knows no clock. The step of a decode is left out,
because every running sequence takes one unless a row says otherwise.
"""

from collections.abc import Callable
from typing import NamedTuple

QUEUED, REFUSED = "queued", "refused"
ADMITTED, RESUMED, CHUNK = "admitted", "resumed", "chunk"
FIRST_TOKEN, FORKED = "first_token", "forked"
PREEMPTED, SWAPPED_OUT, SWAPPED_IN = "preempted", "swapped_out", "swapped_in"
ENDED = "ended"


class Event(NamedTuple):
    """One row. `tokens` depends on the kind; `note` is a reason or an error.

    queued, refused: tokens of the prompt. admitted, resumed: tokens found in the pool. chunk:
    tokens that a step computes of a prompt. preempted: computed tokens that are lost.
    swapped_out, swapped_in: tokens moved. first_token: tokens now known. forked: tokens shared.
    ended: tokens emitted.
    """

    step: int
    kind: str
    request_id: int
    sample: int
    tokens: int
    note: str = ""


Observer = Callable[[Event], None]
