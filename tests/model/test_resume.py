"""A conversation kept on disk: the same text afterwards, and never a damaged one."""

from functools import cache as memoised
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open

from kvlab.arithmetic.latent_work import LatentShape
from kvlab.cache import KVCache, call_model, make_cache
from kvlab.cache.contiguous import GrowingLayer
from kvlab.cache.latent import LatentLayer
from kvlab.errors import (
    CacheFull,
    CacheInUse,
    InvalidArgument,
    KvlabError,
    NotVerified,
    Unsupported,
)
from kvlab.model.config import LlamaConfig
from kvlab.model.decode import generate
from kvlab.model.latent_attention import LatentModel
from kvlab.model.latent_config import LatentConfig
from kvlab.model.llama import Llama
from kvlab.model.resume import fingerprint, load_conversation, save_conversation
from kvlab.model.rope_config import RopeConfig
from kvlab.model.tier_timing import COLD_DISK, DISK, FULL, HOST, time_resume, time_tiers

SIZES = {
    "num_layers": 2,
    "num_heads": 4,
    "num_kv_heads": 2,
    "head_dim": 8,
    "hidden_size": 32,
    "intermediate_size": 48,
    "vocab_size": 61,
    "max_seq_len": 64,
}
TOKEN_NBYTES = 2 * 2 * 2 * 8 * 4  # layers, K and V, heads, head_dim, float32
KINDS = ("growing", "preallocated", "host", "disk")
MASK = torch.tensor([[0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1]])


@pytest.fixture(autouse=True)
def no_gradients() -> Any:
    with torch.no_grad():
        yield


@memoised
def llama(seed: int = 7, **changes: Any) -> Llama:
    return Llama(LlamaConfig(**SIZES | changes)).init_weights(seed, std=0.3).eval()


def new_cache(kind: str) -> KVCache:
    if kind in ("host", "disk"):
        return make_cache("offloaded", num_layers=2, tier=kind)
    return make_cache(kind, num_layers=2, capacity=40)


def some_ids(batch: int, length: int, seed: int = 1) -> torch.Tensor:
    return torch.randint(1, 61, (batch, length), generator=torch.Generator().manual_seed(seed))


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """Return the file of a short conversation with `llama()`."""
    model, ids, cache = llama(), some_ids(1, 5), new_cache("growing")
    model(ids, cache=cache)
    return save_conversation(tmp_path / "kept", cache, model=model, token_ids=ids).path


# -- the same text ----------------------------------------------------------------------------


