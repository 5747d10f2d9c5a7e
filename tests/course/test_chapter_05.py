"""The exercises, claims and questions of chapter 05, against numbers worked out by hand."""

import numpy as np
import pytest
from exercise_answers import assert_told_apart

from kvlab.course import checks_05
from kvlab.course import exercises as ex
from kvlab.course.claims import find_claim, load_claims
from kvlab.model.config import LlamaConfig
from kvlab.model.llama import Llama

HEAD_70B = 2 * 80 * 128 * 2  # one KV head, all layers, 16 bit
LEFT = 640 * 10**9 - 2 * 70_553_706_496
CONTEXT = 131_072


def sessions(heads: int) -> int:
    return int(LEFT // (heads * HEAD_70B * CONTEXT))


NEW, OLD = 60 * (512 + 64), 2 * 95 * 8 * 128
EXPECTED = {
    "mqa-92-sessions": [sessions(1), sessions(8)],
    "every-frontier-model-since-2023": [64, 64],
    "gqa-no-change-to-parameter-count": [
        80 * 2 * 8192 * (64 - 8) * 128,
        32 * 2 * 4096 * (32 - 8) * 128,
    ],
    "mqa-used-by-falcon": [71, 128 / 8, 232 / 8],
    "deepseek-v2-93-3-percent": [100 * (1 - NEW / OLD), 100 * (1 - NEW * 6 / (OLD * 16))],
    "deepseek-v2-equals-gqa-2-25": (512 + 64) / 256,
    "gqa-4x-llama3": [32 / 8, 64 / 8],
    "eightfold-serving-swing": [sessions(64), sessions(8)],
    "mha-session-343gb": [64 * HEAD_70B * CONTEXT / 1e9, 8 * HEAD_70B * CONTEXT / 1e9],
    "gqa-parameter-share": 100 * 9_395_240_960 / (70_553_706_496 + 9_395_240_960),
    "gqa-negligible-quality-loss": None,
}
CLAIMS = [claim for claim in load_claims() if claim.chapter == "05"]


@pytest.mark.parametrize("claim", CLAIMS, ids=[claim.id for claim in CLAIMS])
def test_a_claim_is_recomputed_to_the_expected_value(claim) -> None:  # type: ignore[no-untyped-def]
    wanted = EXPECTED[claim.id]
    assert claim.computed() == (None if wanted is None else pytest.approx(wanted, rel=1e-9))
    assert claim.topic == "gqa"


def test_every_claim_is_covered_and_the_fixed_ones_have_their_verdict() -> None:
    assert {claim.id for claim in CLAIMS} == set(EXPECTED)
    assert EXPECTED["mqa-92-sessions"] == [92, 11]
    fixed = ("mqa-92-sessions", "every-frontier-model-since-2023")
    for name in (*fixed, "gqa-no-change-to-parameter-count"):
        assert find_claim(name).learner_verdict == "wrong"
    assert find_claim("deepseek-v2-93-3-percent").learner_verdict == "only if"


def test_the_published_cut_is_93_3_only_with_six_bits() -> None:
    plain, packed = find_claim("deepseek-v2-93-3-percent").computed()
    assert (f"{plain:.1f}", f"{packed:.1f}") == ("82.2", "93.3")
    assert "82.2 %" in find_claim("deepseek-v2-93-3-percent").condition


def parameters_by_hand(hidden, heads, kv_heads, head_dim):  # type: ignore[no-untyped-def]
    q = hidden * heads * head_dim
    k = hidden * kv_heads * head_dim
    return q + k + k + q


def test_the_reference_counts_what_our_llama_holds() -> None:
    config = LlamaConfig(num_layers=1, num_heads=6, num_kv_heads=2, head_dim=4, hidden_size=10,
                         intermediate_size=8, vocab_size=8, max_seq_len=8)  # fmt: skip
    held = sum(p.numel() for n, p in Llama(config).named_parameters() if "self_attn" in n)
    assert checks_05.attention_parameters(10, 6, 2, 4) == held


def test_the_reference_pools_as_the_package_does() -> None:
    import torch

    from kvlab.model.pool_heads import pool_kv_heads

    config = LlamaConfig(num_layers=1, num_heads=4, num_kv_heads=4, head_dim=2, hidden_size=8,
                         intermediate_size=8, vocab_size=8, max_seq_len=8)  # fmt: skip
    model = Llama(config).init_weights(1)
    pooled = pool_kv_heads(model, 2)
    for name in ("k_proj", "v_proj"):
        before, after = (
            getattr(m.model.layers[0].self_attn, name).weight.detach() for m in (model, pooled)
        )
        ours = checks_05.pool(before.double().numpy(), 2, 2)
        assert torch.allclose(torch.from_numpy(ours).float(), after, atol=1e-6)


def pool_by_loop(weight, num_kv_heads, head_dim):  # type: ignore[no-untyped-def]
    heads = [weight[i : i + head_dim] for i in range(0, len(weight), head_dim)]
    size = len(heads) // num_kv_heads
    return np.concatenate(
        [sum(heads[g * size : (g + 1) * size]) / size for g in range(num_kv_heads)]
    )


RIGHT = {
    "05-a": [parameters_by_hand, checks_05.attention_parameters],
    "05-b": ["47 KiB", "48.128 kB", "48,128 bytes"],
    "05-c": [pool_by_loop, checks_05.pool],
}
WRONG = {
    "05-a": {
        "all-query-heads": lambda h, q, k, d: 4 * h * q * d,
        "query-shrinks": lambda h, q, k, d: 4 * h * k * d,
        "output-forgotten": lambda h, q, k, d: h * d * (q + 2 * k),
        "one-of-two": lambda h, q, k, d: h * d * (2 * q + k),
        "keys-and-values-alone": lambda h, q, k, d: 2 * h * k * d,
        "hidden-squared": lambda h, q, k, d: 2 * h * h + 2 * h * k * d,
    },
    "05-b": {
        "part-of-a-head": "23.5 KiB",
        "not-split": "188 KiB",
        "query-heads": "376 KiB",
        "keys-only": "11.75 KiB",
        "one-layer": "0.5 KiB",
    },
    "05-c": {
        "far-apart": lambda w, n, d: w.reshape(-1, n * d, w.shape[1]).mean(0),
        "rows": lambda w, n, d: w.reshape(n * d, -1, w.shape[1]).mean(1),
        "summed": lambda w, n, d: pool_by_loop(w, n, d) * (len(w) / (n * d)),
        "first-of-each": lambda w, n, d: w.reshape(n, -1, d, w.shape[1])[:, 0].reshape(n * d, -1),
        "first-heads": lambda w, n, d: w[: n * d],
    },
}
EXERCISES = ex.exercises_of("05")


@pytest.mark.parametrize("exercise", EXERCISES, ids=[e.id for e in EXERCISES])
def test_right_answers_pass_and_each_slip_is_named(exercise) -> None:  # type: ignore[no-untyped-def]
    assert_told_apart(exercise, RIGHT, WRONG)
