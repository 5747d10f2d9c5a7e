"""The claims of chapter 11, recomputed here from the shapes alone."""

import pytest

from kvlab.course.claims import find_claim

PER_TOKEN = 2 * 80 * 8 * 128 * 2
WEIGHTS = 2 * 70_553_706_496
REQUEST = 131_072 * PER_TOKEN
EXPECTED = {
    "falls-over-at-eight-users": [8 * REQUEST / 1e9, 640 - WEIGHTS / 1e9],
    "llama3-supports-128k": [8192, 131_072],
    "server-640gb": [640, 8 * 85_520_809_984 / 1e9],
    "sessions-with-utilisation": [
        (640e9 - WEIGHTS) / REQUEST,
        (576e9 - WEIGHTS) / REQUEST,
        (576e9 - 24e9 - WEIGHTS) / REQUEST,
    ],
    "latency-barely-moves": [21.99, 21.29],
}
VERDICTS = {"server-640gb": "only if", "latency-barely-moves": "only if"}


@pytest.mark.parametrize("claim_id", EXPECTED)
def test_what_is_computed_is_what_the_shapes_give(claim_id: str) -> None:
    claim = find_claim(claim_id)
    assert claim.computed() == pytest.approx(EXPECTED[claim_id], rel=1e-3)
    assert claim.learner_verdict == VERDICTS.get(claim_id, "wrong")
    assert (claim.topic, claim.chapter) == ("sizing", "11")


def test_the_share_costs_one_whole_session_and_the_overhead_another() -> None:
    counts = find_claim("sessions-with-utilisation").computed()
    assert [int(count) for count in counts] == [11, 10, 9]


def test_eight_users_need_less_than_what_is_left() -> None:
    needed, left = find_claim("falls-over-at-eight-users").computed()
    assert needed < left
