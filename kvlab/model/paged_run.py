"""Run the Llama over a paged cache: many sequences of different lengths in one forward pass.

Greedy only, and everything fits in the pool: who waits and who gives way is up to `kvlab.serving`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

import torch
from torch import Tensor

from kvlab.arithmetic.checks import whole_number
from kvlab.cache.paged import PagedCache
from kvlab.model.llama import Llama

SeqId = Hashable


@torch.no_grad()
def step_paged(
    model: Llama,
    cache: PagedCache,
    new_tokens: Mapping[SeqId, Sequence[int]],
    *,
    extra_keys: Mapping[SeqId, Hashable] | None = None,
) -> dict[SeqId, Tensor]:
    """Feed new tokens of several sequences at once; return each one's logits, (vocab_size,).

    They are the logits after its last token. A prompt, a piece of a prompt and a single token may
    stand side by side. If anything fails, the cache is as it was.
    """
    with cache.step(new_tokens, extra_keys=extra_keys) as batch:
        logits = model(
            batch.input_ids, cache=batch, attention_mask=batch.attention_mask, last_token_only=True
        )
    return {span.seq_id: row for span, row in zip(batch.spans, logits[:, 0], strict=True)}


def generate_paged(
    model: Llama,
    cache: PagedCache,
    prompts: Mapping[SeqId, Sequence[int]],
    *,
    max_new_tokens: int,
    stop_ids: Iterable[int] = (),
) -> dict[SeqId, list[int]]:
    """Write greedily for all prompts at once; return the new tokens of each.

    The prompts join the cache and stay in it, so that they can be continued or forked. A sequence
    that emits one of `stop_ids` gets nothing more, while the others go on.
    """
    steps, stops = whole_number("max_new_tokens", max_new_tokens), frozenset(stop_ids)
    emitted: dict[SeqId, list[int]] = {seq_id: [] for seq_id in prompts}
    feed: dict[SeqId, Sequence[int]] = dict(prompts)
    for _ in range(steps):
        logits = step_paged(model, cache, feed)
        chosen = {seq_id: int(row.argmax()) for seq_id, row in logits.items()}
        for seq_id, token in chosen.items():
            emitted[seq_id].append(token)
        feed = {seq_id: [token] for seq_id, token in chosen.items() if token not in stops}
        if not feed:
            break
    return emitted
