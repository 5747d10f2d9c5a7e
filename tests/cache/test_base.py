"""`KVLayer`: position, refusals and the hook that shows attention weights."""

from typing import Any

import pytest
import torch

from kvlab.cache import GrowingLayer, KVCache, KVLayer
from kvlab.errors import Unsupported


class BareLayer(KVLayer):
    """A storage idea that can neither go back nor reorder."""

    def allocate(self, key_states: Any, value_states: Any) -> None:
        """Need no room."""

    def store(self, key_states: Any, value_states: Any) -> Any:
        return key_states, value_states

    def num_kept(self) -> int:
        return 0

    def held(self) -> tuple[()]:
        return ()


@pytest.mark.parametrize(
    ("act", "sentence"),
    [
        (lambda cache: cache.truncate_to(1), "BareLayer cannot be shortened"),
        (lambda cache: cache.crop(-1), "BareLayer cannot be shortened"),
        (lambda cache: cache.select_rows(torch.tensor([0])), "BareLayer cannot reorder"),
        (lambda cache: cache.reorder_cache(torch.tensor([0])), "BareLayer cannot reorder"),
        (lambda cache: cache.batch_repeat_interleave(2), "BareLayer cannot reorder"),
        (lambda cache: cache.layers[0].offload(), "BareLayer cannot be offloaded"),
        (lambda cache: cache.layers[0].prefetch(), "BareLayer cannot be offloaded"),
    ],
)
def test_what_a_layer_cannot_do_it_says_in_a_sentence(act: Any, sentence: str) -> None:
    cache, tokens = KVCache([BareLayer()]), torch.zeros(1, 2, 3, 4)
    cache.update(tokens, tokens, 0)
    with pytest.raises(Unsupported, match=sentence):
        act(cache)
    assert cache.get_seq_length() == 3


def test_position_counts_tokens_seen_even_when_a_layer_keeps_none() -> None:
    layer, tokens = BareLayer(), torch.zeros(1, 2, 3, 4)
    layer.update(tokens, tokens)
    assert (layer.get_seq_length(), layer.get_mask_sizes(2)) == (3, (2, 3))


class WatchingLayer(GrowingLayer):
    wants_weights = True
    shape: tuple[int, ...] = ()

    def observe(self, attention_weights: torch.Tensor) -> None:
        self.shape = tuple(attention_weights.shape)


def test_only_a_cache_that_asks_is_shown_the_attention_weights(llama: Any, ids: Any) -> None:
    plain = KVCache([GrowingLayer() for _ in range(3)])
    watching = KVCache([WatchingLayer() for _ in range(3)])
    assert (plain.wants_weights, watching.wants_weights) == (False, True)
    logits = llama(ids(1, 5), cache=watching)
    torch.testing.assert_close(logits, llama(ids(1, 5), cache=plain), rtol=0, atol=1e-4)
    assert [layer.shape for layer in watching.layers] == [(1, 4, 5, 5)] * 3
