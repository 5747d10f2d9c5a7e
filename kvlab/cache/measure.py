"""How many bytes tensors really occupy, measured from their storage; no formula here."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor


def tensors_of(thing: object) -> Iterator[Tensor]:
    """Yield the tensors among the attributes of an object, also inside tuples, lists, dicts.

    Single integers (a length kept on the device, say) are bookkeeping and left out.
    """
    if isinstance(thing, Tensor):
        if thing.ndim > 0 or thing.is_floating_point():
            yield thing
    elif isinstance(thing, tuple | list):
        for part in thing:
            yield from tensors_of(part)
    else:
        parts = thing if isinstance(thing, dict) else getattr(thing, "__dict__", {})
        for part in parts.values():
            yield from tensors_of(part)


def storage_nbytes(thing: object) -> int:
    """Return the bytes allocated for the tensors of an object; shared memory counts once.

    A view of 1 token in room for 8 holds 1, but keeps all 8 allocated:

    >>> import torch
    >>> storage_nbytes(torch.zeros(8, 4, dtype=torch.float32)[:1])
    128
    """
    storages = [tensor.untyped_storage() for tensor in tensors_of(thing)]
    return sum({storage._cdata: storage.nbytes() for storage in storages}.values())
