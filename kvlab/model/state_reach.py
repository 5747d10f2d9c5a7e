"""How far one token reaches: which states change, layer by layer, when it is another one.

A state is what a layer hands on, so row 0 is the embedding and row l what l layers made of it.
Nothing is said about whether what arrives is of any use.
"""

from contextlib import ExitStack

import torch
from torch import Tensor

from kvlab.errors import InvalidArgument
from kvlab.model.llama import Llama


@torch.no_grad()
def state_differences(model: Llama, input_ids: Tensor, other_ids: Tensor) -> Tensor:
    """Return |a - b| / |a| of every state of two texts, (num_layers + 1, tokens), on the CPU.

    Both are (1, tokens). Where nothing can arrive, the difference is exactly 0.

    >>> from kvlab.model.config import LlamaConfig
    >>> config = LlamaConfig(num_layers=2, num_heads=1, num_kv_heads=1, head_dim=8, hidden_size=8,
    ...     intermediate_size=8, vocab_size=9, max_seq_len=16, sliding_window=3)
    >>> model, text = Llama(config).init_weights(1, std=0.5), torch.ones(1, 8, dtype=torch.long)
    >>> other = text.clone(); other[0, 1] = 2
    >>> (state_differences(model, text, other) > 0).sum(dim=1).tolist()
    [1, 3, 5]
    """
    if input_ids.shape != other_ids.shape or input_ids.dim() != 2 or len(input_ids) != 1:
        rule = f"must be (1, tokens) like input_ids, {tuple(input_ids.shape)}"
        raise InvalidArgument("other_ids", tuple(other_ids.shape), rule)
    one, other = (_states(model, ids) for ids in (input_ids, other_ids))
    length = one.norm(dim=-1).clamp(min=1e-30)
    return ((one - other).norm(dim=-1) / length).cpu()


def _states(model: Llama, ids: Tensor) -> Tensor:
    """Return the embedding and the output of every block, (num_layers + 1, tokens, hidden)."""
    found: list[Tensor] = []
    with ExitStack() as hooks:
        for module in (model.model.embed_tokens, *model.model.layers):
            handle = module.register_forward_hook(lambda _, __, made: found.append(made[0]))
            hooks.callback(handle.remove)
        model(ids.to(model.lm_head.weight.device), last_token_only=True)
    return torch.stack(found).double()


def reach(differences: Tensor, position: int) -> list[int]:
    """Return how many positions on the change at `position` is still seen, for each row.

    >>> reach(torch.tensor([[0.0, 1.0, 0.0, 0.0], [0.0, 0.3, 0.2, 0.0]]), 1)
    [0, 1]
    """
    places = [torch.nonzero(row).flatten() for row in differences]
    return [int(seen[-1]) - position if len(seen) else 0 for seen in places]
