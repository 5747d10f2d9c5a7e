"""Whatever is done to a cache, in any order, it holds what a plain list of tokens would hold."""

from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlab.cache import KVCache, make_cache, rollback

CAPACITY, NUM_LAYERS, NUM_KV_HEADS, HEAD_DIM = 12, 2, 2, 3

small = st.integers(0, 6)
operations = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 4)),
        st.tuples(st.just("append and fail"), st.integers(1, 4)),
        st.tuples(st.just("truncate"), small),
        st.tuples(st.just("truncate, append and fail"), small),
        st.tuples(st.just("drop"), small),
        st.tuples(st.just("reorder"), st.permutations([0, 1])),
        st.tuples(st.just("select"), st.lists(st.integers(0, 1), min_size=2, max_size=2)),
        st.tuples(st.just("clone"), small),
        st.tuples(st.just("reset"), small),
    ),
    max_size=12,
)


@dataclass
class Pair:
    """A cache and the list of tokens, one number each, that each of two rows must hold."""

    cache: KVCache
    rows: list[list[float]] = field(default_factory=lambda: [[], []])
    next_number: float = 1.0

    def append(self, n: int) -> None:
        """Push n new tokens, or nothing where they do not fit."""
        if len(self.rows[0]) + n > CAPACITY:
            return
        numbers = torch.arange(2 * n).view(2, n) + self.next_number
        keys = numbers.view(2, 1, n, 1).expand(2, NUM_KV_HEADS, n, HEAD_DIM).clone()
        for layer_idx in range(NUM_LAYERS):
            self.cache.update(keys + layer_idx / 4, -keys - layer_idx / 4, layer_idx)
        self.next_number += 2 * n
        for row, new in zip(self.rows, numbers.tolist(), strict=True):
            row.extend(new)

    def do(self, name: str, argument: Any) -> None:
        """Do one operation to both."""
        length = len(self.rows[0])
        if name == "append":
            self.append(argument)
        elif name.endswith("fail"):
            self.fail(name, argument)
        elif name in ("truncate", "drop"):
            n = min(argument, length)
            self.cache.truncate_to(n) if name == "truncate" else self.cache.drop_last(n)
            keep = n if name == "truncate" else length - n
            self.rows = [row[:keep] for row in self.rows]
        elif name in ("reorder", "select"):
            self.cache.select_rows(torch.tensor(argument))
            self.rows = [list(self.rows[row]) for row in argument] if length else self.rows
        elif name == "clone":
            old, self.cache = self.cache, self.cache.clone()
            old.reset()
        else:
            self.cache.reset()
            self.rows = [[], []]

    def fail(self, name: str, argument: int) -> None:
        """Do something that a rollback must undo."""
        rows = [list(row) for row in self.rows]
        with pytest.raises(KeyboardInterrupt), rollback(self.cache):
            if name.startswith("truncate"):
                self.do("truncate", argument)
                self.append(4)
            else:
                self.append(argument)
            raise KeyboardInterrupt
        self.rows = rows

    def check(self) -> None:
        """Compare lengths, bytes and contents."""
        length = len(self.rows[0])
        assert [layer.get_seq_length() for layer in self.cache.layers] == [length] * NUM_LAYERS
        token_bytes = 2 * NUM_LAYERS * NUM_KV_HEADS * HEAD_DIM * 4
        assert self.cache.nbytes == 2 * length * token_bytes <= self.cache.reserved_nbytes
        assert self.cache.reserved_nbytes <= 2 * CAPACITY * token_bytes
        for layer_idx, layer in enumerate(self.cache.layers):
            if length:
                keys, values = layer.held()
                expected = (torch.tensor(self.rows) + layer_idx / 4)[:, None, :, None]
                assert torch.equal(keys, expected.expand_as(keys))
                assert torch.equal(values, -expected.expand_as(values))


@pytest.mark.parametrize("name", ["growing", "preallocated"])
@settings(max_examples=150, deadline=None)
@given(operations=operations)
def test_a_cache_behaves_like_a_list_of_tokens(name: str, operations: list[Any]) -> None:
    pair = Pair(make_cache(name, num_layers=NUM_LAYERS, capacity=CAPACITY))
    for operation, argument in operations:
        pair.do(operation, argument)
        pair.check()


@settings(max_examples=100, deadline=None)
@given(chunks=st.lists(st.integers(1, 5), min_size=1, max_size=8))
def test_reserved_and_held_bytes_agree_with_their_formulas(chunks: list[int]) -> None:
    total = sum(chunks)
    growing = make_cache("growing", num_layers=1)
    preallocated = make_cache("preallocated", num_layers=1, capacity=total)
    for chunk in chunks:
        tokens = torch.zeros(1, 1, chunk, 4)
        for cache in (growing, preallocated):
            cache.update(tokens, tokens, 0)
    assert growing.nbytes == growing.reserved_nbytes == total * 32
    assert preallocated.nbytes == preallocated.reserved_nbytes == total * 32
