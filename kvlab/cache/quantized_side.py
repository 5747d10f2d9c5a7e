"""One side of a layer, its keys or its values: exact sinks, quantised past, exact newest tokens.

Which tokens are where depends on their number alone, never on how they came. A side is never
changed: each step returns the next one, and the two share what did not change.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch import Tensor

from kvlab.cache.quantized_buffer import RowBuffer
from kvlab.cache.quantized_tensor import Recipe
from kvlab.errors import Unsupported


@dataclass(frozen=True, eq=False)
class QuantizedSide:
    """The keys or values of one layer, in the order of the tokens: sinks, codes, newest.

    `sinks` and `newest` are exact, (batch, num_kv_heads, tokens, head_dim). `codes`, `scales` and
    `zeros` are rows of `Codes`; where a whole tensor has one scale, `fixed` holds it instead.
    """

    recipe: Recipe | None  # None: nothing is quantised
    residual_length: int
    num_sink_tokens: int
    sinks: Tensor
    newest: Tensor
    codes: RowBuffer | None = None
    scales: RowBuffer | None = None
    zeros: RowBuffer | None = None
    fixed: tuple[Tensor, Tensor | None] | None = None

    @property
    def num_quantized(self) -> int:
        """How many tokens are quantised."""
        return 0 if self.codes is None else self.codes.length

    def held(self) -> tuple[Tensor, ...]:
        """Return the tensors, or views, with what is held and nothing more."""
        buffers = (self.codes, self.scales, self.zeros)
        parts = [self.sinks, self.newest, *(b.rows for b in buffers if b is not None)]
        return (*parts, *(part for part in self.fixed or () if part is not None))

    def read(self) -> Tensor:
        """Return all tokens as attention sees them, in the dtype they came in."""
        if not self.num_quantized:
            return torch.cat([self.sinks, self.newest], dim=2)
        past = self._dequantized()
        if not (self.sinks.shape[2] or self.newest.shape[2]):
            return past
        return torch.cat([self.sinks, past, self.newest], dim=2)

    # -- more tokens ----------------------------------------------------------------------

    def appended(self, states: Tensor) -> Self:
        """Return the side with these tokens behind its own; what leaves `newest` is quantised."""
        rest, sinks = states.detach() if states.requires_grad else states, self.sinks
        if room := self.num_sink_tokens - sinks.shape[2]:
            sinks, rest = torch.cat([sinks, rest[:, :, :room]], dim=2), rest[:, :, room:]
        if not rest.shape[2]:
            return self._with(sinks=sinks)
        held = self.newest.shape[2]
        newest = torch.cat([self.newest, rest], dim=2) if held else rest
        waiting = newest.shape[2]
        tokens = sinks.shape[2] + self.num_quantized + waiting
        leaving = max(0, self._quantized_of(tokens) - self.num_quantized)
        fixed = self.fixed or self._frozen(rest)
        codes = self._with_codes(newest[:, :, :leaving], fixed) if leaving else {}
        if leaving == waiting and not held:
            newest = self.newest  # nothing came to stay
        elif leaving or not held:  # a copy: a view holds on to what left, or to the caller's memory
            newest = newest[:, :, leaving:].clone()
        return self._with(sinks=sinks, fixed=fixed, newest=newest, **codes)

    def _with(self, **changes: Any) -> Self:
        """Return the side with other parts: `dataclasses.replace`, in a fraction of the time."""
        side = object.__new__(type(self))
        side.__dict__.update(self.__dict__, **changes)
        return side

    def _quantized_of(self, tokens: int) -> int:
        if self.recipe is None:
            return 0
        return self.recipe.options.quantized_tokens(
            tokens, residual_length=self.residual_length, num_sink_tokens=self.num_sink_tokens
        )

    def _frozen(self, states: Tensor) -> tuple[Tensor, Tensor | None] | None:
        """Return the one scale of a tensor, made from the first tokens that may be quantised."""
        if self.recipe is None or not self.recipe.has_one_scale:
            return None
        return self.recipe.scale_for(states)

    def _with_codes(
        self, leaving: Tensor, fixed: tuple[Tensor, Tensor | None] | None
    ) -> dict[str, RowBuffer]:
        """Return the buffers with the codes of these tokens added; no older code is touched."""
        scale, zero = fixed or self.recipe.scale_for(leaving)
        codes = self.recipe.encode(leaving, scale, zero)
        buffers = {"codes": _behind(self.codes, codes)}
        if fixed is None:
            buffers["scales"] = _behind(self.scales, scale)
            if zero is not None:
                buffers["zeros"] = _behind(self.zeros, zero)
        return buffers

    def _dequantized(self) -> Tensor:
        scale, zero = self.fixed or (self.scales.rows, self.zeros and self.zeros.rows)
        return self.recipe.decode(self.codes.rows, scale, zero, self.newest.dtype)

    # -- fewer, other, own ----------------------------------------------------------------

    def shortened(self, n: int) -> Self:
        """Return the side with its first `n` tokens; `Unsupported` where a group would split."""
        sinks, codes = self.sinks.shape[2], self.num_quantized
        if n <= sinks:
            empty = {"codes": None, "scales": None, "zeros": None, "fixed": None}
            return replace(self, sinks=self.sinks[:, :, :n], newest=self.newest[:, :, :0], **empty)
        if n >= sinks + codes:
            return replace(self, newest=self.newest[:, :, : n - sinks - codes])
        kept, group = n - sinks, self.recipe.tokens_per_scale
        if kept % group:
            whole = sinks + kept - kept % group
            raise Unsupported(
                f"n={n}: the {self.recipe.options.side}s of tokens {whole} to {whole + group - 1}"
                f" share scales; keep {whole}, {whole + group}, or {sinks + codes} tokens or more"
            )
        buffers = {"codes": self.codes.first(kept)}
        for name in ("scales", "zeros"):
            if (buffer := getattr(self, name)) is not None:
                buffers[name] = buffer.first(kept // group)
        return replace(self, newest=self.newest[:, :, :0], **buffers)

    def selected(self, rows: Tensor) -> Self:
        """Return the side of these sequences of the batch; one scale for all stays as it is."""
        buffers = {name: buffer.selected(rows) for name, buffer in self._buffers().items()}
        return replace(self, sinks=self.sinks[rows], newest=self.newest[rows], **buffers)

    def cloned(self) -> Self:
        """Return a side with the same tokens that shares no memory with this one."""
        fixed = self.fixed and tuple(None if x is None else x.clone() for x in self.fixed)
        buffers = {name: buffer.cloned() for name, buffer in self._buffers().items()}
        exact = {"sinks": self.sinks.clone(), "newest": self.newest.clone()}
        return replace(self, fixed=fixed, **exact, **buffers)

    def _buffers(self) -> dict[str, RowBuffer]:
        found = {name: getattr(self, name) for name in ("codes", "scales", "zeros")}
        return {name: buffer for name, buffer in found.items() if buffer is not None}


def _behind(buffer: RowBuffer | None, rows: Tensor) -> RowBuffer:
    return RowBuffer.of(rows) if buffer is None else buffer.appended(rows)
