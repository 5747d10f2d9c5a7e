"""What binds a plan: memory, or the time to the first token and for each token after it.

The times are lower bounds (`roofline`), so a target that is missed here is missed for certain.
"""

from dataclasses import dataclass

from kvlab.arithmetic.roofline import Device, PassTime, time_decode, time_prefill
from kvlab.arithmetic.sizing import Plan
from kvlab.errors import InvalidArgument

LARGEST_BATCH = 2**20
WEIGHTS, CAPACITY, BANDWIDTH, COMPUTE, NOTHING = (
    "weights", "capacity", "bandwidth", "compute", "nothing",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PlanTiming:
    """The least times of a replica: a prompt alone, and a step with all its requests at the peak.

    `batch` are the requests of that step: the users of the fullest replica, or all that fit.
    """

    ttft: PassTime
    tpot: PassTime
    batch: int

    @property
    def tokens_per_second(self) -> float:
        """Tokens that one replica emits a second at most."""
        return self.tpot.tokens_per_second


@dataclass(frozen=True, slots=True)
class Binding:
    """What stops a replica first. Counts are requests of a replica, None where nothing limits.

    `limit` is weights, capacity, bandwidth (TPOT target), compute (TTFT or TPOT target) or nothing
    (the users given fit and are in time).
    """

    limit: str
    by_capacity: int | None
    by_tpot: int | None
    meets_ttft: bool | None
    says: str

    @property
    def requests(self) -> int | None:
        """Requests that fit and are in time."""
        if self.meets_ttft is False:
            return 0
        counts = [n for n in (self.by_capacity, self.by_tpot) if n is not None]
        return min(counts, default=None)


def device_of(plan: Plan, device: Device | None = None) -> Device | None:
    """Return the device to time a plan on: the one given, or the plan's GPU."""
    if device is not None or plan.inputs.gpu is None:
        return device
    return Device.of(plan.inputs.gpu)


def time_plan(plan: Plan, device: Device | None = None) -> PlanTiming | None:
    """Return the least times of a plan; None when no request fits or no device is known.

    >>> from kvlab.arithmetic.sizing import plan
    >>> timing = time_plan(plan("llama-3.1-70b", gpu="H100", gpus=8, context=131_072))
    >>> round(timing.ttft.seconds, 1), round(1000 * timing.tpot.seconds, 1), timing.batch
    (5.1, 22.9, 11)
    """
    chosen, bound, inputs = device_of(plan, device), plan.admission_bound, plan.inputs
    if chosen is None or bound == 0:
        return None
    wanted = plan.users_per_replica if inputs.users else bound or 1
    batch = wanted if bound is None else min(wanted, bound)
    prefill = time_prefill(inputs.deployment, chosen, prompt_tokens=inputs.context)
    step = time_decode(inputs.deployment, chosen, context=inputs.peak_positions, batch=batch)
    return PlanTiming(prefill, step, batch)


def what_binds(plan: Plan, device: Device | None = None) -> Binding:
    """Return what stops a replica first: a request may fit and still be late.

    >>> from kvlab.arithmetic.sizing import plan
    >>> inputs = dict(gpu="H100", gpus=8, context=32_768)
    >>> what_binds(plan("llama-3.1-70b", **inputs)).says
    'capacity binds: 44 request(s) fit on a replica'
    >>> what_binds(plan("llama-3.1-70b", **inputs, tpot_target=0.015)).says
    'bandwidth binds: 44 request(s) fit on a replica, 24 are in time (TPOT)'
    """
    chosen, inputs = device_of(plan, device), plan.inputs
    if chosen is None and (inputs.ttft_target or inputs.tpot_target):
        rule = "a target in seconds needs a GPU of the catalogue or a device"
        raise InvalidArgument("gpu", None, rule)
    bound = plan.admission_bound
    if bound == 0:
        weights = any(rank.short_bytes(0) for rank in plan.ranks)
        return Binding(WEIGHTS if weights else CAPACITY, 0, None, None, plan.verdict)
    by_tpot = None if chosen is None else _in_time(plan, chosen)
    meets = None if chosen is None else _meets_ttft(plan, chosen)
    return _judge(plan, chosen, by_tpot, meets)


def _judge(plan: Plan, device: Device | None, by_tpot: int | None, meets: bool | None) -> Binding:
    bound, users = plan.admission_bound, plan.users_per_replica if plan.inputs.users else None
    fit = f"{'any number of' if bound is None else bound} request(s) fit on a replica"
    if meets is False:
        said = f"compute binds: {fit}, but a prompt alone misses the TTFT target"
        if by_tpot is not None and (bound is None or by_tpot < (users or bound)):
            said += f", and only {by_tpot} meet the TPOT target"
        return Binding(COMPUTE, bound, by_tpot, meets, said)
    served = min((n for n in (bound, by_tpot) if n is not None), default=None)
    if users is not None and (served is None or users <= served):
        said = f"nothing binds: {users} request(s) on a replica fit and are in time"
        return Binding(NOTHING, bound, by_tpot, meets, said)
    if by_tpot is not None and device is not None and (bound is None or by_tpot < bound):
        step = time_decode(
            plan.inputs.deployment, device, context=plan.inputs.peak_positions, batch=by_tpot + 1
        )
        limit = COMPUTE if step.bound == COMPUTE else BANDWIDTH
        said = f"{limit} binds: {fit}, {by_tpot} are in time (TPOT)"
        return Binding(limit, bound, by_tpot, meets, said)
    return Binding(CAPACITY, bound, by_tpot, meets, f"capacity binds: {fit}")


def _meets_ttft(plan: Plan, device: Device) -> bool | None:
    inputs = plan.inputs
    if inputs.ttft_target is None:
        return None
    prefill = time_prefill(inputs.deployment, device, prompt_tokens=inputs.context)
    return prefill.seconds <= inputs.ttft_target


def _in_time(plan: Plan, device: Device) -> int | None:
    """The largest batch whose step meets the TPOT target: the step's time rises with the batch."""
    inputs = plan.inputs
    if inputs.tpot_target is None:
        return None
    low, high = 0, (plan.admission_bound or LARGEST_BATCH) + 1
    while high - low > 1:
        middle = (low + high) // 2
        step = time_decode(inputs.deployment, device, context=inputs.peak_positions, batch=middle)
        low, high = (middle, high) if step.seconds <= inputs.tpot_target else (low, middle)
    return low
