"""Loading: the right model, once, without copies; by name, folder or hub id."""

import gc
import pickle
import shutil
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tiny_folder import Q_PROJ, WEIGHTS, edit_weights, shard, write_folder

from kvlab.errors import KvlabError, ModelUnavailable, UnsafeCheckpoint
from kvlab.model import bundled, find, hub
from kvlab.model.load import forget_models, load_model


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give the folder of a tiny Llama, with a space and an accent in its name."""
    return write_folder(tmp_path / "mein Modell é")


def _logits(path: Path) -> torch.Tensor:
    loaded = load_model(path, device="cpu")
    return loaded.model(loaded.encode("ab 12"))


def test_logits_equal_those_of_transformers(folder: Path) -> None:
    import transformers

    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    loaded = load_model(folder, device="cpu")
    ids = loaded.encode("ab 12 abba")
    with torch.no_grad():
        expected = theirs(ids, use_cache=False).logits
    assert torch.allclose(loaded.model(ids), expected, atol=1e-5 * float(expected.abs().max()))


def test_a_sharded_checkpoint_gives_the_same_logits(folder: Path) -> None:
    whole = _logits(folder)
    shard(folder)
    assert torch.equal(_logits(folder), whole)


def test_every_dtype_is_the_files_numbers_rounded_once(folder: Path) -> None:
    exact = load_file(folder / WEIGHTS)
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        state = load_model(folder, device="cpu", dtype=dtype).model.state_dict()
        assert all(torch.equal(state[name], exact[name].to(dtype)) for name in exact)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here")
def test_weights_are_the_same_bytes_on_a_gpu(folder: Path) -> None:
    exact = load_file(folder / WEIGHTS)
    state = load_model(folder, device="cuda", dtype="float32").model.state_dict()
    assert all(torch.equal(state[name].cpu(), exact[name]) for name in exact)


def test_a_tied_head_is_the_embedding_itself(folder: Path) -> None:
    model = load_model(folder, device="cpu").model
    assert model.lm_head.weight is model.model.embed_tokens.weight


def test_the_model_is_ready_to_run_and_draws_no_gradients(folder: Path) -> None:
    model = load_model(folder, device="cpu").model
    assert not model.training
    assert not any(parameter.requires_grad or parameter.is_meta for parameter in model.parameters())


def test_loading_again_gives_the_model_in_memory(folder: Path) -> None:
    first = load_model(folder, device="cpu")
    assert load_model(str(folder), device="cpu") is first
    assert load_model(folder, device="cpu", dtype="bf16") is not first


def test_a_changed_file_is_another_model(folder: Path) -> None:
    first = load_model(folder, device="cpu")
    edit_weights(folder, lambda weights: weights[Q_PROJ].zero_())
    second = load_model(folder, device="cpu")
    assert second is not first
    assert not second.model.state_dict()[Q_PROJ].any()


def test_models_nobody_holds_are_let_go(folder: Path, tmp_path: Path) -> None:
    folders = [shutil.copytree(folder, tmp_path / str(number)) for number in range(4)]
    seen = [weakref.ref(load_model(path, device="cpu")) for path in folders]
    gc.collect()
    assert sum(ref() is not None for ref in seen) == 2  # the last two are kept for reuse
    forget_models()
    gc.collect()
    assert not any(ref() for ref in seen)


def test_a_model_shows_itself_in_one_short_line(folder: Path) -> None:
    line = repr(load_model(folder, device="cpu"))
    assert line.endswith("float32 on cpu")
    assert len(line) < 80


def test_old_extra_tensors_do_no_harm(folder: Path) -> None:
    extra = {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(8)}
    edit_weights(folder, lambda weights: weights.update(extra))
    assert _logits(folder).isfinite().all()


def test_a_pickle_beside_safetensors_is_left_alone(folder: Path) -> None:
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps("never read"))
    assert _logits(folder).isfinite().all()


# ---- the hub ----------------------------------------------------------------------------------


def _refused(name: str, error: type[KvlabError], *words: str) -> None:
    with pytest.raises(error) as caught:
        load_model(name, device="cpu")
    assert all(word in str(caught.value) for word in words)


def test_tiny_is_said_to_be_absent_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundled, "data_dir", lambda: tmp_path)
    _refused("Tiny", ModelUnavailable, "tiny")


def test_offline_a_hub_model_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    _refused("some-owner/some-model", ModelUnavailable, "some-owner/some-model", "HF_HUB_OFFLINE")


def test_a_short_name_of_the_catalogue_becomes_a_hub_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find, "hub_folder", lambda hub_id: Path(hub_id))
    assert find.find_folder("LLAMA-3.1-8b")[0] == "meta-llama/Llama-3.1-8B"


class FakeHub:
    """Answers like the hub's API with a list of file names."""

    files: tuple[str, ...] = ()

    def model_info(self, hub_id: str, **_: Any) -> Any:
        """Return the listing."""
        siblings = [type("File", (), {"rfilename": name, "size": 5}) for name in self.files]
        return type("Info", (), {"siblings": siblings, "sha": "abc"})


def test_a_hub_model_of_pickles_is_refused_before_a_download(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("huggingface_hub.HfApi", FakeHub)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr(hub, "cached_folder", lambda hub_id: None)
    monkeypatch.setattr(FakeHub, "files", ("config.json", "pytorch_model.bin", "x/a.safetensors"))
    _refused("some-owner/old-model", UnsafeCheckpoint, "pytorch_model.bin")
