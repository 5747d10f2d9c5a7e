"""From a verified GGUF file to a Hugging Face folder: config, tokenizer, float32 safetensors.

Only Llama files. The weights stay what the 4-bit file holds, written out in float32: exact, but not
the numbers of the checkpoint from which the GGUF was made.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from kvlab.errors import NotVerified, Unsupported
from kvlab.model.gguf_tokenizer import tokenizer_files
from kvlab.model.safetensors_file import safetensors_chunks

_TOP = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
}
_IN_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def tensor_name(gguf_name: str) -> str:
    """Return the Hugging Face name of a tensor; raises `Unsupported` for one no Llama has.

    >>> tensor_name("blk.3.attn_q.weight")
    'model.layers.3.self_attn.q_proj.weight'
    """
    parts = gguf_name.split(".")
    if len(parts) == 2 and parts[0] in _TOP:
        return f"{_TOP[parts[0]]}.{parts[1]}"
    if len(parts) == 4 and parts[0] == "blk" and parts[2] in _IN_LAYER:
        return f"model.layers.{parts[1]}.{_IN_LAYER[parts[2]]}.{parts[3]}"
    raise Unsupported(f"{gguf_name}: no tensor of a Llama")


def unpermute(weight: np.ndarray, num_heads: int) -> np.ndarray:
    """Return q or k rows in Hugging Face's order; `weight` is (num_heads * head_dim, hidden_size).

    GGUF pairs neighbours for RoPE (rows 0 and 1 turn together); Hugging Face pairs row i with row
    i + head_dim / 2.

    >>> unpermute(np.arange(4).reshape(4, 1), num_heads=1).ravel().tolist()
    [0, 2, 1, 3]
    """
    pairs = weight.reshape(num_heads, -1, 2, weight.shape[-1])  # (heads, head_dim / 2, 2, hidden)
    return pairs.swapaxes(1, 2).reshape(weight.shape)


class GgufLlama:
    """A Llama in a GGUF file, read on demand: `config`, `shapes` and one tensor at a time."""

    def __init__(self, path: Path) -> None:
        from gguf import GGUFReader

        try:
            self._reader = GGUFReader(path)
        except Exception as error:  # the reader has no error of its own
            raise NotVerified(f"{path}: not a readable GGUF file ({error})") from None
        if self.value("general.architecture") != "llama":
            raise Unsupported(
                f"{path}: architecture {self.value('general.architecture')!r}, not llama"
            )
        self._tensors = {tensor_name(tensor.name): tensor for tensor in self._reader.tensors}
        self.config = self._read_config()

    def value(self, key: str, default: Any = None) -> Any:
        """Return one metadata value of the file, or `default`."""
        field = self._reader.get_field(key)
        return default if field is None else field.contents()

    def _llama(self, key: str, default: Any = None) -> Any:
        return self.value(f"llama.{key}", default)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of each tensor by its Hugging Face name, in alphabetical order."""
        # GGUF writes the fastest axis first
        return {
            name: tuple(int(size) for size in reversed(self._tensors[name].shape))
            for name in sorted(self._tensors)
        }

    def tensor(self, name: str) -> np.ndarray:
        """Return one tensor as float32, in Hugging Face's row order."""
        from gguf import dequantize

        packed = self._tensors[name]
        weight = dequantize(packed.data, packed.tensor_type).astype(np.float32, copy=False)
        if ".q_proj." in name:
            return unpermute(weight, self.config["num_attention_heads"])
        if ".k_proj." in name:
            return unpermute(weight, self.config["num_key_value_heads"])
        return weight

    def _read_config(self) -> dict[str, Any]:
        llama = self._llama
        heads, hidden = llama("attention.head_count"), llama("embedding_length")
        return {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "num_hidden_layers": llama("block_count"),
            "num_attention_heads": heads,
            "num_key_value_heads": llama("attention.head_count_kv", heads),
            "head_dim": llama("attention.key_length", hidden // heads),
            "hidden_size": hidden,
            "intermediate_size": llama("feed_forward_length"),
            "vocab_size": self.shapes["model.embed_tokens.weight"][0],
            "max_position_embeddings": llama("context_length"),
            "hidden_act": "silu",
            # the file holds float32 1e-5 as 9.999999747378752e-06; seven digits give it back
            "rms_norm_eps": float(f"{llama('attention.layer_norm_rms_epsilon'):.7g}"),
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": llama("rope.freq_base", 10_000.0),
            },
            "attention_bias": False,
            "mlp_bias": False,
            "tie_word_embeddings": "lm_head.weight" not in self.shapes,
            "bos_token_id": self.value("tokenizer.ggml.bos_token_id"),
            "eos_token_id": self.value("tokenizer.ggml.eos_token_id"),
            "pad_token_id": self.value("tokenizer.ggml.padding_token_id"),
            "dtype": "float32",
        }

    def files(self) -> Iterator[tuple[str, Iterable[bytes]]]:
        """Yield the name and the bytes of each file of the Hugging Face folder."""
        texts = {"config.json": self.config, **tokenizer_files(self.value)}
        for name, content in texts.items():
            yield name, [json.dumps(content, indent=1, ensure_ascii=False).encode(), b"\n"]
        yield "model.safetensors", safetensors_chunks(self.shapes, self.tensor)
