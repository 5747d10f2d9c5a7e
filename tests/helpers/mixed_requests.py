"""Requests of every kind for a real model, and what each of them writes when it runs alone."""

import random

from kvlab.model.decode import generate
from kvlab.model.llama import Llama
from kvlab.serving.request import Request, Sampling, prompt

Written = dict[tuple[int, int], list[int]]


def mixed_requests(
    count: int, vocab_size: int, *, seed: int, longest: int, max_new: int, stop_ids: frozenset[int]
) -> list[Request]:
    """Return prompts of 1 to `longest` tokens: some begin alike, have samples, or give up."""
    rng = random.Random(seed)
    common = [rng.randrange(vocab_size) for _ in range(longest)]
    requests, now = [], 0.0
    for number in range(count):
        shared = rng.choice([0, 0, longest // 4, longest // 2, longest - 1])
        own = rng.randint(1, longest - shared)
        now += rng.choice([0.0, 0.0, 0.002, 0.03])
        requests.append(
            prompt(
                number,
                common[:shared] + [rng.randrange(vocab_size) for _ in range(own)],
                rng.randint(1, max_new),
                arrival_seconds=now,
                num_samples=rng.choice([1, 1, 1, 3]),
                stop_ids=stop_ids,
                sampling=Sampling(rng.choice([0.0, 0.0, 0.9]), seed=number),
                priority=rng.randint(0, 2),
                salt=rng.choice([None, None, "ann"]),
                timeout_seconds=rng.choice([None] * 7 + [0.08]),
            )
        )
    return requests


def written_alone(model: Llama, requests: list[Request]) -> Written:
    """Return what each sample of each request writes by itself, with a plain growing cache."""
    written = {}
    for request in requests:
        for sample in range(request.num_samples):
            how = request.sampling
            steps = generate(
                model,
                request.prompt_ids,
                max_new_tokens=request.max_new_tokens,
                temperature=how.temperature,
                seed=how.seed + sample,
                stop_ids=request.stop_ids,
            )
            written[request.request_id, sample] = [step.token_id for step in steps]
    return written
