"""The memory explorer says what the arithmetic says, and a bad paste costs one line."""

import json

import pytest

from kvlab.arithmetic.catalogue import find_model
from kvlab.arithmetic.gpus import find_gpu
from kvlab.arithmetic.reader import read_model
from kvlab.arithmetic.request import size_request
from kvlab.arithmetic.units import format_bytes
from kvlab.widgets.memory_explorer import MemoryExplorer, memory_explorer
from kvlab.widgets.memory_frame import read_guess
from kvlab.widgets.memory_model import OWN, PASTED, SLIDERS, choices

LLAMA_70B = "meta-llama/Llama-3.1-70B"


def values(show: MemoryExplorer, *names: str) -> list[object]:
    return [show.controls[name].value for name in names]


def config(name: str) -> str:
    return json.dumps(dict(find_model(name).config))


@pytest.fixture
def show() -> MemoryExplorer:
    return memory_explorer()


def test_the_example_is_llama_8b_with_24_users_of_8192_tokens(show: MemoryExplorer) -> None:
    assert show.numbers["one user"] == "1.00 GiB (1.07 GB)"
    assert show.numbers["all users"] == "24.00 GiB (25.77 GB)"
    assert show.numbers["weights"] == "14.96 GiB (16.06 GB)"
    assert show.numbers["cache = weights at"] == "14.96 users"
    room = find_gpu("H100").driver_bytes - 2 * 8_030_261_248 - 2 * 10**9
    assert show.numbers["users that fit"] == str(room // 2**30) == "62"
    assert "2 x 32 layers x 8 KV heads x 128 numbers x 2 bytes = 131,072" in show.event.value


@pytest.mark.parametrize(
    ("control", "value", "factor"),
    [
        ("num_layers", 64, 2),
        ("num_kv_heads", 32, 4),
        ("head_dim", 64, 0.5),
        ("cache_dtype", "fp8", 0.5),
        ("context", 16384, 2),
        ("users", 48, 2),
    ],
)
def test_each_factor_multiplies_the_cache(
    show: MemoryExplorer, control: str, value: object, factor: float
) -> None:
    show.controls[control].value = value
    assert show.numbers["all users"] == format_bytes(int(24 * 2**30 * factor))


@pytest.mark.parametrize(
    ("control", "value"),
    [("weights_dtype", "int4"), ("gpu", "B200 SXM"), ("parameters", 70.0), ("overhead", 9.0)],
)
def test_what_is_not_a_factor_leaves_the_cache_alone(
    show: MemoryExplorer, control: str, value: object
) -> None:
    show.controls[control].value = value
    assert show.numbers["all users"] == "24.00 GiB (25.77 GB)"
    assert show.error.value == ""


def test_a_preset_moves_the_sliders_and_a_moved_slider_frees_the_model(
    show: MemoryExplorer,
) -> None:
    show.controls["model"].value = LLAMA_70B
    assert values(show, *SLIDERS) == [80, 8, 128]
    assert show.numbers["one user"] == "2.50 GiB (2.68 GB)"
    show.controls["num_kv_heads"].value = 64
    assert values(show, "model", *SLIDERS) == [OWN, 80, 64, 128]
    assert show.numbers["one user"] == "20.00 GiB (21.47 GB)"


@pytest.mark.parametrize("model", [value for _, value in choices() if value not in (OWN, PASTED)])
def test_every_model_shows_its_own_size(show: MemoryExplorer, model: str) -> None:
    show.controls["model"].value = model
    one = size_request(read_model(model), context=8192)
    assert show.numbers["one user"] == format_bytes(one.request_bytes)
    assert show.error.value == ""
    assert show.picture.value.count("<svg") == 1
    disabled = {show.controls[name].disabled for name in SLIDERS}
    assert len(disabled) == 1


def test_models_whose_layers_differ_switch_the_sliders_off(show: MemoryExplorer) -> None:
    show.controls["model"].value = "deepseek-ai/DeepSeek-V3"
    assert show.controls["num_layers"].disabled
    assert "no factor 2" in show.event.value
    show.controls["model"].value = LLAMA_70B
    assert not show.controls["num_layers"].disabled


def test_a_pasted_config_is_read_and_shown(show: MemoryExplorer) -> None:
    show.controls["config"].value = config("qwen3-4b")
    assert values(show, "model", *SLIDERS) == [PASTED, 36, 8, 128]
    assert show.numbers["one token"] == "144.00 KiB (147.46 kB)"
    assert show.numbers["weights"] == format_bytes(2 * 4_022_468_096)


GPT2 = {"model_type": "gpt2", "n_layer": 12, "n_head": 12, "n_embd": 768, "vocab_size": 50257}


def test_a_config_whose_weights_cannot_be_counted_shows_none_and_says_so(
    show: MemoryExplorer,
) -> None:
    show.controls["config"].value = config("qwen3-4b")
    show.controls["config"].value = json.dumps(GPT2)
    assert values(show, "model", "parameters") == [PASTED, 0]
    assert show.numbers["weights"] == "not given"
    assert show.numbers["users that fit"].endswith("without weights")
    assert "Type their number" in show.error.value
    show.controls["parameters"].value = 0.124
    assert show.error.value == ""
    assert show.numbers["weights"] == format_bytes(248_000_000)


@pytest.mark.parametrize(
    "text",
    [
        '{"num_hidden_layers": ',
        "[1, 2]",
        "not json at all",
        '{"model_type": "llama"}',
        '{"model_type": "llama", "num_hidden_layers": 0, "hidden_size": 8}',
        "[" * 100_000,
        "x" * 10_000_000,
        "<img src=x onerror=alert(1)>",
    ],
)
def test_a_bad_paste_costs_one_line_and_keeps_the_picture(show: MemoryExplorer, text: str) -> None:
    before = show.picture.value
    show.controls["config"].value = text
    assert show.error.value
    assert "Traceback" not in show.error.value
    assert "<img" not in show.error.value
    assert len(show.error.value) < 1500
    assert show.picture.value == before
    show.controls["users"].value = 25
    assert show.error.value == ""


def test_choosing_the_pasted_config_before_pasting_says_what_to_do(show: MemoryExplorer) -> None:
    show.controls["model"].value = PASTED
    assert "paste" in show.error.value


def test_back_to_the_example_undoes_everything(show: MemoryExplorer) -> None:
    first = show.picture.value
    show.set(model="deepseek-ai/DeepSeek-V3", users=3, gpu="T4", guess="7 GB")
    assert show.picture.value != first
    show.reset()
    assert show.picture.value == first
    assert not show.controls["num_layers"].disabled


def test_the_class_s_guess_is_a_ghost_that_starts_where_the_cache_does(
    show: MemoryExplorer,
) -> None:
    assert "guess" not in show.picture.value.split("aria-label", 1)[1].split(">", 1)[1]
    show.controls["guess"].value = "25 GiB"
    assert "guess: 25 GiB" in show.picture.value
    show.controls["guess"].value = "no idea <b>"
    assert "<b>" not in show.picture.value
    assert show.error.value == ""


@pytest.mark.parametrize(
    ("text", "size"),
    [("20 GB", 20 * 10**9), ("1,5 GiB", 3 * 2**29), ("64", 64 * 10**9), ("", None), ("-3", None)],
)
def test_a_guess_is_read_as_people_type_it(text: str, size: int | None) -> None:
    assert read_guess(text) == size
    assert read_guess("5 tokens") is None


def test_what_does_not_fit_says_so_and_still_draws(show: MemoryExplorer) -> None:
    show.set(gpu="T4", users=256, context=2**20)
    assert "It does not fit" in show.picture.value
    assert show.numbers["users that fit"] == "0"


def test_the_still_picture_carries_the_numbers(show: MemoryExplorer) -> None:
    assert "131,072 bytes a token" in show.still()
    assert "14.96" in show.still()
