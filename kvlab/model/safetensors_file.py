"""The safetensors format, written tensor by tensor: one tensor in memory at a time.

The library's writer wants all tensors at once; this one also gives the same bytes everywhere, so
that the result can be pinned. Reading is left to the library.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np

_NAMES = {"float32": "F32", "float16": "F16"}
_ALIGNMENT = 64  # bytes: where the numbers start, so that mapped weights suit vector instructions


def safetensors_chunks(
    shapes: Mapping[str, tuple[int, ...]],
    tensor: Callable[[str], np.ndarray],
    dtype: str = "float32",
) -> Iterator[bytes]:
    """Yield a safetensors file: 8 bytes of header length, a JSON header, then the raw numbers.

    Tensors stand in the order of `shapes`; `tensor(name)` is called when its turn comes.

    >>> chunks = safetensors_chunks({"a": (2,)}, lambda name: np.array([1.0, 2.0], np.float32))
    >>> len(b"".join(chunks)) % 64
    8
    """
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    start = 0
    for name, shape in shapes.items():
        end = start + int(np.prod(shape)) * np.dtype(dtype).itemsize
        header[name] = {"dtype": _NAMES[dtype], "shape": list(shape), "data_offsets": [start, end]}
        start = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % _ALIGNMENT)
    yield len(text).to_bytes(8, "little")
    yield text
    yield from _raw(shapes, tensor, dtype)


def _raw(
    shapes: Mapping[str, tuple[int, ...]], tensor: Callable[[str], np.ndarray], dtype: str
) -> Iterable[bytes]:
    for name, shape in shapes.items():
        array = tensor(name)
        if array.shape != shape:
            raise ValueError(f"{name}: shape {array.shape}, but {shape} was promised")
        yield np.ascontiguousarray(array, np.dtype(dtype).newbyteorder("<")).data.cast("B")
