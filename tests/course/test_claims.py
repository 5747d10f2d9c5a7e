import json

import pytest

from kvlab.course.claims import LEARNER_VERDICTS, claim_card, computed_rows, load_claims
from kvlab.errors import InvalidArgument

# Worked out by hand or by brute force below, not by the functions that the claims name.
EXPECTED = {
    "full-context-43gb": [42.94967296, 40],
    "token-cached-when-consumed": 20 + 9,
    "queries-not-persisted": None,
    "cached-decode-not-linear": sum(range(1, 6001)) / sum(range(1, 3001)),
    "kv-valid-causal-only": None,
    "disable-cache-single-pass": 0,
    "tokforward-cached-2000-1000": 2999,
    "tokforward-uncached-2000-1000": sum(range(2000, 3000)),
    "tokforward-uncached-range": [2000, 2999],
    "tokforward-ratio-2000-1000": sum(range(2000, 3000)) / 2999,
    "recompute-quadruples": sum(range(2000, 4000)) / sum(range(2000, 3000)),
    "recompute-doubling-n-for-3-9x": 38 * 2000 - 19,
    "gap-widens-with-square": 999 * 2000 + 999 * 998 // 2,
    "flops-ratio-70b-2000-1000": 825.7254106345783,
    "flops-ratio-8b-2000-1000": 807.3778039427397,
    "attention-not-the-bottleneck": 52224,
    "attention-crossover-8b": [26624, 53247],
    "attend-all-previous": 1000,
    "kv-of-token-1-never-changes": None,
    "matmuls-32000": [32000, 64000, 64, 63936],
    "vast-majority-redundant": 100 * (1 - 1499 / sum(range(1000, 1500))),
    "only-q-changes": None,
    "cache-diagram-step-n": None,
    "o-n2-to-o-n-per-step": [
        sum(sum(range(1, t + 1)) for t in range(1, 8001))
        / sum(sum(range(1, t + 1)) for t in range(1, 4001)),
        sum(range(1, 8001)) / sum(range(1, 4001)),
        sum(range(1, 8001)) / sum(range(1, 4001)),
        2,
    ],
    "redundant-kv-1000-500": sum(range(1000, 1500)),
    "redundant-kv-1000-500-strict": sum(range(1000, 1500)) - 1499,
    "computed-exactly-once": 1499,
    "next-word-costs-one-token": 131072 / 52224,
}
WRONG = {
    "recompute-quadruples",
    "matmuls-32000",
    "o-n2-to-o-n-per-step",
    "redundant-kv-1000-500",
    "redundant-kv-1000-500-strict",
}
CLAIMS = [claim for claim in load_claims() if claim.chapter in ("00", "01", "02")]


def brute_force_flops(sizes, prompt, new, *, cached):
    layers, hidden, mlp, vocab, heads, kv_heads, head_dim = sizes
    linear = 2 * layers * (2 * hidden * heads * head_dim + 2 * hidden * kv_heads * head_dim)
    linear += 2 * layers * 3 * hidden * mlp
    pair = 4 * layers * heads * head_dim
    spans = [(0, prompt)] + [(prompt + i if cached else 0, prompt + i + 1) for i in range(new - 1)]
    tokens = sum(stop - start for start, stop in spans)
    pairs = sum(stop * (stop + 1) // 2 - start * (start + 1) // 2 for start, stop in spans)
    return linear * tokens + pair * pairs + 2 * hidden * vocab * new


@pytest.mark.parametrize("claim", CLAIMS, ids=[claim.id for claim in CLAIMS])
def test_a_claim_is_recomputed_to_the_expected_value(claim):
    expected = EXPECTED[claim.id]
    wanted = None if expected is None else pytest.approx(expected, rel=1e-12)
    assert claim.computed() == wanted


@pytest.mark.parametrize(
    ("sizes", "claim_id"),
    [
        ((80, 8192, 28672, 128256, 64, 8, 128), "flops-ratio-70b-2000-1000"),
        ((32, 4096, 14336, 128256, 32, 8, 128), "flops-ratio-8b-2000-1000"),
    ],
)
def test_flop_ratios_equal_a_count_step_by_step(sizes, claim_id):
    runs = [brute_force_flops(sizes, 2000, 1000, cached=cached) for cached in (False, True)]
    assert runs[0] / runs[1] == pytest.approx(EXPECTED[claim_id], rel=1e-12)


def test_every_claim_is_covered_and_judged():
    assert {claim.id for claim in CLAIMS} == set(EXPECTED)
    assert {claim.id for claim in CLAIMS if claim.verdict == "wrong"} == WRONG
    for claim in CLAIMS:
        assert claim.source
        assert (claim.computed() is None) == bool(claim.no_number)


@pytest.mark.parametrize(
    ("claim_id", "shown"),
    [
        ("recompute-quadruples", "2.40x"),
        ("redundant-kv-1000-500", "624,750 token-forwards"),
        ("matmuls-32000", "63,936"),
        ("o-n2-to-o-n-per-step", "7.997x"),
        ("token-cached-when-consumed", "29 positions"),
    ],
)
def test_a_card_shows_the_number_only_behind_a_fold(claim_id, shown):
    card = claim_card(claim_id)
    assert shown in computed_rows(card.claim).values()
    before, _, after = card._repr_html_().partition("<details>")
    assert shown in after
    assert shown not in before + repr(card)


def test_a_verdict_is_met_with_ours_and_the_condition():
    card = claim_card("recompute-quadruples")
    assert card.judge("wrong").startswith("We agree: wrong.")
    assert card.judge(" Only  If ").startswith("You said only if; ours is: wrong.")
    for nothing in (None, ..., "", "maybe", 3):
        assert card.judge(nothing).startswith("Not answered yet")
    assert all(claim.learner_verdict in LEARNER_VERDICTS for claim in CLAIMS)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"verdict": "perhaps"}, "verdict"),
        ({"compute": {"function": "__import__", "arguments": {}}}, "compute"),
        ({"compute": None, "no_number": ""}, "no_number"),
        ({"extra": 1}, "extra"),
    ],
)
def test_a_faulty_row_is_named_with_its_field(tmp_path, change, field):
    row = {
        "id": "a",
        "topic": "recompute",
        "chapter": "02",
        "statement": "b",
        "claimed": "c",
        "verdict": "holds",
        "condition": "d",
        "compute": {"function": "work_ratio", "arguments": {"P": 2, "N": 2}},
        "source": "e",
        "as_of": "2026-11-29",
    }
    path = tmp_path / "claims.json"
    path.write_text(json.dumps({"claims": [row | change]}), encoding="utf-8")
    with pytest.raises(InvalidArgument) as caught:
        load_claims(path)
    assert field in caught.value.argument
    assert "claims.json row 1 (a)" in caught.value.argument


def test_a_claim_that_is_judged_only_if_says_its_if():
    assert "only if" in claim_card("only-q-changes").claim.condition
    assert "computed" not in claim_card("only-q-changes").answer
