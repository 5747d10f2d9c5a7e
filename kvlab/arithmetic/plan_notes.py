"""What a plan says beside its numbers: assumptions, copies on several ranks, refusals."""

from kvlab.arithmetic.plan_inputs import PlanInputs
from kvlab.arithmetic.units import format_bytes


def plan_notes(inputs: PlanInputs) -> tuple[str, ...]:
    """Return the notes of a plan, the most important first."""
    deployment = inputs.deployment
    notes = list(deployment.request(inputs.block_positions).notes)
    notes = [note for note in notes if "engines refuse" not in note]
    if refused := refusal(inputs):
        notes.insert(0, refused)
    notes += [*_memory_notes(inputs), *_weight_notes(inputs), *_length_notes(inputs)]
    return tuple(dict.fromkeys(notes))


def refusal(inputs: PlanInputs) -> str | None:
    """Return why an engine would not start with this layout, or None."""
    tp = inputs.deployment.tp
    heads = inputs.deployment.heads_that_do_not_divide()
    if not heads:
        return None
    said = f"{heads[0]} KV heads and tp {tp}: neither divides the other"
    return f"{said}, engines refuse this; the fullest rank is shown"


def _memory_notes(inputs: PlanInputs) -> list[str]:
    notes, gpu = [], inputs.gpu
    if gpu is not None:
        box, driver = format_bytes(gpu.marketed_bytes), format_bytes(gpu.driver_bytes)
        used = "the plan uses " + format_bytes(inputs.memory_bytes)
        notes.append(f"{gpu.name}: the box says {box}, the driver {driver}; {used}")
    if not inputs.overhead_bytes:
        said = "activations, graphs and buffers take no memory here: an upper bound"
        notes.append(f"overhead 0: {said}")
    if gpu is not None and gpu.bf16_tflops is None:
        notes.append(f"{gpu.name} has no bf16 arithmetic: serve in fp16, which is as large")
    return notes


def _weight_notes(inputs: PlanInputs) -> list[str]:
    deployment = inputs.deployment
    weights, tp, pp = deployment.weights, deployment.tp, deployment.pp
    notes = [f"weights: {weights.parameters:,} parameters, {weights.source}"]
    if weights.copied and tp > 1:
        notes.append("norms are whole on each rank; the embedding and the head are split by rows")
    if 0 < weights.num_kv_heads < tp:
        notes.append("key and value projections are copied with the KV heads they make")
    if weights.tied and pp > 1 and weights.embedding:
        notes.append("tied embedding: the first and the last stage hold a copy each")
    if pp > 1 and len(set(deployment.stage_layers)) > 1:
        notes.append(f"uneven stages: {list(deployment.stage_layers)} layers")
    if inputs.dp > 1:
        notes.append(f"{inputs.dp} replicas divide the requests, not the bytes of one")
    return notes


def _length_notes(inputs: PlanInputs) -> list[str]:
    longest = inputs.deployment.model.max_seq_len
    if longest is not None and inputs.peak_positions > longest:
        said = f"the model was made for {longest:,} positions"
        return [f"{inputs.peak_positions:,} positions asked for: {said}"]
    return []
