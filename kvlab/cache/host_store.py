"""Host memory as the place where a layer's tokens rest, one row a token.

Where the device is the processor itself, this is the same memory: nothing is saved there, and what
moves is a copy from memory to memory.
"""

import torch
from torch import Tensor

from kvlab.cache.token_rows import TokenRows
from kvlab.errors import CacheFull, is_out_of_memory


class HostStore:
    """Rows in host memory, page-locked where a GPU fetches them; room doubles when it runs out.

    >>> layout = TokenRows(batch=1, num_kv_heads=1, k_dim=2, v_dim=2, dtype=torch.float32)
    >>> store = HostStore(layout, torch.device("cpu"))
    >>> store.write(0, torch.ones(3, 4))
    >>> store.read(2, torch.device("cpu")).shape, store.reserved_nbytes
    (torch.Size([2, 4]), 48)
    """

    reads_in_place = True  # on the same memory `read` gives a view of the rows, not a copy

    def __init__(self, layout: TokenRows, device: torch.device) -> None:
        self.layout, self.pinned = layout, device.type == "cuda"
        self.rows = self._room(0)

    @property
    def reserved_nbytes(self) -> int:
        """Bytes of host memory taken, whether or not tokens fill them yet."""
        return self.rows.nbytes

    def write(self, start: int, rows: Tensor) -> None:
        """Put rows, (q_len, elements), behind the first `start` ones."""
        end = start + len(rows)
        if end > len(self.rows):
            grown = self._room(max(end, 2 * len(self.rows)))
            grown[:start] = self.rows[:start]
            self.rows = grown
        self.rows[start:end] = rows

    def read(self, n: int, device: torch.device) -> Tensor:
        """Return the first `n` rows on `device`; a GPU's stream may still be bringing them."""
        return self.rows[:n].to(device, non_blocking=True)

    def copy(self, n: int) -> "HostStore":
        """Return a store of its own with the first `n` rows."""
        twin = HostStore(self.layout, torch.device("cuda" if self.pinned else "cpu"))
        twin.write(0, self.rows[:n])
        return twin

    def _room(self, num_rows: int) -> Tensor:
        size = (num_rows, self.layout.elements)
        try:
            with torch.inference_mode(False):  # memory made in that mode can't be written outside
                return torch.empty(
                    size, dtype=self.layout.dtype, device="cpu", pin_memory=self.pinned
                )
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            rule = f"no host memory for {num_rows:,} tokens in one layer of the cache"
            raise CacheFull(rule) from None
