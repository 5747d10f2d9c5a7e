"""Every claim of chapter 03 comes to a number worked out here by hand."""

import pytest

from kvlab.course.claims import load_claims

GIB, GB, MIB, MB = 2**30, 10**9, 2**20, 10**6
WEIGHTS = 2 * 8_030_261_248
TOKEN_8B, TOKEN_70B = 2 * 32 * 8 * 128 * 2, 2 * 80 * 8 * 128 * 2
LENGTHS = (2048, 8192, 32_768, 131_072)


def attention_over_linear(tokens: int) -> float:
    layers, hidden, heads, kv_heads, dim, mlp = 80, 8192, 64, 8, 128, 28672
    linear = 2 * hidden * heads * dim + 2 * hidden * kv_heads * dim + 3 * hidden * mlp
    attention = 4 * layers * heads * dim * tokens * (tokens + 1) // 2
    return attention / (2 * layers * linear * tokens)


EXPECTED = {
    "formula-omits-query-heads": [TOKEN_70B, TOKEN_70B, TOKEN_70B // 2],
    "head-dim-typical": [80, 128, 144, 128],
    "units-mb-vs-mib": [256 * MIB / MB, 16 * GIB / GB],
    "payload-upper-bound": 15 * TOKEN_70B / MIB,
    "million-token-memory-before-attention": [
        TOKEN_70B * 10**6 / GB,
        attention_over_linear(10**6),
    ],
    "each-layer-own-cache": [30, 10],
    "state-accounting-differs": 60 * (512 + 64) * 2,
    "llama31-70b-bytes-per-token": 327_680,
    "llama3-8b-sizes": [256, 1024, 4096, 16384],
    "table-10-requests": [2.5, 10, 40, 160],
    "table-100-requests": [25, 100, 400, 1600],
    "kv-12-5-percent-of-weights": 100 * 4 * GIB / WEIGHTS,
    "eight-users-match-weights": [32, 32 * GIB / GB, WEIGHTS / (4 * GIB)],
}
CLAIMS = [claim for claim in load_claims() if claim.chapter == "03"]
WRONG = {
    "units-mb-vs-mib",
    "llama3-8b-sizes",
    "table-10-requests",
    "table-100-requests",
    "kv-12-5-percent-of-weights",
    "eight-users-match-weights",
}


@pytest.mark.parametrize("claim", CLAIMS, ids=[claim.id for claim in CLAIMS])
def test_a_claim_is_recomputed_to_the_expected_value(claim) -> None:
    assert claim.computed() == pytest.approx(EXPECTED[claim.id], rel=1e-12)


def test_every_claim_is_covered_and_judged() -> None:
    assert {claim.id for claim in CLAIMS} == set(EXPECTED)
    assert {claim.id for claim in CLAIMS if claim.verdict == "wrong"} == WRONG
    assert all(claim.topic == "memory" and claim.source for claim in CLAIMS)


def test_the_percentages_in_the_units_card_are_those_of_the_prefixes() -> None:
    assert [round(100 * (a - 1), 1) for a in (MIB / MB, GIB / GB)] == [4.9, 7.4]


def test_the_halved_table_is_half_of_what_the_formula_gives() -> None:
    sizes = [TOKEN_8B * n / MIB for n in LENGTHS]
    assert [size / 2 for size in sizes] == [128, 512, 2048, 8192]
