"""Llamas with random weights that any engine can load: for sizes, never for what they write.

Eight query heads of 32 numbers, so that two ranks can share them; the names say the KV heads.
"""

import json
import shutil
from pathlib import Path
from typing import Any

from kvlab._paths import data_dir, user_dir
from kvlab.errors import InvalidArgument

KV_HEADS = {"random-8-kv4": 4, "random-8-kv1": 1}
LAYERS, HEADS, HEAD_DIM, WIDTH, MLP, VOCAB = 4, 8, 32, 256, 512, 256


def random_config(name: str) -> dict[str, Any]:
    """Return the config.json of a random Llama.

    >>> random_config("random-8-kv1")["num_key_value_heads"]
    1
    """
    if name not in KV_HEADS:
        raise InvalidArgument("name", name, f"must be one of {', '.join(KV_HEADS)}")
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": VOCAB,
        "hidden_size": WIDTH,
        "intermediate_size": MLP,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS[name],
        "head_dim": HEAD_DIM,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-06,
        "rope_theta": 10000.0,
        "max_position_embeddings": 4096,
        "tie_word_embeddings": False,
        "bos_token_id": 1,
        "eos_token_id": None,
        "torch_dtype": "float32",
    }


def random_folder(name: str) -> Path:
    """Return the folder of a random Llama, written on the first call (8 MB), with a tokenizer."""
    config = random_config(name)
    folder = user_dir() / "engines" / "models" / name
    if not (folder / "config.json").is_file():
        folder.mkdir(parents=True, exist_ok=True)
        _write_weights(folder / "model.safetensors", KV_HEADS[name])
        for file in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copy(data_dir() / "tiny" / file, folder / file)
        (folder / "config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")
    return folder


def _write_weights(path: Path, kv_heads: int) -> None:
    import numpy as np
    from safetensors.numpy import save_file

    draws = np.random.default_rng(7)

    def drawn(rows: int, columns: int) -> Any:
        return (0.05 * draws.standard_normal((rows, columns))).astype(np.float32)

    ones = np.ones(WIDTH, dtype=np.float32)
    tensors = {
        "model.embed_tokens.weight": drawn(VOCAB, WIDTH),
        "lm_head.weight": drawn(VOCAB, WIDTH),
        "model.norm.weight": ones,
    }
    for layer in range(LAYERS):
        at = f"model.layers.{layer}."
        shapes = {
            "self_attn.q_proj": (HEADS * HEAD_DIM, WIDTH),
            "self_attn.k_proj": (kv_heads * HEAD_DIM, WIDTH),
            "self_attn.v_proj": (kv_heads * HEAD_DIM, WIDTH),
            "self_attn.o_proj": (WIDTH, HEADS * HEAD_DIM),
            "mlp.gate_proj": (MLP, WIDTH),
            "mlp.up_proj": (MLP, WIDTH),
            "mlp.down_proj": (WIDTH, MLP),
        }
        tensors |= {f"{at}{part}.weight": drawn(*shape) for part, shape in shapes.items()}
        tensors |= {f"{at}{part}_layernorm.weight": ones for part in ("input", "post_attention")}
    save_file(tensors, str(path), metadata={"format": "pt"})
