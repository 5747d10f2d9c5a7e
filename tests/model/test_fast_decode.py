"""The fast path gives the lesson's logits and tokens, whatever model, cache and path."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import pytest
import torch
from torch import Tensor

from kvlab.cache import make_cache
from kvlab.cache.paged import PagedCache
from kvlab.errors import CacheFull, InvalidArgument, Unsupported
from kvlab.model import fast_compile, fast_compiler
from kvlab.model.decode import generate
from kvlab.model.fast_decode import FastDecoder, FastLlama
from kvlab.model.fast_pack import Form, pack
from kvlab.model.fast_prefill import WAYS
from kvlab.model.fast_torch import step_in_place
from kvlab.model.llama import Llama
from kvlab.model.phases import prefill

MakeLlama = Callable[..., Llama]
COMPILED = pytest.mark.skipif(fast_compile.find_compiler() is None, reason="needs a C compiler")
LONG = {"max_position_embeddings": 512}
MODELS = {
    "grouped": {},
    "one KV head": {"num_key_value_heads": 1},
    "as many KV heads": {"num_key_value_heads": 4},
    "wide heads": {"head_dim": 64, "num_attention_heads": 6, "num_key_value_heads": 2},
    "biases": {"attention_bias": True, "mlp_bias": True},
    "tied": {"tie_word_embeddings": True},
    "windows": {"model_type": "mistral", "sliding_window": 5},
    "odd sizes": {"hidden_size": 36, "intermediate_size": 50, "vocab_size": 53, "head_dim": 6},
}


def tokens_of(llama: Llama, rows: int, count: int) -> Tensor:
    generator = torch.Generator().manual_seed(count)
    return torch.randint(0, llama.config.vocab_size, (rows, count), generator=generator)


def lesson(llama: Llama, ids: Tensor, **options: object) -> Tensor:
    with torch.no_grad():
        return llama(ids, **options)


def close(found: Tensor, expected: Tensor) -> bool:
    assert found.shape == expected.shape
    return float((found - expected).abs().max()) < 1e-4


@COMPILED
@pytest.mark.parametrize("path", ["packed", "float32", "plain"])
@pytest.mark.parametrize("changes", MODELS.values(), ids=MODELS)
def test_a_prompt_and_steps_give_the_lessons_logits(
    make_llama: MakeLlama, changes: dict, path: str
) -> None:
    llama = make_llama("llama3", **changes)
    ids = tokens_of(llama, 2, 26)
    expected = lesson(llama, ids)
    decoder = FastDecoder(llama, max_seq_len=30, batch=2, path=path)
    assert decoder.path == path
    assert close(decoder.prefill(ids[:, :20]), expected[:, 19:20])
    for t in range(20, 26):
        assert close(decoder.step(ids[:, t : t + 1]), expected[:, t : t + 1])


@COMPILED
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("chunk_size", [None, 100, 7])
@pytest.mark.parametrize("window", [None, 150])
def test_long_prompts_in_any_chunks_and_steps_behind_them(
    make_llama: MakeLlama, chunk_size: int | None, window: int | None, way: str
) -> None:
    kind = {"model_type": "mistral", "sliding_window": window} if window else {}
    llama = make_llama("linear", **LONG, **kind, **MODELS["wide heads"])
    ids = tokens_of(llama, 1, 303)
    expected = lesson(llama, ids)
    decoder = FastDecoder(llama, max_seq_len=303)
    decoder.prefill_way = way
    assert close(decoder.prefill(ids[:, :300], chunk_size=chunk_size), expected[:, 299:300])
    for t in range(300, 303):
        assert close(decoder.step(ids[:, t : t + 1]), expected[:, t : t + 1])


@COMPILED
@pytest.mark.parametrize("count", [5, 7, 8, 9, 17, 33, 50, 90])
def test_all_logits_of_a_pass_can_be_had(make_llama: MakeLlama, count: int) -> None:
    llama = make_llama()
    ids = tokens_of(llama, 1, 9 + count)
    fast, cache = FastLlama(llama), make_cache("preallocated", num_layers=2, capacity=128)
    fast(ids[:, :9], cache=cache)
    assert close(fast(ids[:, 9:], cache=cache), lesson(llama, ids)[:, 9:])


@COMPILED
@pytest.mark.parametrize("chunk_size", [None, 4])
def test_rows_padded_on_the_left_are_not_disturbed(
    make_llama: MakeLlama, prompt: Tensor, chunk_size: int | None
) -> None:
    llama, mask = make_llama(), torch.tensor([[0, 0, 0, 1, 1, 1, 1], [1] * 7])
    expected = [lesson(llama, prompt[0:1, 3:]), lesson(llama, prompt[1:2])]
    fast, cache = FastLlama(llama), make_cache("preallocated", num_layers=2, capacity=20)
    logits = prefill(fast, prompt, cache, attention_mask=mask, chunk_size=chunk_size)
    for row in (0, 1):
        assert close(logits[row], expected[row][0, -1:])
    options = {"max_new_tokens": 6, "attention_mask": mask}
    padded = [s.token_ids for s in generate(fast, prompt, cache="preallocated", **options)]
    assert padded == [s.token_ids for s in generate(llama, prompt, **options)]


@COMPILED
def test_a_paged_batch_of_mixed_lengths_is_read_where_it_lies(make_llama: MakeLlama) -> None:
    llama = make_llama(**LONG)
    fast, new = FastLlama(llama), {"ann": 3, "bob": 200, "cy": 50}
    texts = {name: tokens_of(llama, 1, count + 1)[0].tolist() for name, count in new.items()}
    pages = PagedCache.of(llama.config, num_blocks=40, block_size=8)
    pages.store.keys.fill_(float("nan"))
    pages.store.values.fill_(float("nan"))
    for name, text in texts.items():
        with pages.step({name: text[:-1]}) as batch:
            assert close(run(fast, batch), lesson(llama, torch.tensor([text[:-1]]))[:, -1:])
    with pages.step({name: text[-1:] for name, text in texts.items()}) as batch:
        logits = run(fast, batch)
    for row, text in enumerate(texts.values()):
        assert close(logits[row : row + 1], lesson(llama, torch.tensor([text]))[:, -1:])


def test_a_paged_step_whose_rows_are_of_two_lengths_is_right_too(make_llama: MakeLlama) -> None:
    llama = make_llama()
    pages = PagedCache.of(llama.config, num_blocks=8, block_size=4)
    with pages.step({"ann": [1, 2, 3, 4, 5]}) as batch:
        run(FastLlama(llama), batch)
    with pages.step({"ann": [6], "bob": [7, 8, 9]}) as batch:
        logits = run(FastLlama(llama), batch)
    assert close(logits[0], lesson(llama, torch.tensor([[1, 2, 3, 4, 5, 6]]))[0, -1:])
    assert close(logits[1], lesson(llama, torch.tensor([[7, 8, 9]]))[0, -1:])


def run(fast: FastLlama, batch: object) -> Tensor:
    given = {"attention_mask": batch.attention_mask, "last_token_only": True}
    return fast(batch.input_ids, cache=batch, **given)


@COMPILED
def test_lesson_and_fast_path_can_go_on_from_each_other(make_llama: MakeLlama) -> None:
    llama = make_llama()
    ids, fast = tokens_of(llama, 1, 9), FastLlama(llama)
    cache = make_cache("preallocated", num_layers=2, capacity=9)
    expected = lesson(llama, ids)
    for t, model in enumerate([llama, fast, fast, llama, fast]):
        found = lesson(model, ids[:, t : t + 1], cache=cache)
        assert close(found, expected[:, t : t + 1])
    cache.drop_last(3)
    assert close(fast(ids[:, 2:], cache=cache), expected[:, 2:])


@pytest.mark.parametrize("name", ["growing", "int8", "window", None])
def test_another_cache_takes_the_lessons_way(make_llama: MakeLlama, name: str | None) -> None:
    llama, ids = make_llama(), torch.tensor([[3, 1, 4, 1, 5]])
    options = {"budget": 4} if name == "window" else {}
    caches = [name and make_cache(name, num_layers=2, **options) for _ in range(2)]
    assert torch.equal(FastLlama(llama)(ids, cache=caches[0]), lesson(llama, ids, cache=caches[1]))


# -- weights in few bits ----------------------------------------------------------------------


def made_of_few_bits(weight: Tensor, form: Form) -> Tensor:
    """Return a matrix like `weight` as a file of that form would hold it."""
    groups = weight.view(len(weight), -1, 32)
    if form == Form.BFLOAT16:
        return weight.bfloat16().float()
    if form == Form.EIGHT_BITS:
        scale = (groups.abs().amax(-1, keepdim=True) / 127).half().float()
        return ((groups / scale).round() * scale).view_as(weight)
    low, high = groups.aminmax(dim=-1, keepdim=True)
    low, scale = low.half().float(), ((high - low) / 15).half().float()
    return (((groups - low) / scale).round().clamp(0, 15) * scale + low).view_as(weight)


@COMPILED
@pytest.mark.parametrize("rows", [1, 3, 7])
@pytest.mark.parametrize("form", list(Form), ids=[form.name for form in Form])
def test_weights_of_few_bits_lose_nothing(make_llama: MakeLlama, form: Form, rows: int) -> None:
    llama = make_llama(hidden_size=96, intermediate_size=128, head_dim=16)
    if form != Form.FLOAT32:
        for name, weight in llama.named_parameters():
            if "proj" in name or "lm_head" in name:
                weight.data.copy_(made_of_few_bits(weight.data, form))
    ids = tokens_of(llama, rows, 6)
    decoder = FastDecoder(llama, max_seq_len=6, batch=rows, path="packed")
    assert decoder.native.forms == {form}
    decoder.prefill(ids[:, :5])
    assert close(decoder.step(ids[:, 5:]), lesson(llama, ids)[:, 5:])


def test_a_matrix_that_one_number_keeps_from_being_narrow_stays_as_it_is() -> None:
    weight = torch.arange(64.0).view(1, 64).repeat(9, 1) % 16
    assert pack(weight)[0] == Form.FOUR_BITS
    weight[8, 40] = 3.14159
    form, kept = pack(weight)
    assert form == Form.FLOAT32 and kept.data_ptr() == weight.data_ptr()
    assert pack(weight[:, :40])[0] == Form.FLOAT32  # no whole groups
    assert pack(torch.zeros(2, 32))[0] == Form.FOUR_BITS


@COMPILED
def test_weights_that_were_trained_meanwhile_are_packed_again(make_llama: MakeLlama) -> None:
    llama, ids = make_llama(), torch.tensor([[3, 1, 4]])
    for _ in range(2):
        cache = make_cache("preallocated", num_layers=2, capacity=4)
        assert close(FastLlama(llama)(ids, cache=cache), lesson(llama, ids))
        llama.lm_head.weight.data.mul_(2)


# -- what is refused --------------------------------------------------------------------------


def test_a_full_cache_is_refused_and_left_as_it_was(make_llama: MakeLlama) -> None:
    llama, ids = make_llama(), torch.tensor([[3, 1, 4, 1]])
    decoder = FastDecoder(llama, max_seq_len=4)
    decoder.prefill(ids)
    with pytest.raises(CacheFull, match="4 of 4 tokens held, no room for 1 more"):
        decoder.step(ids[:, :1])
    assert decoder.cache.get_seq_length() == 4
    decoder.cache.drop_last(1)
    assert close(decoder.step(ids[:, 3:]), lesson(llama, ids)[:, 3:])
    decoder.reset()
    assert close(decoder.prefill(ids), lesson(llama, ids)[:, 3:])


@pytest.mark.parametrize("token", [-1, 61, 10**9])
def test_a_token_that_is_none_is_refused(make_llama: MakeLlama, token: int) -> None:
    decoder = FastDecoder(make_llama(), max_seq_len=4)
    with pytest.raises(InvalidArgument, match=r"input_ids=.*: token ids run from 0 to 60"):
        decoder.step(torch.tensor([[token]]))
    assert decoder.cache.get_seq_length() == 0


def test_what_a_decoder_cannot_take_is_named(make_llama: MakeLlama) -> None:
    llama = make_llama()
    with pytest.raises(InvalidArgument, match="path='fast': must be one of measured, packed"):
        FastLlama(llama, path="fast")
    with pytest.raises(Unsupported, match="path='graph': is for CUDA"):
        FastLlama(llama, path="graph")
    with pytest.raises(Unsupported, match=r"path='packed': is for float32 on the CPU"):
        FastLlama(make_llama().to(torch.bfloat16), path="packed")
    with pytest.raises(InvalidArgument, match="max_seq_len=129: the model has 128 positions"):
        FastDecoder(llama, max_seq_len=129)
    decoder = FastDecoder(llama, max_seq_len=8, batch=2)
    with pytest.raises(InvalidArgument, match=r"token_ids=\(1, 1\): must be \(2, 1\)"):
        decoder.step(torch.tensor([[1]]))
    with pytest.raises(InvalidArgument, match=r"input_ids=\(1, 3\): must be \(2, tokens\)"):
        decoder.prefill(torch.tensor([[1, 2, 3]]))
    with pytest.raises(InvalidArgument, match="cache='growing': the fast path writes in place"):
        generate(llama, [1, 2], max_new_tokens=1, fast=True)


# -- compilers, threads, torch's own step -----------------------------------------------------

FLAGS = {
    "with OpenMP": ("-march=native", "-fopenmp"),
    "with threads of its own": ("-march=native", "-pthread"),
    "for any processor": ("-pthread",),
}


@pytest.fixture
def own_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Compile anew, into a folder of this test's own."""
    monkeypatch.setenv("KVLAB_HOME", str(tmp_path))
    fast_compile.library.cache_clear()
    yield tmp_path
    fast_compile.library.cache_clear()


