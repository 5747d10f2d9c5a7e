"""A layer whose keys and values rest away from the device, in host memory or on disk.

Build one with `make_cache("offloaded", num_layers=..., **options)`; the options are

    tier        "host" (memory of the host, the default) or "disk"
    folder      for "disk": where its nameless files live; None is the system's temporary folder
    page_cache  for "disk": False asks the system to forget what it read, for honest times

On a machine without a GPU, device and host are the same memory: "host" then only shows how it
works, and "disk" is the tier that really moves. Every token is kept, to the bit; only the place
differs. Only new tokens are put away; all earlier ones are fetched for every pass.
"""

from __future__ import annotations

import os
from time import perf_counter
from typing import Any, Self

import torch
from torch import Tensor

from kvlab.arithmetic.checks import true_or_false
from kvlab.cache.arrival import Arrival, fetch
from kvlab.cache.base import KVLayer
from kvlab.cache.disk_store import DiskStore, check_folder
from kvlab.cache.host_store import HostStore
from kvlab.cache.offloaded_cache import OffloadedCache
from kvlab.cache.token_rows import TokenRows
from kvlab.cache.traffic import Traffic
from kvlab.errors import InvalidArgument

TIERS = ("host", "disk")


class OffloadedLayer(KVLayer):
    """Keep the tokens on a tier; on the device they stay only while attention reads them.

    Raises `InvalidArgument` for an unknown tier or a folder in which no file can be made, and
    `CacheFull` when the tier has no room; the layer is then as it was.

    >>> layer = OffloadedLayer(tier="disk")
    >>> tokens = torch.ones(1, 2, 3, 8, dtype=torch.float32)
    >>> keys, values = layer.update(tokens, tokens)
    >>> layer.nbytes, layer.traffic.device_nbytes
    (384, 384)
    >>> del keys, values  # attention has read them
    >>> layer.nbytes, layer.traffic.device_nbytes
    (384, 0)
    """

    is_croppable = True
    container = OffloadedCache  # the cache that fetches one layer ahead

    def __init__(
        self,
        tier: str = "host",
        folder: str | os.PathLike[str] | None = None,
        page_cache: bool = True,
    ) -> None:
        super().__init__()
        if tier not in TIERS:
            raise InvalidArgument("tier", tier, f"must be one of {', '.join(TIERS)}")
        if folder is not None and tier == "host":
            raise InvalidArgument("folder", str(folder), "is for tier='disk' only")
        self.tier, self.page_cache = tier, true_or_false("page_cache", page_cache)
        self.folder = check_folder(folder) if tier == "disk" else None
        self.traffic = Traffic()
        self.layout: TokenRows | None = None
        self.resting: HostStore | DiskStore | None = None
        self.arriving: Arrival | None = None

    # -- what each storage idea writes ----------------------------------------------------

    def allocate(self, key_states: Tensor, value_states: Tensor) -> None:
        """Open a place on the tier for tokens like these."""
        self._rest_in_new_store(TokenRows.of(key_states, value_states))

    def store(self, key_states: Tensor, value_states: Tensor) -> tuple[Tensor, Tensor]:
        """Fetch the past, put the new tokens behind it, and put them away on the tier, too."""
        n, q_len = self.cumulative_length, key_states.shape[2]
        keys, values = self._past(room=q_len)
        keys[:, :, n:], values[:, :, n:] = key_states, value_states
        rows = self.layout.pack(key_states, value_states)
        self.resting.write(n, rows)
        self.traffic.count(bytes_out=rows.nbytes)
        return keys, values

    def num_kept(self) -> int:
        """Return how many tokens are held: all that were seen."""
        return self.cumulative_length

    def held(self) -> tuple[Tensor, Tensor]:
        """Return the tokens held in memory of the host, read for this call and not counted."""
        rows = self.resting.read(self.cumulative_length, torch.device("cpu"))
        return self.layout.unpack(rows)

    @property
    def nbytes(self) -> int:
        """Bytes of the keys and values of the tokens held, wherever they lie."""
        return 0 if self.layout is None else self.cumulative_length * self.layout.nbytes

    @property
    def reserved_nbytes(self) -> int:
        """Bytes taken on the tier; those on the device are counted by `traffic`."""
        return 0 if self.resting is None else self.resting.reserved_nbytes

    # -- ahead of time --------------------------------------------------------------------

    def prefetch(self, room: int = 1) -> None:
        """Begin to fetch the tokens, with room for `room` new ones; returns at once."""
        if self.arriving is None and self.cumulative_length and self.resting is not None:
            n = self.cumulative_length
            self.arriving = Arrival(self.resting, n, room, self.device, self.traffic)

    def offload(self) -> None:
        """Let go of what was fetched ahead; the tokens rest on the tier anyway."""
        self.arriving = None

    def _past(self, room: int) -> tuple[Tensor, Tensor]:
        """Return keys and values with `room` at the end, fetched ahead where that was begun."""
        n, arriving, self.arriving = self.cumulative_length, self.arriving, None
        began = perf_counter()
        ready = arriving is not None and (arriving.store, arriving.n) == (self.resting, n)
        if ready and arriving.room == room:
            past = arriving.wait()
        elif ready:
            past = tuple(self._with_room(states, n, room) for states in arriving.wait())
        else:
            past = fetch(self.resting, n, room, self.device, self.traffic)
        self.traffic.waited_seconds += perf_counter() - began
        self.traffic.fetched_ahead += bool(ready)
        self.traffic.fetched_late += bool(n and not ready)
        return past

    def _with_room(self, states: Tensor, n: int, room: int) -> Tensor:
        shape = (*states.shape[:2], n + room, states.shape[3])
        made = self.traffic.watch(states.new_empty(shape))
        made[:, :, :n] = states[:, :, :n]
        return made

    # -- what can be undone and reordered -------------------------------------------------

    def keep_first(self, n: int) -> None:
        """Nothing to do but to forget what is on its way; later rows are overwritten."""
        self.arriving = None

    def take_rows(self, rows: Tensor) -> None:
        """Reorder the sequences, in a new place on the tier."""
        keys, values = (states[rows.to("cpu")] for states in self.held())
        self._rest_in_new_store(TokenRows.of(keys, values))
        self.resting.write(0, self.layout.pack(keys, values))

    def copy_storage(self) -> None:
        """Move to a place of its own on the tier; who holds the old one keeps it."""
        self.arriving = None
        if self.resting is not None:
            self.resting = self.resting.copy(self.cumulative_length)

    def snapshot(self) -> dict[str, object]:
        """Return what `restore` needs; new tokens are only ever written behind those held."""
        return vars(self) | {"arriving": None}

    def clone(self) -> Self:
        """Return a layer with the same tokens, a place of its own and counts from 0."""
        twin = super().clone()
        twin.traffic = Traffic()
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.clone()

    def reset(self) -> None:
        """Become as new: no tokens, and no place on the tier. Counts go on."""
        super().reset()
        self.layout = self.resting = self.arriving = None

    def _rest_in_new_store(self, layout: TokenRows) -> None:
        self.layout, self.arriving = layout, None
        if self.tier == "host":
            self.resting = HostStore(layout, self.device)
        else:
            self.resting = DiskStore(layout, self.folder, page_cache=self.page_cache)
