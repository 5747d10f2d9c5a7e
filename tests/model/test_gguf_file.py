"""The conversion of a GGUF: weights, config and tokenizer are those of the file."""

import json
from pathlib import Path

import numpy as np
import pytest
import tiny_gguf
from gguf import GGMLQuantizationType, dequantize, quantize
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file

from kvlab.errors import NotVerified, Unsupported
from kvlab.model.gguf_file import GgufLlama, tensor_name, unpermute
from kvlab.model.safetensors_file import safetensors_chunks
from kvlab.model.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder into which the tiny GGUF turns."""
    folder = tmp_path_factory.mktemp("converted")
    for name, chunks in GgufLlama(tiny_gguf.write_gguf(folder / "x.gguf")).files():
        (folder / name).write_bytes(b"".join(bytes(chunk) for chunk in chunks))
    return folder


def test_weights_are_those_of_the_file_in_hugging_faces_order(folder: Path) -> None:
    expected = tiny_gguf.tensors()
    for name, weight in load_file(folder / "model.safetensors").items():
        want = expected.pop(name)
        if "q_proj" in name:  # packed in 8 bits by the writer
            want = dequantize(quantize(want, GGMLQuantizationType.Q8_0), GGMLQuantizationType.Q8_0)
        assert np.array_equal(weight, want), name
    assert not expected


def test_the_config_is_read_from_the_metadata(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert config["rope_parameters"] == {"rope_type": "default", "rope_theta": 1000.0}
    assert config["rms_norm_eps"] == 1e-5
    assert (config["num_key_value_heads"], config["head_dim"]) == (2, 16)
    assert config["tie_word_embeddings"] is True


@given(
    heads=st.integers(1, 5),
    half=st.integers(1, 6),
    hidden=st.integers(1, 4),
    seed=st.integers(0, 9),
)
def test_unpermute_undoes_permute(heads: int, half: int, hidden: int, seed: int) -> None:
    weight = np.random.default_rng(seed).standard_normal((heads * 2 * half, hidden))
    assert np.array_equal(unpermute(tiny_gguf.permute(weight, heads), heads), weight)


@pytest.mark.parametrize("name", ["rope_freqs.weight", "blk.0.ffn_gate_inp.weight", "nonsense"])
def test_a_tensor_no_llama_has_is_named(name: str) -> None:
    with pytest.raises(Unsupported, match=name):
        tensor_name(name)


def test_another_architecture_or_tokenizer_rule_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="gpt9"):
        GgufLlama(tiny_gguf.write_gguf(tmp_path / "a.gguf", architecture="gpt9"))
    other = GgufLlama(tiny_gguf.write_gguf(tmp_path / "b.gguf", pre="qwen2"))
    with pytest.raises(Unsupported, match="qwen2"):
        list(other.files())


def test_a_file_that_is_no_gguf_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.gguf").write_bytes(b"no such thing" * 9)
    with pytest.raises(NotVerified, match=r"x\.gguf"):
        GgufLlama(tmp_path / "x.gguf")


def test_our_safetensors_writer_writes_what_the_library_reads(tmp_path: Path) -> None:
    arrays = {"b": np.arange(6, dtype=np.float32).reshape(2, 3), "a": np.float32([[7.0]])}
    shapes = {name: array.shape for name, array in arrays.items()}
    content = b"".join(bytes(chunk) for chunk in safetensors_chunks(shapes, arrays.__getitem__))
    (tmp_path / "x.safetensors").write_bytes(content)
    read = load_file(tmp_path / "x.safetensors")
    assert read.keys() == arrays.keys()
    assert all(np.array_equal(read[name], arrays[name]) for name in arrays)


@pytest.fixture(scope="module")
def tiny_tokenizer(folder: Path) -> Tokenizer:
    """Give the tokenizer of the tiny file."""
    return Tokenizer(folder)


@given(text=st.text())
def test_any_text_comes_back_as_it_was(tiny_tokenizer: Tokenizer, text: str) -> None:
    assert tiny_tokenizer.decode(tiny_tokenizer.encode(text), skip_special=False) == text


@pytest.mark.parametrize("text", ["12", " 12", "a\n\n1", "x²½"])
def test_each_digit_is_a_token_of_its_own(tiny_tokenizer: Tokenizer, text: str) -> None:
    pieces = [tiny_tokenizer.decode([number]) for number in tiny_tokenizer.encode(text)]
    assert all(len(piece) == 1 for piece in pieces if any(c.isdigit() for c in piece))


def test_special_tokens_are_one_id_and_end_the_text(tiny_tokenizer: Tokenizer) -> None:
    assert tiny_tokenizer.encode("ab<|im_end|>")[-1] == 2
    assert tiny_tokenizer.stop_ids == (2,)
    assert tiny_tokenizer.decode(tiny_tokenizer.encode("ab<|im_end|>")) == "ab"
