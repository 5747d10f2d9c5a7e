"""One decode step in torch alone, with shapes that stay: for a machine without a C compiler, and
for CUDA, where it is recorded once as a graph and replayed.

The graph was written without a GPU at hand and has not run on one.
"""

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from kvlab.model.llama import Llama
from kvlab.model.rope import rotate


def step_in_place(
    llama: Llama,
    ids: Tensor,
    column: Tensor,
    first: Tensor,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    used: int | None,
) -> Tensor:
    """Feed one token a row, (batch, 1), and return logits (batch, 1, vocab_size).

    `column` is (1,): where in the cache the new token goes. `first` is (batch,): the column of
    each row's first token. Keys and values are the whole buffers, one a layer; attention reads
    the first `used` columns, or all of them (None), which is the same shape at every step.
    """
    used = keys[0].shape[2] if used is None else used
    columns = torch.arange(used, device=ids.device)
    mask = (columns >= first[:, None]) & (columns <= column)  # (batch, used)
    hidden = llama.model.embed_tokens(ids)
    turn = llama.rope.cos_sin((column - first)[:, None], hidden.dtype)
    for index, block in enumerate(llama.model.layers):
        window = llama.config.layer_windows[index]
        seen = mask if window is None else mask & (columns > column - window)
        part, normed = block.self_attn, block.input_layernorm(hidden)
        split = (len(ids), 1, -1, part.head_dim)
        query = rotate(part.q_proj(normed).view(split).transpose(1, 2), *turn)
        key = rotate(part.k_proj(normed).view(split).transpose(1, 2), *turn)
        value = part.v_proj(normed).view(split).transpose(1, 2)
        keys[index].index_copy_(2, column, key)
        values[index].index_copy_(2, column, value)
        mixed = F.scaled_dot_product_attention(
            query,
            keys[index][:, :, :used],
            values[index][:, :, :used],
            attn_mask=seen[:, None, None],
            enable_gqa=part.grouped,
        )
        hidden = hidden + part.o_proj(mixed.transpose(1, 2).flatten(2))
        hidden = hidden + block.mlp(block.post_attention_layernorm(hidden))
    return llama.lm_head(llama.model.norm(hidden))


class GraphStep:
    """The step on CUDA, recorded at its first call and replayed at all others.

    A graph is for one cache and one batch: it holds their addresses. So `matches` is asked first.
    """

    def __init__(
        self, llama: Llama, batch: int, keys: Sequence[Tensor], values: Sequence[Tensor]
    ) -> None:
        self.keys, self.values = list(keys), list(values)
        device = keys[0].device
        self.ids = torch.zeros(batch, 1, dtype=torch.long, device=device)
        self.column = torch.zeros(1, dtype=torch.long, device=device)
        self.first = torch.zeros(batch, dtype=torch.long, device=device)
        self.step: Callable[[], Tensor] = lambda: step_in_place(
            llama, self.ids, self.column, self.first, self.keys, self.values, None
        )
        self.graph: torch.cuda.CUDAGraph | None = None
        self.logits = torch.empty(0)

    def matches(self, batch: int, keys: Sequence[Tensor]) -> bool:
        """Say whether this graph is for that cache: the same memory, not equal memory."""
        same = zip(self.keys, keys, strict=True)
        return len(self.ids) == batch and all(a.data_ptr() == b.data_ptr() for a, b in same)

    def run(self, ids: Tensor, column: int, first: Tensor) -> Tensor:
        """Return logits (batch, 1, vocab_size) of its own."""
        self.ids.copy_(ids)
        self.column.fill_(column)
        self.first.copy_(first)
        if self.graph is None:
            self._record()
        self.graph.replay()
        return self.logits.clone()

    def _record(self) -> None:
        """Warm up on a side stream, as CUDA wants it, then record; each run writes one column."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.logits = self.step()
        self.graph = graph