@COMPILED
@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
def test_however_it_is_compiled_it_computes_the_same(
    make_llama: MakeLlama,
    monkeypatch: pytest.MonkeyPatch,
    own_library: Path,
    flags: tuple[str, ...],
) -> None:
    monkeypatch.setattr(fast_compiler, "ATTEMPTS", (flags,))
    llama = make_llama(hidden_size=96, head_dim=40, **LONG)
    for name, weight in llama.named_parameters():
        if "q_proj" in name or "k_proj" in name:
            form = Form.FOUR_BITS if "q_proj" in name else Form.EIGHT_BITS
            weight.data.copy_(made_of_few_bits(weight.data, form))
    ids, threads = tokens_of(llama, 3, 150), torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        decoder = FastDecoder(llama, max_seq_len=150, batch=3)
        decoder.prefill(ids[:, :149])
        assert close(decoder.step(ids[:, 149:]), lesson(llama, ids)[:, 149:])
    finally:
        torch.set_num_threads(threads)
    assert sorted(p.suffix for p in (own_library / "fast").iterdir()) == [".sha256", ".so"]


@COMPILED
@pytest.mark.parametrize("threads", [1, 3, 7])
def test_any_number_of_threads_computes_the_same(make_llama: MakeLlama, threads: int) -> None:
    llama = make_llama(hidden_size=36, intermediate_size=50, vocab_size=41, **LONG)
    before, ids = torch.get_num_threads(), tokens_of(llama, 2, 60)
    try:
        torch.set_num_threads(threads)
        decoder = FastDecoder(llama, max_seq_len=60, batch=2, path="float32")
        decoder.prefill(ids[:, :58])
        found = [decoder.step(ids[:, 58:59]), decoder.step(ids[:, 59:])]
    finally:
        torch.set_num_threads(before)
    assert close(torch.cat(found, dim=1), lesson(llama, ids)[:, 58:])


