"""What one token can change: nothing before it, and no further than the windows hand on."""

import pytest
import torch

from kvlab.errors import InvalidArgument
from kvlab.model.config import LlamaConfig
from kvlab.model.llama import Llama
from kvlab.model.load import load_model
from kvlab.model.state_reach import reach, state_differences

SIZES = {"num_heads": 2, "num_kv_heads": 1, "head_dim": 8, "hidden_size": 16,
         "intermediate_size": 32, "vocab_size": 50, "max_seq_len": 64}  # fmt: skip


def texts(tokens: int, position: int) -> tuple[torch.Tensor, torch.Tensor]:
    ids = torch.randint(0, 50, (1, tokens), generator=torch.Generator().manual_seed(4))
    other = ids.clone()
    other[0, position] = (ids[0, position] + 1) % 50
    return ids, other


@pytest.mark.parametrize(("layers", "window"), [(1, 2), (2, 1), (3, 4), (4, 3)])
def test_each_windowed_layer_hands_on_by_one_less_than_its_window(layers: int, window: int) -> None:
    model = Llama(LlamaConfig(num_layers=layers, sliding_window=window, **SIZES))
    model.init_weights(1, std=0.5)
    found = state_differences(model, *texts(24, 5))
    assert reach(found, 5) == [layer * (window - 1) for layer in range(layers + 1)]
    assert not found[:, :5].any()


def test_without_a_window_one_layer_is_enough() -> None:
    model = Llama(LlamaConfig(num_layers=2, **SIZES)).init_weights(1, std=0.5)
    assert reach(state_differences(model, *texts(24, 5)), 5) == [0, 18, 18]


def test_the_trained_window_ends_where_its_config_says() -> None:
    model = load_model("tiny-window").model
    ids, other = texts(200, 30)
    window = model.config.sliding_window
    assert reach(state_differences(model, ids, other), 30) == [0, window - 1, 169]


def test_equal_texts_do_not_differ_and_hooks_are_gone() -> None:
    model = Llama(LlamaConfig(num_layers=2, **SIZES)).init_weights(1)
    ids, _ = texts(8, 1)
    assert not state_differences(model, ids, ids.clone()).any()
    assert not any(module._forward_hooks for module in model.modules())


def test_texts_of_other_lengths_are_refused_by_name() -> None:
    model = Llama(LlamaConfig(num_layers=1, **SIZES)).init_weights(1)
    ids, _ = texts(8, 1)
    with pytest.raises(InvalidArgument, match="other_ids"):
        state_differences(model, ids, ids[:, :7])
    with pytest.raises(InvalidArgument, match="other_ids"):
        state_differences(model, ids[0], ids[0])
