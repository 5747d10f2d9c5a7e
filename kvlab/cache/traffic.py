"""What moves between a device and the tier behind it, and what lies on the device meanwhile.

Counted, not computed: bytes when they are copied, tensors from their making until nobody holds
them any more.
"""

import threading
import weakref

from torch import Tensor


class Traffic:
    """Bytes fetched to a device, bytes put away from it, and bytes on it now and at the most.

    `fetched_ahead` counts fetches begun before their layer was asked, `fetched_late` those that
    the layer had to begin itself. `waited_seconds` is the time for which layers stood still.

    >>> import torch
    >>> traffic = Traffic()
    >>> held = traffic.watch(torch.zeros(8, dtype=torch.float32))
    >>> del held
    >>> traffic.device_nbytes, traffic.peak_device_nbytes
    (0, 32)
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a tensor may die while its own thread holds the lock
        self.device_nbytes = self.peak_device_nbytes = 0
        self.reset()

    def __repr__(self) -> str:
        return (
            f"Traffic({self.bytes_in} bytes in, {self.bytes_out} out, {self.device_nbytes} on the"
            f" device, {self.peak_device_nbytes} at the most)"
        )

    def reset(self) -> None:
        """Count from 0 again; what lies on the device now stays counted there."""
        with self._lock:
            self.bytes_in = self.bytes_out = 0
            self.fetched_ahead = self.fetched_late = 0
            self.waited_seconds = 0.0
            self.peak_device_nbytes = self.device_nbytes

    def count(self, *, bytes_in: int = 0, bytes_out: int = 0) -> None:
        """Add bytes that were copied; may be called from any thread."""
        with self._lock:
            self.bytes_in += bytes_in
            self.bytes_out += bytes_out

    def watch(self, tensor: Tensor) -> Tensor:
        """Count a new tensor as lying on the device until it dies; return it."""
        self._add(tensor.nbytes)
        weakref.finalize(tensor, self._add, -tensor.nbytes).atexit = False
        return tensor

    def _add(self, num_bytes: int) -> None:
        with self._lock:
            self.device_nbytes += num_bytes
            self.peak_device_nbytes = max(self.peak_device_nbytes, self.device_nbytes)
