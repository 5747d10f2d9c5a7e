"""A GGUF file with its matrices in 8 bits (Q8_0) made from one with 4: for a peer to read.

Each 32 numbers get one 16-bit scale: 34 bytes for 32 weights. Everything else is copied.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any


def write_q8(source: Path, target: Path) -> Path:
    """Write `target` as `source` with every quantised matrix in Q8_0; return it.

    The numbers are those of `source` rounded once more, so it is not the original in 8 bits.
    """
    import gguf

    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, arch="llama", endianess=reader.endianess)
    for field in reader.fields.values():
        if field.name == gguf.Keys.General.ARCHITECTURE or field.name.startswith("GGUF."):
            continue  # the writer writes these itself
        kind = field.types[0]
        inner = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        value: Any = field.contents()
        if field.name == gguf.Keys.General.FILE_TYPE:
            value = int(gguf.LlamaFileType.MOSTLY_Q8_0)
        writer.add_key_value(field.name, value, kind, sub_type=inner)
    q8, exact = gguf.GGMLQuantizationType.Q8_0, gguf.GGMLQuantizationType.F32
    for tensor in reader.tensors:
        if tensor.tensor_type in (exact, gguf.GGMLQuantizationType.F16):
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
        else:
            numbers = gguf.dequantize(tensor.data, tensor.tensor_type)
            writer.add_tensor(tensor.name, gguf.quantize(numbers, q8), raw_dtype=q8)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return target