@pytest.mark.parametrize("into", KINDS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_resumed_conversation_goes_on_as_if_nothing_had_been(
    kind: str, into: str, tmp_path: Path
) -> None:
    model, prompt, cache = llama(), some_ids(1, 6), new_cache(kind)
    first = [s.token_id for s in generate(model, prompt, max_new_tokens=5, cache=cache)]
    text = torch.cat([prompt, torch.tensor([first])], dim=1)
    saved = save_conversation(tmp_path / "kept", cache, model=model, token_ids=text)
    assert saved.tokens == cache.get_seq_length() == 10 == text.shape[1] - 1
    question = torch.cat([text, some_ids(1, 3, seed=2)], dim=1)
    again = load_conversation(saved.path, new_cache(into), model=model)
    assert torch.equal(again.token_ids, text) and again.attention_mask is None
    assert again.cache.nbytes == cache.nbytes == 10 * TOKEN_NBYTES
    options = {"max_new_tokens": 6, "continuing": "full_ids", "keep_logits": True}
    ours = list(generate(model, question, cache=again.cache, **options))
    uninterrupted = list(generate(model, question, cache=cache, **options))
    assert [s.token_id for s in ours] == [s.token_id for s in uninterrupted]
    assert all(torch.equal(a.logits, b.logits) for a, b in zip(ours, uninterrupted, strict=True))


def test_a_padded_batch_is_resumed_with_its_mask(tmp_path: Path) -> None:
    model, ids, cache = llama(), some_ids(2, 6), new_cache("growing")
    model(ids, cache=cache, attention_mask=MASK)
    path = tmp_path / "kept"
    save_conversation(path, cache, model=model, token_ids=ids, attention_mask=MASK)
    again = load_conversation(path, model=model)
    assert torch.equal(again.attention_mask, MASK)
    more, mask = (
        some_ids(2, 2, seed=3),
        torch.cat([again.attention_mask, torch.ones(2, 2).long()], 1),
    )
    expected = model(more, cache=cache, attention_mask=mask)
    assert torch.equal(model(more, cache=again.cache, attention_mask=mask), expected)


def test_what_our_llama_computed_transformers_llama_goes_on_with(kept: Path) -> None:
    model = llama()
    fields = {
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "hidden_size": 32,
        "intermediate_size": 48,
        "vocab_size": 61,
        "max_position_embeddings": 64,
        "rms_norm_eps": 1e-6,
    }
    theirs = transformers.LlamaForCausalLM(transformers.LlamaConfig(**fields)).eval()
    theirs.load_state_dict(model.state_dict())
    assert fingerprint(theirs) == fingerprint(model)
    again, more = load_conversation(kept, model=theirs), some_ids(1, 3, seed=2)
    logits = call_model(theirs, more, cache=again.cache)[0]
    whole = model(torch.cat([again.token_ids, more], dim=1))
    torch.testing.assert_close(logits, whole[:, 5:], rtol=0, atol=1e-4)


def test_a_latent_cache_is_resumed_too(tmp_path: Path) -> None:
    shape = LatentShape(
        hidden_size=32, num_heads=4, kv_lora_rank=16, qk_nope_head_dim=8, qk_rope_head_dim=4,
        v_head_dim=6,
    )  # fmt: skip
    sizes = {"num_layers": 2, "intermediate_size": 48, "vocab_size": 61, "max_seq_len": 64}
    model = LatentModel(LatentConfig(attention=shape, **sizes)).init_weights(7, std=0.3).eval()
    ids, more, cache = (
        some_ids(1, 6),
        some_ids(1, 2, seed=2),
        KVCache([LatentLayer(), LatentLayer()]),
    )
    model(ids, cache=cache)
    path = save_conversation(tmp_path / "kept", cache, model=model, token_ids=ids).path
    again = load_conversation(path, KVCache([LatentLayer(), LatentLayer()]), model=model)
    assert torch.equal(model(more, cache=again.cache), model(more, cache=cache))


def test_the_file_is_one_that_every_reader_of_safetensors_takes(kept: Path) -> None:
    with safe_open(kept, framework="pt") as file:
        names = sorted(file.keys())
        assert file.get_tensor("layers.1.values").shape == (1, 2, 5, 8)
        assert len(file.metadata()["sha256"]) == 64
    layers = [f"layers.{i}.{name}" for i in range(2) for name in ("keys", "values")]
    assert names == sorted([*layers, "token_ids"])


# -- never a damaged one ------------------------------------------------------------------------


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_single_bit_that_changed_anywhere_is_found(kept: Path, place: float, bit: int) -> None:
    whole = kept.read_bytes()
    damaged = bytearray(whole)
    damaged[int(place * len(whole))] ^= 1 << bit
    cache = new_cache("growing")
    try:
        kept.write_bytes(damaged)
        with pytest.raises(NotVerified) as refused:
            load_conversation(kept, cache, model=llama())
    finally:
        kept.write_bytes(whole)
    assert str(refused.value).startswith(f"{kept}: ") and "\n" not in str(refused.value)
    assert cache.get_seq_length() == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda whole: b"",
        lambda whole: whole[:5],
        lambda whole: whole[:100],
        lambda whole: whole[:-1],
        lambda whole: whole + b"\0",
        lambda whole: b"\xff" * 8 + whole[8:],
        lambda whole: b"not a safetensors file at all",
    ],
)
def test_a_file_of_another_length_or_kind_is_refused(kept: Path, change: Any) -> None:
    kept.write_bytes(change(kept.read_bytes()))
    with pytest.raises(NotVerified, match="kept: "):
        load_conversation(kept, model=llama())


def test_a_file_that_is_not_there_and_one_of_someone_else_are_refused(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    with pytest.raises(NotVerified, match=r"missing: can't be read \(No such file"):
        load_conversation(tmp_path / "missing", model=llama())
    other = tmp_path / "other"
    save_file({"a": torch.zeros(2)}, other)
    with pytest.raises(NotVerified, match="other: "):
        load_conversation(other, model=llama())
    save_file({"a": torch.zeros(2)}, other, metadata={"format": "pt"})
    with pytest.raises(NotVerified, match="other: states no sha256"):
        load_conversation(other, model=llama())


def test_a_full_disk_leaves_the_earlier_file_and_nothing_else(kept: Path) -> None:
    resource = pytest.importorskip("resource")
    before, model, ids, cache = kept.read_bytes(), llama(), some_ids(1, 20), new_cache("growing")
    model(ids, cache=cache)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, limits[1]))
    try:
        with pytest.raises(
            KvlabError, match=r"kept: can't be written .*nothing new was left there"
        ):
            save_conversation(kept, cache, model=model, token_ids=ids)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert kept.read_bytes() == before and list(kept.parent.iterdir()) == [kept]


def test_an_interrupt_in_the_middle_leaves_the_earlier_file_and_nothing_else(kept: Path) -> None:
    class Interrupted(GrowingLayer):
        asked = 0

        def held(self) -> Any:
            self.asked += 1
            if self.asked > 1:  # once for the shapes, then for the numbers
                raise KeyboardInterrupt
            return super().held()

    before, model, ids = kept.read_bytes(), llama(), some_ids(1, 20)
    cache = KVCache([GrowingLayer(), Interrupted()])
    model(ids, cache=cache)
    with pytest.raises(KeyboardInterrupt):
        save_conversation(kept, cache, model=model, token_ids=ids)
    assert kept.read_bytes() == before and list(kept.parent.iterdir()) == [kept]
    assert load_conversation(kept, model=model).token_ids.shape == (1, 5)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    model, ids, cache = llama(), some_ids(1, 4), new_cache("growing")
    model(ids, cache=cache)
    with pytest.raises(KvlabError, match=r"kept: can't be written \(No such file or directory\)"):
        save_conversation(tmp_path / "no" / "kept", cache, model=model, token_ids=ids)


