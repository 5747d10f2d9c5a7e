"""Where a model runs and in which number format: chosen once, and said aloud.

CUDA when it is there, else the CPU. Apple's MPS is refused by name: nothing here was tried on it.
"""

import platform

import torch

from kvlab.errors import InvalidArgument

DTYPES = {
    "float32": torch.float32,
    "fp32": torch.float32,
    "bfloat16": torch.bfloat16,
    "bf16": torch.bfloat16,
    "float16": torch.float16,
    "fp16": torch.float16,
}
_MPS_RULE = "kvlab is not tested on Apple's MPS and does not use it; say 'cpu', which is fast there"


def choose_device(name: str | torch.device | None = None) -> torch.device:
    """Return the device called `name` (any case), or the best one for None and "auto".

    Raises `InvalidArgument` for a CUDA device that is not there, for MPS and for other names.

    >>> choose_device("CPU")
    device(type='cpu')
    """
    if name is None or str(name).lower() == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(str(name).lower())
    except RuntimeError:
        raise InvalidArgument("device", str(name), "must be 'auto', 'cpu' or 'cuda'") from None
    if device.type == "mps":
        raise InvalidArgument("device", str(name), _MPS_RULE)
    if device.type not in ("cpu", "cuda") or (device.type == "cpu" and device.index):
        raise InvalidArgument("device", str(name), "must be 'auto', 'cpu' or 'cuda'")
    if device.type == "cuda":
        _check_cuda(device, str(name))
        return device
    return torch.device("cpu")


def _check_cuda(device: torch.device, name: str) -> None:
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if count == 0:
        rule = "there is no CUDA device here; leave device out, or say 'cpu'"
        raise InvalidArgument("device", name, rule)
    if (device.index or 0) >= count:
        raise InvalidArgument("device", name, f"this machine's CUDA devices are 0 to {count - 1}")


def choose_dtype(
    device: str | torch.device | None = None, name: str | torch.dtype | None = None
) -> torch.dtype:
    """Return the dtype called `name`, or the one that suits the device for None and "auto".

    float32 on every CPU: without bf16 instructions bf16 is several times slower, and where they
    exist float32 still gives everybody the same printed numbers. bfloat16 on a GPU that computes
    in it, else float32. Raises `InvalidArgument` for an unknown name.

    >>> choose_dtype("cpu"), choose_dtype("cpu", "bf16")
    (torch.float32, torch.bfloat16)
    """
    if isinstance(name, str) and name.lower() != "auto":
        name = DTYPES.get(name.lower().removeprefix("torch."), name)
    if isinstance(name, torch.dtype) and name in DTYPES.values():
        return name
    if name is not None and str(name).lower() != "auto":
        raise InvalidArgument("dtype", str(name), "must be float32, bfloat16 or float16")
    return torch.bfloat16 if gpu_has_bf16(choose_device(device)) else torch.float32


def gpu_has_bf16(device: torch.device) -> bool:
    """Say whether this is a CUDA device with bf16 units (compute capability 8.0 or more).

    >>> gpu_has_bf16(torch.device("cpu"))
    False
    """
    return device.type == "cuda" and torch.cuda.get_device_capability(device)[0] >= 8


def cpu_has_bf16() -> bool:
    """Say whether the processor has bf16 instructions, as far as torch knows."""
    read = getattr(torch.cpu, "get_capabilities", dict)  # absent before torch 2.11
    capabilities = read() or {}
    return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))


def device_name(device: torch.device) -> str:
    """Return what the device calls itself, as "NVIDIA H200" or "AMD EPYC"."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    read = getattr(torch.cpu, "get_capabilities", dict)
    return (read() or {}).get("cpu_name") or platform.processor() or platform.machine()


def describe_device(
    device: str | torch.device | None = None, dtype: str | torch.dtype | None = None
) -> str:
    """Say in one line where models run, in which dtype, and why.

    >>> describe_device("cpu").startswith("cpu (")
    True
    """
    chosen = choose_device(device)
    kind = choose_dtype(chosen, dtype)
    where = f"{chosen} ({device_name(chosen)})"
    return f"{where}, {str(kind).removeprefix('torch.')}: {_why(chosen, kind)}"


def _why(device: torch.device, dtype: torch.dtype) -> str:
    if device.type == "cuda":
        if dtype == torch.float32:
            return "exact; bfloat16 needs a GPU of compute capability 8.0 or more to be fast"
        return (
            "half the bytes of float32, and the GPU computes in it; printed logits differ a little"
        )
    if dtype != torch.float32:
        return "as asked; on a CPU it is often slower than float32 and its numbers differ a little"
    if cpu_has_bf16():
        return "this processor has bf16 instructions, but float32 gives everybody the same numbers"
    return "this processor is known to have no bf16 instructions, where bf16 would be slower"
