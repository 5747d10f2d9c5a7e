"""The share of attention that the top positions hold, against plain sums over a whole run."""

from typing import Any

import pytest
import torch
from masked_llama import masked_run, random_ids, tiny_llama

from kvlab.errors import InvalidArgument
from kvlab.model.attention_share import AttentionShare, attention_share


@pytest.mark.parametrize("chunk_size", [1, 7, 256])
def test_the_sums_are_those_of_the_weights_of_a_run_without_a_cache(chunk_size: int) -> None:
    model, ids = tiny_llama(), random_ids(1, 40)
    causal = torch.ones(1, 2, 40, 40).tril().bool()
    with torch.no_grad():
        weights = masked_run(model, ids, [causal] * 3).weights
    share = attention_share(model, ids, chunk_size=chunk_size)
    for layer in range(3):
        for head in range(4):
            received = [float(weights[layer][0, head, :, key].sum()) for key in range(40)]
            found = share.received[layer, head]
            torch.testing.assert_close(found, torch.tensor(received), rtol=0, atol=1e-5)
            for percent, count in ((1, 1), (5, 2), (20, 8)):
                top = sum(sorted(received)[-count:]) / 40
                assert float(share.top_share(percent)[layer, head]) == pytest.approx(top, abs=1e-5)
            first = sum(received[:4]) / 40
            assert float(share.first_share(4)[layer, head]) == pytest.approx(first, abs=1e-5)
    pairs = share.received[:, 0::2] + share.received[:, 1::2]
    torch.testing.assert_close(share.by_kv_head(), pairs)


def test_every_query_hands_out_one_and_the_top_100_percent_hold_all() -> None:
    share = attention_share(tiny_llama(), random_ids(1, 33)[0])
    torch.testing.assert_close(share.received.sum(dim=-1), torch.full((3, 4), 33.0))
    torch.testing.assert_close(share.top_share(100), torch.ones(3, 4))
    shares = share.top_shares()
    assert 0 < shares[1] < shares[5] < shares[20] < 1


def test_a_sink_that_draws_all_is_seen() -> None:
    received = torch.zeros(1, 1, 200)
    received[..., 0] = 200
    share = AttentionShare(received, num_kv_heads=1)
    assert share.top_shares((1, 5, 20)) == {1: 1.0, 5: 1.0, 20: 1.0}
    assert float(share.first_share(1)) == 1.0
    assert (share.top_count(1), share.top_count(0.1), share.top_count(29)) == (2, 1, 58)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda model: attention_share(model, random_ids(2, 5)), "input_ids=(2, 5)"),
        (lambda model: attention_share(model, torch.zeros(0).long()), "input_ids=(1, 0)"),
        (lambda model: attention_share(model, [1, 2], chunk_size=0), "chunk_size=0"),
        (lambda model: attention_share(model, [1, 2]).top_share(0), "percent=0"),
        (lambda model: attention_share(model, [1, 2]).top_share(101), "percent=101"),
    ],
)
def test_what_cannot_be_measured_is_named(call: Any, named: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        call(tiny_llama())
    assert named in str(caught.value)
