"""transformers' own paged cache, live: its pool is as predicted, and it writes what ours writes."""

import pytest

from kvlab.model.load import load_model
from kvlab.serving.engine import Engine
from kvlab.serving.engines.real_ids import with_real_ids
from kvlab.serving.engines.transformers_paged import (
    PagedRun,
    TransformersPlan,
    run_transformers_paged,
)
from kvlab.serving.request import Request
from kvlab.serving.workloads import make_requests


@pytest.fixture(scope="module")
def asked() -> list[Request]:
    """Eight prompts of the tiny model's vocabulary."""
    made = make_requests(8, prompt_tokens="uniform:20:60", output_tokens=24, seed=2)
    return list(with_real_ids(made, 256))


@pytest.fixture(scope="module")
def roomy(asked: list[Request]) -> PagedRun:
    """A run whose pool holds all at once."""
    return run_transformers_paged(TransformersPlan("tiny", page_size=16, num_blocks=60), asked)


def test_the_pool_is_predicted_to_the_byte(roomy: PagedRun) -> None:
    expected = roomy.plan.predict()
    assert (roomy.num_blocks, roomy.total_bytes) == (expected.num_blocks, expected.total_bytes)
    assert (expected.block_bytes, expected.tokens) == (16_384, 960)


def test_the_blocks_in_use_are_those_of_the_tokens(roomy: PagedRun, asked: list[Request]) -> None:
    least = max(-(-request.prompt_tokens // 16) for request in asked)
    most = sum(-(-request.peak_tokens // 16) for request in asked)
    assert least <= roomy.peak_used_blocks <= most


def test_it_writes_what_our_engine_writes(roomy: PagedRun, asked: list[Request]) -> None:
    ours = Engine(load_model("tiny", device="cpu", dtype="float32").model, num_blocks=60).serve(
        asked
    )
    assert roomy.token_ids == {n: tuple(a.token_ids) for (n, _), a in sorted(ours.items())}


def test_a_tight_pool_changes_no_token_and_is_never_passed(
    roomy: PagedRun, asked: list[Request]
) -> None:
    tight = run_transformers_paged(TransformersPlan("tiny", page_size=16, num_blocks=10), asked)
    assert tight.token_ids == roomy.token_ids
    assert tight.peak_used_blocks <= tight.num_blocks == 10


def test_every_answer_has_its_times(roomy: PagedRun) -> None:
    for answer in roomy.answers.values():
        assert answer.end_reason == "length" and len(answer.token_at) == len(answer.token_ids) == 24
        assert answer.ttft is not None and list(answer.token_at) == sorted(answer.token_at)
