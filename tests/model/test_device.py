"""Device and dtype: chosen to suit, named errors for what is not there."""

import pytest
import torch

from kvlab.errors import InvalidArgument
from kvlab.model import device as module
from kvlab.model.device import choose_device, choose_dtype, describe_device

no_cuda = pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has CUDA")


def _pretend_gpu(monkeypatch: pytest.MonkeyPatch, *, major: int, count: int = 1) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (major, 0))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "a GPU")


@no_cuda
def test_without_cuda_the_cpu_is_chosen_in_float32() -> None:
    assert choose_device() == choose_device("auto") == torch.device("cpu")
    assert choose_dtype() is torch.float32


@no_cuda
@pytest.mark.parametrize("name", ["cuda", "CUDA", "cuda:1", torch.device("cuda")])
def test_cuda_where_there_is_none_is_a_named_error(name: str | torch.device) -> None:
    with pytest.raises(InvalidArgument, match="there is no CUDA device here") as caught:
        choose_device(name)
    assert caught.value.argument == "device"


def test_cuda_is_chosen_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    _pretend_gpu(monkeypatch, major=9)
    assert choose_device() == torch.device("cuda")
    assert choose_dtype() is torch.bfloat16
    assert describe_device().startswith("cuda (a GPU), bfloat16: ")


def test_an_old_gpu_computes_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    _pretend_gpu(monkeypatch, major=7)
    assert choose_dtype("cuda") is torch.float32
    assert choose_dtype("cuda", "fp16") is torch.float16
    assert "8.0" in describe_device()


def test_a_cuda_index_beyond_the_last_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    _pretend_gpu(monkeypatch, major=9, count=2)
    assert choose_device("cuda:1") == torch.device("cuda", 1)
    with pytest.raises(InvalidArgument, match="0 to 1"):
        choose_device("cuda:2")


def test_mps_is_refused_in_a_sentence() -> None:
    with pytest.raises(InvalidArgument, match="Apple's MPS"):
        choose_device("mps")


@pytest.mark.parametrize("name", ["", "gpu", "tpu", "meta", "xla", "cpu:x", "cuda:-1", "🐟"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(InvalidArgument, match="'auto', 'cpu' or 'cuda'"):
        choose_device(name)


@pytest.mark.parametrize("name", ["bf16", "BFLOAT16", "torch.bfloat16", torch.bfloat16])
def test_a_dtype_goes_by_many_names(name: str | torch.dtype) -> None:
    assert choose_dtype("cpu", name) is torch.bfloat16


@pytest.mark.parametrize("name", ["", "int8", "fp8", torch.int32, torch.float64, 16])
def test_another_dtype_is_refused(name: object) -> None:
    with pytest.raises(InvalidArgument, match="float32, bfloat16 or float16"):
        choose_dtype("cpu", name)  # type: ignore[arg-type]


@pytest.mark.parametrize("has_bf16", [True, False])
def test_a_cpu_stays_in_float32_and_says_why(
    has_bf16: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "cpu_has_bf16", lambda: has_bf16)
    line = describe_device("cpu")
    assert "float32: " in line
    assert ("same numbers" in line) is has_bf16
    assert "\n" not in line


def test_a_torch_that_tells_nothing_of_the_cpu_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    assert not module.cpu_has_bf16()
    assert describe_device("cpu").startswith("cpu (")


def test_one_cpu_has_one_name_and_no_number_but_0() -> None:
    assert choose_device("cpu:0") == torch.device("cpu")
    with pytest.raises(InvalidArgument, match="device='cpu:1'"):
        choose_device("cpu:1")
