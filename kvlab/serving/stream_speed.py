"""How fast a stream's batch would be written: the simulator's clock, set to an allocator's step.

The stream (`kvlab.paging.stream`) counts steps; the clock prices one decode step of its batch. Left
out, beside what the clock leaves out: the prompts that are read when a request is admitted.
"""

from kvlab.paging.stream import StreamStep
from kvlab.serving.plan import StepLoad
from kvlab.serving.step_clock import StepClock


def stream_speed(step: StreamStep, clock: StepClock) -> float:
    """Return the tokens a second of the batch that runs after a step, at most; 0 where none runs.

    >>> from kvlab.arithmetic.plan_deployment import Deployment
    >>> from kvlab.arithmetic.roofline import Device
    >>> from kvlab.paging import BlockManager
    >>> from kvlab.paging.stream import make_stream, run_stream
    >>> clock = StepClock(Deployment.of("llama-2-13b"), Device.of("A100 40GB"))
    >>> stream = make_stream(4, mean_prompt=20, mean_output=10, spread=0, every=1)
    >>> steps = run_stream(BlockManager(64, 16), stream)
    >>> [round(stream_speed(step, clock)) for step in steps][:4]
    [60, 119, 179, 238]
    """
    batch = len(step.running)
    if not batch:
        return 0.0
    held = sum(piece.filled for piece in step.pieces)
    return batch / clock.seconds(StepLoad(batch, batch, batch, held, held))
