"""The two phases by themselves: prefill (many tokens at once) and decode (one token a row)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from kvlab.cache import cache_length, rollback, unseen_tokens
from kvlab.errors import InvalidArgument
from kvlab.model.decode_inputs import check_cache, check_mask, chunks, token_tensor
from kvlab.model.llama import Llama

if TYPE_CHECKING:
    from kvlab.cache import KVCacheProtocol

# torch.no_grad, not inference_mode: a tensor born in inference mode can't be written in place
# outside it, and a cache lives on after the loop (reset, another model call, a learner's edit).


@torch.no_grad()
def prefill(
    model: Llama,
    input_ids: Tensor | Sequence[int],
    cache: "KVCacheProtocol | None" = None,
    *,
    attention_mask: Tensor | None = None,
    chunk_size: int | None = None,
    last_token_only: bool = True,
) -> Tensor:
    """Run the new tokens into the cache, whole or in chunks; return logits.

    The logits are those of the last position, (batch, 1, vocab_size), or of every one of the P
    positions. `attention_mask` is (batch, held + P), 0 on left padding. Interrupted anywhere, the
    cache holds again what it held before. Each chunk runs the LM head on its last position.
    """
    check_cache(model, cache)
    ids = token_tensor(model, input_ids)
    mask = check_mask(attention_mask, ids, cache_length(cache))
    pieces = chunks(ids.shape[1], chunk_size, cache)
    return run_pieces(model, ids, cache, mask, pieces, last_token_only)


def run_pieces(
    model: Llama,
    ids: Tensor,
    cache: "KVCacheProtocol | None",
    mask: Tensor | None,
    pieces: list[tuple[int, int]],
    last_token_only: bool = True,
) -> Tensor:
    """Do what `prefill` does, for inputs that are checked already."""
    held, outputs = cache_length(cache), []
    with rollback(cache):
        for start, end in pieces:
            seen = None if mask is None else mask[:, : held + end]
            logits = model(
                ids[:, start:end],
                cache=cache,
                attention_mask=seen,
                last_token_only=last_token_only,
            )
            outputs.append(logits)
    return outputs[-1] if last_token_only else torch.cat(outputs, dim=1)


def decode_one_token(
    model: Llama,
    token_ids: Tensor | Sequence[int],
    cache: "KVCacheProtocol",
    *,
    attention_mask: Tensor | None = None,
) -> Tensor:
    """Feed one token a row, (batch, 1), and return the next logits, (batch, 1, vocab_size)."""
    ids = token_tensor(model, token_ids)
    if ids.shape[1] != 1:
        raise InvalidArgument("token_ids", tuple(ids.shape), "must be (batch, 1), one token a row")
    return prefill(model, ids, cache, attention_mask=attention_mask)


def continue_from(
    model: Llama,
    cache: "KVCacheProtocol",
    *,
    new_ids: Tensor | None = None,
    full_ids: Tensor | None = None,
    chunk_size: int | None = None,
) -> Tensor:
    """Return the next logits, (batch, 1, vocab_size), after going on from what a cache holds.

    Say what comes next in one of two ways: `new_ids`, only the tokens that the cache has not seen,
    or `full_ids`, the whole text from its first token on. The cache trusts that `full_ids` begins
    with the text it has seen. The last token that `generate` emitted has not been seen.
    """
    ids = unseen_tokens(cache, new_ids=new_ids, full_ids=full_ids)
    return prefill(model, ids, cache, chunk_size=chunk_size)
