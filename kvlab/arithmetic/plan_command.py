"""The command line that starts vLLM as planned, or why there is none."""

import shlex

from kvlab.arithmetic.plan_notes import refusal
from kvlab.arithmetic.plan_pages import MAX_BATCHED_TOKENS
from kvlab.arithmetic.plan_timing import what_binds
from kvlab.arithmetic.sizing import Plan

VLLM_CACHE_DTYPES = {"bf16": "auto", "fp16": "auto", "fp8": "fp8"}
"""Our name -> the value of --kv-cache-dtype; "auto" is the dtype of the model."""

VLLM_DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}


def no_command(plan: Plan) -> str | None:
    """Return why vLLM would not start with this plan, or None."""
    inputs = plan.inputs
    if (refused := refusal(inputs)) is not None:
        return refused
    if plan.admission_bound == 0:
        return plan.verdict
    if inputs.deployment.cache_dtype not in VLLM_CACHE_DTYPES:
        return f"vLLM keeps no cache in {inputs.deployment.cache_dtype}"
    if sequences(plan) == 0:
        return "no request is in time"
    return None


def sequences(plan: Plan) -> int | None:
    """Return the requests to let into a replica: fitting, in time, the users at most; None: any.

    >>> from kvlab.arithmetic.sizing import plan
    >>> box = dict(gpu="H100", gpus=8, context=32_768)
    >>> sequences(plan("llama-3.1-70b", **box)), sequences(plan("llama-3.1-70b", users=9, **box))
    (44, 9)
    >>> sequences(plan("llama-3.1-70b", **box, users=40, tpot_target=0.015))
    24
    """
    users = plan.users_per_replica if plan.inputs.users else None
    counts = (plan.admission_bound, what_binds(plan).requests, users)
    return min((n for n in counts if n is not None), default=None)


def vllm_command(plan: Plan) -> str:
    """Return `vllm serve ...` for a plan, or "" when `no_command` says why not.

    The engine measures its overhead at start-up, so none is given. Weights narrower than 16 bits
    are a property of the checkpoint that is named, so no flag is given for them either.

    >>> from kvlab.arithmetic.sizing import plan
    >>> print(vllm_command(plan("llama-3.1-70b", gpu="H100", gpus=8, context=131_072)))
    vllm serve meta-llama/Llama-3.1-70B --dtype bfloat16 --tensor-parallel-size 8 \
--max-model-len 131072 --gpu-memory-utilization 0.9 --block-size 16 --max-num-seqs 11
    """
    if no_command(plan) is not None:
        return ""
    inputs, deployment = plan.inputs, plan.inputs.deployment
    words = ["vllm", "serve", shlex.quote(deployment.model.name)]
    if deployment.weights_dtype in VLLM_DTYPES:
        words += ["--dtype", VLLM_DTYPES[deployment.weights_dtype]]
    words += ["--tensor-parallel-size", str(deployment.tp)]
    if deployment.pp > 1:
        words += ["--pipeline-parallel-size", str(deployment.pp)]
    if inputs.dp > 1:
        words += ["--data-parallel-size", str(inputs.dp)]
    if VLLM_CACHE_DTYPES[deployment.cache_dtype] != "auto":
        words += ["--kv-cache-dtype", VLLM_CACHE_DTYPES[deployment.cache_dtype]]
    words += ["--max-model-len", str(inputs.peak_positions)]
    words += ["--gpu-memory-utilization", f"{float(inputs.utilization):g}"]
    words += ["--block-size", str(inputs.block_size)]
    if any(rank.charged_bytes for rank in plan.ranks):
        words += ["--max-num-batched-tokens", str(MAX_BATCHED_TOKENS)]
    if (most := sequences(plan)) is not None:
        words += ["--max-num-seqs", str(most)]
    return " ".join(words)
