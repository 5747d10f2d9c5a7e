"""Reading through a cache and comparing logits: equal to torch's own measures."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from kvlab.cache import make_cache, transformers_cache
from kvlab.model.load import load_model
from kvlab.model.quality_logits import Tally, read
from kvlab.model.quality_task import make_task

TINY = load_model("tiny", device="cpu")
TASK = make_task(TINY, tokens=48, facts=4, num_sequences=3)


def test_an_exact_cache_says_what_the_model_says_without_one() -> None:
    reading = read(TINY.model, TASK, make_cache("growing", num_layers=2))
    uncached = TINY.model(TASK.input_ids)[:, TASK.context_len :]
    torch.testing.assert_close(reading.logits, uncached, rtol=0, atol=1e-4)
    assert reading.seconds > 0


@pytest.mark.parametrize("make", [make_cache, transformers_cache])
def test_bytes_are_those_of_one_row_with_all_its_tokens(make: Callable[..., Any]) -> None:
    name = "growing" if make is make_cache else "dynamic"
    reading = read(TINY.model, TASK, make(name, num_layers=2))
    assert reading.cache_bytes == 2 * 2 * 2 * 32 * 48 * 4  # K and V, layers, heads, ..., float32


def test_one_scale_for_a_whole_tensor_counts_once_a_row() -> None:
    reading = read(TINY.model, TASK, make_cache("fp8", num_layers=2))
    assert reading.cache_bytes == 2 * 2 * (2 * 32 * 48 + 4)  # a byte each, and an FP32 scale


def test_every_forward_pass_is_told() -> None:
    told: list[int] = []
    read(TINY.model, TASK, make_cache("growing", num_layers=2), lambda: told.append(1))
    assert len(told) == 1 + TASK.steps


def test_the_sums_are_those_of_torch() -> None:
    random = torch.Generator().manual_seed(0)
    full, other = (torch.randn(3, TASK.steps, 256, generator=random) for _ in range(2))
    tally = Tally()
    tally.add(TASK, full, other)
    known, found = (x.double().log_softmax(-1).flatten(0, 1) for x in (full, other))
    kl = F.kl_div(found, known, reduction="sum", log_target=True)
    steps, targets = TASK.graded()
    said = other[:, steps].double().flatten(0, 1)
    loss = F.cross_entropy(said, targets.flatten(), reduction="sum")
    assert tally.kl == pytest.approx(float(kl), rel=1e-9)
    assert tally.loss == pytest.approx(float(loss), rel=1e-9)
    assert tally.same_top == int((full.argmax(-1) == other.argmax(-1)).sum())
    assert tally.right == int((said.argmax(-1) == targets.flatten()).sum())
    assert (tally.steps, tally.graded) == (3 * TASK.steps, 12)


def test_logits_against_themselves_differ_by_nothing() -> None:
    logits = torch.randn(3, TASK.steps, 256)
    tally = Tally()
    tally.add(TASK, logits, logits)
    assert (tally.kl, tally.same_top) == (0.0, tally.steps)
