"""What a plan starts from: one replica, the memory of a rank, the requests, and the targets."""

from dataclasses import dataclass, replace
from dataclasses import fields as dataclass_fields
from fractions import Fraction
from typing import Any

from kvlab.arithmetic.checks import whole_number
from kvlab.arithmetic.gpus import Gpu, find_gpu
from kvlab.arithmetic.plan_checks import parallel_layout, positive, share
from kvlab.arithmetic.plan_deployment import Deployment, ModelSource
from kvlab.errors import InvalidArgument

UTILIZATION = 0.9
"""The default share of a GPU's memory that the engine may take, always said in its command."""


@dataclass(frozen=True)
class PlanInputs:
    """Everything a plan depends on. Bytes are for one rank; `dp` counts replicas.

    `context` are the tokens of a request when it is admitted, `output` those reserved for its
    growth. `memory_bytes` is what one GPU has in all.
    """

    deployment: Deployment
    memory_bytes: int
    gpu: Gpu | None
    dp: int
    context: int
    output: int
    users: int | None
    utilization: Fraction
    overhead_bytes: int
    block_size: int
    ttft_target: float | None
    tpot_target: float | None

    @property
    def peak_positions(self) -> int:
        """Positions that a request may reach: the bound on which admission rests.

        The last token emitted is never fed back, so a cache ends one position earlier; engines
        count it in their maximum length, and so does this.
        """
        return self.context + self.output

    @property
    def block_positions(self) -> int:
        """The peak rounded up to whole blocks."""
        return -(-self.peak_positions // self.block_size) * self.block_size

    @property
    def gpus(self) -> int:
        """All GPUs of the plan."""
        return self.deployment.ranks * self.dp

    @property
    def usable_bytes(self) -> int:
        """The share of one GPU's memory that may be used."""
        return int(self.memory_bytes * self.utilization)

    def change(self, **fields: Any) -> "PlanInputs":
        """Return these inputs with some fields replaced, those of the deployment included."""
        own = {field.name for field in dataclass_fields(self)}
        mine = {key: value for key, value in fields.items() if key in own}
        theirs = {key: value for key, value in fields.items() if key not in own}
        return replace(self, **mine, deployment=replace(self.deployment, **theirs))


def plan_inputs(
    model: ModelSource,
    *,
    context: int,
    gpu: "str | Gpu | None" = None,
    gpu_bytes: int | None = None,
    gpus: int | None = None,
    tp: int | None = None,
    pp: int = 1,
    dp: int | None = None,
    output: int = 0,
    users: int | None = None,
    utilization: float = UTILIZATION,
    overhead_bytes: int = 0,
    block_size: int = 16,
    ttft_target: float | None = None,
    tpot_target: float | None = None,
    **deployment: Any,
) -> PlanInputs:
    """Return the inputs of a plan, each one checked by name; see `sizing.plan` for their meaning.

    >>> inputs = plan_inputs("llama-3.1-70b", gpu="H100", gpus=8, context=8192, output=1024)
    >>> inputs.deployment.tp, inputs.dp, inputs.peak_positions
    (8, 1, 9216)
    """
    card = gpu if gpu is None or isinstance(gpu, Gpu) else find_gpu(gpu)
    ranks, stages, replicas = parallel_layout(gpus, tp, pp, dp)
    return PlanInputs(
        deployment=Deployment.of(model, tp=ranks, pp=stages, **deployment),
        memory_bytes=_memory(card, gpu_bytes),
        gpu=card,
        dp=replicas,
        context=whole_number("context", context),
        output=whole_number("output", output, minimum=0),
        users=None if users is None else whole_number("users", users),
        utilization=share("utilization", utilization),
        overhead_bytes=whole_number("overhead_bytes", overhead_bytes, minimum=0),
        block_size=whole_number("block_size", block_size),
        ttft_target=None if ttft_target is None else positive("ttft_target", ttft_target),
        tpot_target=None if tpot_target is None else positive("tpot_target", tpot_target),
    )


def _memory(card: Gpu | None, gpu_bytes: object) -> int:
    if gpu_bytes is not None:
        return whole_number("gpu_bytes", gpu_bytes)
    if card is None:
        raise InvalidArgument("gpu", None, "give a GPU of the catalogue, or gpu_bytes")
    return card.driver_bytes
