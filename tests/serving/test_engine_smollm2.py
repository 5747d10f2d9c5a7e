"""SmolLM2 in float32: the engine writes what each request writes alone.

Batching rounds differently, so a token may differ where two logits are as good as equal; each such
place is shown with its gap. The full version, 200 requests, runs with KVLAB_TEST_FULL=1.
"""

import os
import random

import pytest
import torch

from kvlab.model.decode import generate
from kvlab.model.load import LoadedModel, load_model
from kvlab.model.sample_text import prose
from kvlab.model.weights import is_available
from kvlab.serving.engine import Answer, Engine
from kvlab.serving.limits import Limits
from kvlab.serving.request import Request, prompt

FULL = bool(os.environ.get("KVLAB_TEST_FULL"))
COUNT, LONGEST, MAX_NEW = (200, 60, 16) if FULL else (6, 24, 4)
LARGEST_GAP = 1e-4
POOLS = [
    (16, 1.0, Limits(max_batched_tokens=48, max_running=12, preemption="swap")),
    (7, 1.5, Limits(max_batched_tokens=48, max_running=12)),
    (1, 4.0, Limits(max_running=32)),
]
pytestmark = [
    pytest.mark.weights,
    pytest.mark.skipif(
        not is_available("smollm2"), reason="SmolLM2 is not here: run `kvlab fetch smollm2`"
    ),
]


@pytest.fixture(scope="module")
def smollm2() -> LoadedModel:
    """Give SmolLM2 on the CPU in float32."""
    return load_model("smollm2", device="cpu", dtype="float32")


@pytest.fixture(scope="module")
def requests(smollm2: LoadedModel) -> list[Request]:
    """Pieces of prose; some begin alike, some want three samples."""
    rng = random.Random(8)
    ids = smollm2.tokenizer.encode(prose())
    made = []
    for number in range(COUNT):
        shared, own = rng.choice([0, 0, LONGEST // 2]), rng.randint(1, LONGEST // 2)
        start = rng.randrange(len(ids) - own)
        text = ids[:shared] + ids[start : start + own]
        samples = rng.choice([1, 1, 1, 3])
        made.append(prompt(number, text, rng.randint(1, MAX_NEW), num_samples=samples))
    return made


@pytest.fixture(scope="module")
def alone(smollm2: LoadedModel, requests: list[Request]) -> dict[int, tuple[list[int], list]]:
    """What each request writes alone, with the logits of each step."""
    found = {}
    for request in requests:
        steps = generate(
            smollm2.model,
            request.prompt_ids,
            max_new_tokens=request.max_new_tokens,
            keep_logits=True,
        )
        taken = [(step.token_id, step.logits[0]) for step in steps]
        found[request.request_id] = [t for t, _ in taken], [logits for _, logits in taken]
    return found


@pytest.mark.parametrize(("block_size", "factor", "limits"), POOLS if FULL else POOLS[:1])
def test_answers_equal_those_written_alone(
    smollm2: LoadedModel, requests, alone, block_size: int, factor: float, limits: Limits
) -> None:
    fewest = max(-(-request.peak_tokens // block_size) for request in requests)
    engine = Engine(
        smollm2.model, num_blocks=int(factor * fewest), block_size=block_size, limits=limits
    )
    answers: dict[tuple[int, int], Answer] = {}
    loop = engine.start(requests, answers)
    loop.run()
    assert loop.metrics.requests == {"finished": COUNT}
    gaps = [
        gap
        for (number, _), answer in sorted(answers.items())
        if (gap := first_gap(answer.token_ids, *alone[number])) is not None
    ]
    print(f"block {block_size}: {len(answers)} answers, {len(gaps)} differ, gaps {gaps}")
    print(loop.scheduler.counts)
    assert all(gap < LARGEST_GAP for gap in gaps)
    assert len(gaps) <= len(answers) / 50
    assert loop.scheduler.counts.preemptions > 0 or factor > 2


def first_gap(written: list[int], alone: list[int], logits: list[torch.Tensor]) -> float | None:
    """Return how far apart the two tokens' logits are where they first differ; None: nowhere."""
    assert len(written) == len(alone)
    for token, expected, scores in zip(written, alone, logits, strict=True):
        if token != expected:
            return float(scores[expected] - scores[token])
    return None