# -- what cannot be kept, and where it cannot go ------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "seed"), [({}, 8), ({"num_layers": 3}, 7), ({"rope": RopeConfig(theta=500.0)}, 7)]
)
def test_another_model_is_refused(kept: Path, changes: dict[str, Any], seed: int) -> None:
    with pytest.raises(InvalidArgument, match="was computed by a model with other weights"):
        load_conversation(kept, model=llama(seed, **changes))


class KeepsTheNewest(GrowingLayer):
    """A layer that has seen more than it holds."""

    def held(self) -> Any:
        return tuple(states[:, :, -2:] for states in super().held())


class Rounds(GrowingLayer):
    """A layer that holds fewer bits than it was given."""

    def held(self) -> Any:
        return tuple(states.half() for states in super().held())


LOSSY = {
    "newest": lambda: KVCache([KeepsTheNewest(), KeepsTheNewest()]),
    "rounded": lambda: KVCache([Rounds(), Rounds()]),
    "window": lambda: make_cache("window", num_layers=2, budget=4),
    "int8": lambda: make_cache("int8", num_layers=2),
    "fp8": lambda: make_cache("fp8", num_layers=2),
}


@pytest.mark.parametrize("kind", LOSSY)
def test_a_cache_that_lost_something_is_refused(kind: str, tmp_path: Path) -> None:
    model, ids, cache = llama(), some_ids(1, 5), LOSSY[kind]()
    model(ids, cache=cache)
    with pytest.raises(Unsupported, match="does not hold every token as it was made"):
        save_conversation(tmp_path / "kept", cache, model=model, token_ids=ids)
    assert list(tmp_path.iterdir()) == []


def test_caches_that_do_not_fit_are_refused_and_stay_empty(kept: Path) -> None:
    model, used, small = (
        llama(),
        new_cache("growing"),
        make_cache("preallocated", num_layers=2, capacity=3),
    )
    model(some_ids(1, 2), cache=used)
    with pytest.raises(CacheInUse):
        load_conversation(kept, used, model=model)
    with pytest.raises(CacheFull):
        load_conversation(kept, small, model=model)
    assert small.get_seq_length() == 0
    with pytest.raises(InvalidArgument, match="must have the 2 layers of the file"):
        load_conversation(kept, make_cache("growing", num_layers=3), model=model)
    with pytest.raises(InvalidArgument, match="must have the 2 layers of the file"):
        load_conversation(kept, "none", model=model)


def test_text_and_mask_must_fit_the_cache(tmp_path: Path) -> None:
    model, ids, cache = llama(), some_ids(1, 5), new_cache("growing")
    path = tmp_path / "kept"
    with pytest.raises(InvalidArgument, match="must be a cache of kvlab that holds tokens"):
        save_conversation(path, cache, model=model, token_ids=ids)
    model(ids, cache=cache)
    for wrong in (ids[:, :4], ids[0], some_ids(2, 5)):
        with pytest.raises(InvalidArgument, match=r"must be \(1, 5 or more\)"):
            save_conversation(path, cache, model=model, token_ids=wrong)
    with pytest.raises(InvalidArgument, match=r"attention_mask=\(1, 4\): must be \(1, 5\)"):
        save_conversation(path, cache, model=model, token_ids=ids, attention_mask=ids[:, :4])


# -- measured here --------------------------------------------------------------------------------


def test_the_measurement_of_a_resumed_conversation_compares_equal_answers(tmp_path: Path) -> None:
    timing = time_resume(llama(), some_ids(1, 30), question_ids=some_ids(1, 2), folder=tmp_path)
    assert timing.equal and timing.tokens == 30
    assert 30 * TOKEN_NBYTES < timing.file_bytes < 30 * TOKEN_NBYTES + 2000
    assert timing.load_seconds == timing.verify_seconds + timing.read_seconds > 0
    assert list(tmp_path.iterdir()) == []


def test_the_measurement_of_tiers_moves_what_the_formula_says(tmp_path: Path) -> None:
    runs = {
        run.tier: run
        for run in time_tiers(llama(), some_ids(1, 10), max_new_tokens=4, folder=tmp_path)
    }
    assert {FULL, HOST, DISK} <= set(runs) <= {FULL, HOST, DISK, COLD_DISK}
    held, layer = 13 * TOKEN_NBYTES, TOKEN_NBYTES // 2
    assert (runs[FULL].bytes_in, runs[FULL].peak_device_bytes) == (0, held)
    past = (10 + 11 + 12) * TOKEN_NBYTES  # and the first layer's 13, on their way for a next pass
    for run in (run for tier, run in runs.items() if tier != FULL):
        assert run.equal and run.cache_bytes == run.bytes_out == held
        assert past <= run.bytes_in <= past + 13 * layer
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InvalidArgument, match="ways='tape': must be among full, host, disk"):
        time_tiers(llama(), some_ids(1, 4), max_new_tokens=1, ways=["tape"])
