"""Bring one layer's tokens from their tier to the device, at once or ahead of time.

Ahead of time is a thread (reading a file and copying memory let other threads run) and, on a GPU, a
stream of its own, so that the copy runs beside the kernels of the layer before.
"""

from __future__ import annotations

import functools
import threading
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from kvlab.cache.disk_store import DiskStore
    from kvlab.cache.host_store import HostStore
    from kvlab.cache.traffic import Traffic


class Arrival:
    """The first `n` tokens of a store on their way to `device`, with `room` for more behind them.

    A failure on the way is raised by `wait`.
    """

    __slots__ = ("_error", "_result", "_thread", "n", "room", "store")

    def __init__(
        self,
        store: HostStore | DiskStore,
        n: int,
        room: int,
        device: torch.device,
        traffic: Traffic,
    ) -> None:
        self.store, self.n, self.room = store, n, room
        self._result: tuple[Tensor, Tensor, Any] | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(
            target=self._run, args=(device, traffic), name="kvlab fetch"
        )
        self._thread.start()

    def _run(self, device: torch.device, traffic: Traffic) -> None:
        try:
            self._result = _bring(self.store, self.n, self.room, device, traffic)
        except BaseException as error:  # whatever it is, the thread that waits must hear of it
            self._error = error

    def wait(self) -> tuple[Tensor, Tensor]:
        """Return keys and values as soon as they are there; the arrival lets go of them."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._result is not None
        result, self._result = self._result, None
        return _received(*result)


def fetch(
    store: HostStore | DiskStore, n: int, room: int, device: torch.device, traffic: Traffic
) -> tuple[Tensor, Tensor]:
    """Return the first `n` tokens as keys and values on `device`, with `room` for more behind.

    Both are (batch, num_kv_heads, n + room, width).
    """
    return _received(*_bring(store, n, room, device, traffic))


def _bring(
    store: HostStore | DiskStore, n: int, room: int, device: torch.device, traffic: Traffic
) -> tuple[Tensor, Tensor, Any]:
    stream = _side_stream(device) if device.type == "cuda" else None
    with nullcontext() if stream is None else torch.cuda.stream(stream):
        rows = store.read(n, device)
        if device.type == "cuda" or not store.reads_in_place:
            traffic.watch(rows)
        keys, values = (traffic.watch(turned) for turned in store.layout.unpack(rows, room))
        traffic.count(bytes_in=rows.nbytes)
    return keys, values, None if stream is None else stream.record_event()


def _received(keys: Tensor, values: Tensor, event: Any) -> tuple[Tensor, Tensor]:
    """Make the caller's stream wait for the copy, where there are streams."""
    if event is not None:
        current = torch.cuda.current_stream(keys.device)
        current.wait_event(event)
        for tensor in (keys, values):
            tensor.record_stream(current)  # its memory came from the other stream
    return keys, values


@functools.cache
def _side_stream(device: torch.device) -> Any:
    return torch.cuda.Stream(device)
