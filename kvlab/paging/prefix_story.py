"""Requests that come and go, told block by block: what each could share, and what stays.

Prompts are words here, one token each, so that a picture can show what is in a block. The manager
is the real one; this module only writes down what it holds after every event.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kvlab.errors import OutOfBlocks
from kvlab.paging.block_manager import BlockManager
from kvlab.paging.events import count, letter
from kvlab.paging.prefix_index import ROOT, ExtraKeys


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request comes: its number, its prompt as words, and the salt of its tenant, if any."""

    number: int
    words: tuple[str, ...]
    salt: str | None = None


@dataclass(frozen=True, slots=True)
class Departure:
    """A request ends; what it computed stays findable as long as nobody needs the room."""

    number: int


@dataclass(frozen=True, slots=True)
class Node:
    """One block in the tree: what is in it, the block before it, and the requests that hold it.

    `findable` tells that a later request may share it; `fresh` that the last event computed it,
    `hit` that the last event shared it. A node without owners is idle.
    """

    block_id: int
    parent: int
    words: tuple[str, ...]
    owners: tuple[int, ...]
    findable: bool
    fresh: bool = False
    hit: bool = False


@dataclass(frozen=True, slots=True)
class Scene:
    """The blocks after one event, what it computed and shared in tokens, and what it was."""

    nodes: tuple[Node, ...]
    said: str
    computed: int
    shared: int
    num_free: int
    num_idle: int
    computed_in_all: int
    shared_in_all: int


def tell(events: Sequence[Arrival | Departure], *, num_blocks: int, block_size: int) -> list[Scene]:
    """Return the scene after each event; the first is the empty pool.

    A request that finds no room is refused, said so, and the story goes on.

    >>> words = tuple("a b c d e".split())
    >>> scenes = tell([Arrival(0, words), Arrival(1, words)], num_blocks=8, block_size=2)
    >>> [(scene.computed, scene.shared) for scene in scenes]
    [(0, 0), (5, 0), (1, 4)]
    """
    return list(_Telling(num_blocks, block_size).scenes(events))


class _Telling:
    def __init__(self, num_blocks: int, block_size: int) -> None:
        self.manager = BlockManager(num_blocks, block_size)
        self.arrivals: dict[int, Arrival] = {}
        self.computed = self.shared = 0

    def scenes(self, events: Sequence[Arrival | Departure]) -> Iterator[Scene]:
        """Yield the empty pool, then the scene after each event."""
        yield self._scene("The pool is empty.", 0, 0, set(), set())
        for event in events:
            yield self._come(event) if isinstance(event, Arrival) else self._go(event)

    def _come(self, event: Arrival) -> Scene:
        manager, name, words = self.manager, letter(event.number), list(event.words)
        evicted = manager.pool.num_evictions
        try:
            shared = manager.allocate(event.number, words, extra_keys=_keys(event))
        except OutOfBlocks as error:
            return self._scene(f"{name} is refused: {error}.", 0, 0, set(), set())
        self.arrivals[event.number] = event
        before = set(manager.block_table(event.number)[: shared // manager.block_size])
        manager.commit(event.number, words)
        table = manager.block_table(event.number)
        computed = len(words) - shared
        self.computed, self.shared = self.computed + computed, self.shared + shared
        gone = manager.pool.num_evictions - evicted
        said = f"{name} comes with {count(len(words), 'token')}: {shared} shared,"
        said += f" {computed} computed"
        said += f", {count(gone, 'idle block')} forgotten for it." if gone else "."
        return self._scene(said, computed, shared, set(table) - before, before)

    def _go(self, event: Departure) -> Scene:
        if event.number not in self.arrivals:  # it was refused, so there is nothing to end
            return self._scene(f"{letter(event.number)} was never here.", 0, 0, set(), set())
        self.manager.free(event.number)
        del self.arrivals[event.number]
        idle = self.manager.stats().num_idle_blocks
        said = f"{letter(event.number)} ends. {count(idle, 'idle block')} can still be found."
        return self._scene(said, 0, 0, set(), set())

    def _scene(
        self, said: str, computed: int, shared: int, fresh: set[int], hit: set[int]
    ) -> Scene:
        stats = self.manager.stats()
        nodes = tuple(self._nodes(fresh, hit))
        counts = (stats.num_free_blocks, stats.num_idle_blocks, self.computed, self.shared)
        return Scene(nodes, said, computed, shared, *counts)

    def _nodes(self, fresh: set[int], hit: set[int]) -> Iterator[Node]:
        """Yield every block that is held or findable, parents before children."""
        manager, size = self.manager, self.manager.block_size
        found: dict[int, tuple[int, tuple[str, ...], list[int]]] = {}
        for block_id, identity in enumerate(manager.pool.identity_of):
            if identity is not None:
                parent, words, _ = identity  # type: ignore[misc]
                found[block_id] = (parent, tuple(words), [])
        for number, arrival in self.arrivals.items():
            table = manager.block_table(number)
            for place, block_id in enumerate(table):
                words = arrival.words[place * size : (place + 1) * size]
                parent = table[place - 1] if place else ROOT
                found.setdefault(block_id, (parent, words, []))[2].append(number)
        for block_id in _parents_first({b: parent for b, (parent, _, _) in found.items()}):
            parent, words, owners = found[block_id]
            findable = manager.pool.identity_of[block_id] is not None
            marks = (block_id in fresh, block_id in hit)
            yield Node(block_id, parent, words, tuple(owners), findable, *marks)


def _parents_first(parent_of: dict[int, int]) -> list[int]:
    children: dict[int, list[int]] = {}
    for block_id, parent in parent_of.items():
        children.setdefault(parent, []).append(block_id)
    order, ahead = [], sorted(children.get(ROOT, ()), reverse=True)
    while ahead:
        block_id = ahead.pop()
        order.append(block_id)
        ahead += sorted(children.get(block_id, ()), reverse=True)
    return order


def _keys(event: Arrival) -> object:
    return () if event.salt is None else ExtraKeys(salt=event.salt)