@COMPILED
def test_two_threads_of_a_program_may_share_a_model(make_llama: MakeLlama) -> None:
    llama = make_llama()
    fast, ids = FastLlama(llama), tokens_of(llama, 1, 30)
    found: list[Tensor] = []

    def go() -> None:
        cache = make_cache("preallocated", num_layers=2, capacity=30)
        steps = [fast(ids[:, t : t + 1], cache=cache) for t in range(30)]
        found.append(torch.cat(steps, dim=1))

    threads = [Thread(target=go) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2 and all(close(logits, lesson(llama, ids)) for logits in found)


@pytest.mark.parametrize("changes", [{}, MODELS["windows"]], ids=["all", "windows"])
@pytest.mark.parametrize("whole_buffer", [True, False])
def test_the_step_that_a_graph_records_gives_the_lessons_logits(
    make_llama: MakeLlama, prompt: Tensor, whole_buffer: bool, changes: dict
) -> None:
    llama, mask = make_llama(**changes), torch.tensor([[0, 0, 1, 1, 1, 1, 1], [1] * 7])
    caches = [make_cache("preallocated", num_layers=2, capacity=9) for _ in range(2)]
    for cache in caches:
        prefill(llama, prompt[:, :6], cache, attention_mask=mask[:, :6])
    for layer in caches[1].layers:  # what lies behind the tokens held is masked, but read
        layer.keys[:, :, 6:], layer.values[:, :, 6:] = 0, 0
    keys, values = ([getattr(x, n) for x in caches[1].layers] for n in ("keys", "values"))
    used = None if whole_buffer else 7
    where = (torch.tensor([6]), torch.tensor([2, 0]))
    found = lesson(lambda ids: step_in_place(llama, ids, *where, keys, values, used), prompt[:, 6:])
    assert close(found, prefill(llama, prompt[:, 6:], caches[0], attention_mask=mask))


NO_COMPILER = """
import torch
from kvlab.model.decode import generate
from kvlab.model.fast_decode import FastLlama
from kvlab.model.load import load_model
loaded = load_model("tiny", device="cpu")
ids, options = loaded.encode("the key of"), {"max_new_tokens": 5, "cache": "preallocated"}
fast = [s.token_id for s in generate(loaded.model, ids, fast=True, **options)]
again = [s.token_id for s in generate(FastLlama(loaded.model), ids, **options)]
print(fast == again == [s.token_id for s in generate(loaded.model, ids, **options)])
print(FastLlama(loaded.model).path)
"""


def test_without_a_compiler_one_line_says_so_and_the_tokens_are_the_same(tmp_path: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if k not in ("CC", "CXX")}
    environment |= {"PATH": "", "KVLAB_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", NO_COMPILER], capture_output=True, text=True, env=environment
    )
    assert done.stdout.split() == ["True", "plain"], done.stderr
    said = "fast path: there is no C compiler here (cc, gcc or clang); the model runs as"
    assert done.stderr.count("\n") == 1 and done.stderr.startswith(said)
