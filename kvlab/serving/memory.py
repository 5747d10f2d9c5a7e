"""Whose tokens lie where: the block manager for the device, a list of free blocks for the host.

It carries out what the scheduler decides, and says which blocks must be moved for it.
"""

from collections.abc import Hashable

from kvlab.errors import OutOfBlocks
from kvlab.paging.block_manager import BlockManager
from kvlab.paging.prefix_index import ExtraKeys
from kvlab.serving.limits import Limits
from kvlab.serving.plan import COPY, SWAP_IN, SWAP_OUT, Move
from kvlab.serving.request import Request
from kvlab.serving.sequence import Sequence


class HostBlocks:
    """Blocks of host memory, handed out lowest first; `num_blocks` None: as many as are asked for.

    >>> host = HostBlocks(2)
    >>> host.take(2), host.take(1)
    ([0, 1], None)
    """

    def __init__(self, num_blocks: int | None) -> None:
        self.num_blocks, self.num_made = num_blocks, 0
        self._free: list[int] = []

    @property
    def num_used(self) -> int:
        """Blocks that hold something."""
        return self.num_made - len(self._free)

    def take(self, n: int) -> list[int] | None:
        """Return `n` blocks, or None where the host has fewer."""
        new = n - len(self._free)
        if self.num_blocks is not None and self.num_made + new > self.num_blocks:
            return None
        if new > 0:
            self._free.extend(range(self.num_made + new - 1, self.num_made - 1, -1))
            self.num_made += new
        return [self._free.pop() for _ in range(n)]

    def give_back(self, blocks: list[int]) -> None:
        """Take blocks back."""
        self._free.extend(reversed(blocks))


class Memory:
    """The blocks of all sequences of one scheduler, on the device and on the host."""

    def __init__(self, manager: BlockManager, limits: Limits) -> None:
        self.manager, self.limits = manager, limits
        self.host = HostBlocks(limits.host_blocks)
        self.shares = manager.index is not None
        self._moves: list[Move] = []

    def least_blocks(self, request: Request) -> int:
        """Return the blocks without which a request can't be admitted, even alone."""
        if self.limits.reserve_output:
            return self.peak_blocks(request)
        return self.manager.blocks_for(request.prompt_tokens)

    def peak_blocks(self, request: Request) -> int:
        """Return the blocks of a request at its full length: its samples share the full ones."""
        shared = request.prompt_tokens // self.manager.block_size
        own = self.manager.blocks_for(request.peak_tokens) - shared
        return shared + request.num_samples * own

    def moves(self) -> list[Move]:
        """Return the blocks to move for all that was done since the last call, in order."""
        self._note_copies()
        moves, self._moves = self._moves, []
        return moves

    def admit(self, seq: Sequence, running: list[Sequence]) -> int | None:
        """Give a sequence slots for all tokens known; return how many were found, or None.

        What is found counts as computed. Blocks that lie on the host come back unless found.
        """
        keys = extra_keys(seq.request)
        tokens = seq.num_tokens if seq.token_ids is None else seq.token_ids
        if self.limits.reserve_output and not self._fits_at_peak(seq, running, keys):
            return None
        try:
            found = self.manager.allocate(seq.seq_id, tokens, extra_keys=keys)
        except OutOfBlocks:
            return None
        seq.num_slots = seq.num_tokens
        if seq.host_blocks is not None:
            self._swap_in(seq, found)
        seq.num_computed = max(seq.num_computed, found)
        return found

    def grow(self, seq: Sequence, num_new_tokens: int = 1) -> None:
        """Give a sequence slots for new tokens; raises `OutOfBlocks` and changes nothing."""
        self.manager.append(seq.seq_id, num_new_tokens)
        seq.num_slots += num_new_tokens

    def publish(self, seq: Sequence) -> None:
        """Let others find the full blocks that are computed."""
        if self.shares and seq.token_ids is not None:
            self.manager.commit(seq.seq_id, seq.token_ids, seq.num_computed)

    def fork(self, parent: Sequence, child: Sequence) -> None:
        """Let a sample begin with the blocks of another."""
        self.manager.fork(parent.seq_id, child.seq_id)
        child.num_slots = parent.num_slots
        child.num_computed = parent.num_computed

    def swap_out(self, seq: Sequence) -> bool:
        """Save the computed blocks of a sequence on the host; False where it has no room."""
        count = self.manager.blocks_for(seq.num_computed)
        targets = self.host.take(count)
        if targets is None:
            return False
        sources = self.manager.block_table(seq.seq_id)[:count]
        self._note_copies()
        self._moves.extend(map(Move, [SWAP_OUT] * count, sources, targets))
        seq.host_blocks = targets
        return True

    def release(self, seq: Sequence) -> None:
        """Give back the blocks of a sequence on the device."""
        self.manager.free(seq.seq_id)
        seq.num_slots = 0

    def forget_host(self, seq: Sequence) -> None:
        """Give back what a sequence has on the host, if anything."""
        if seq.host_blocks is not None:
            self.host.give_back(seq.host_blocks)
            seq.host_blocks = None

    def _note_copies(self) -> None:
        """Write down the copies that the manager asked for before whatever is moved next."""
        self._moves.extend(Move(COPY, *pair) for pair in self.manager.copies())

    def _swap_in(self, seq: Sequence, found: int) -> None:
        first = found // self.manager.block_size  # blocks before it are shared: never written
        saved = seq.host_blocks or []
        targets = self.manager.block_table(seq.seq_id)[first : len(saved)]
        self._note_copies()
        self._moves.extend(map(Move, [SWAP_IN] * len(targets), saved[first:], targets))
        self.forget_host(seq)

    def _fits_at_peak(self, seq: Sequence, running: list[Sequence], keys: Hashable) -> bool:
        """Return whether a sequence and all that run could reach their full lengths together."""
        manager = self.manager
        hits: list[int] = []
        if manager.index is not None and seq.token_ids is not None:
            hits = manager.index.longest_match(seq.token_ids, manager.block_size, keys)
        idle = sum(not manager.pool.ref_count[block_id] for block_id in hits)
        held = manager.blocks_for(seq.num_tokens)
        wanted = held - len(hits) + self._growth(seq, held) + idle
        promised = sum(self._growth(other, None) for other in running)
        return wanted + promised <= manager.num_free

    def _growth(self, seq: Sequence, held: int | None) -> int:
        """Return the blocks that a sequence may still take, those of samples to come included."""
        request, manager = seq.request, self.manager
        peak = manager.blocks_for(request.peak_tokens)
        shared = request.prompt_tokens // manager.block_size
        own = len(manager.tables[seq.seq_id].block_ids) if held is None else held
        just_parted = request.num_samples > seq.width and seq.num_slots == request.prompt_tokens
        copied = just_parted and request.prompt_tokens % manager.block_size > 0
        return peak - own + (seq.width - 1) * (peak - shared) + copied


def extra_keys(request: Request) -> Hashable:
    """Return what else must be equal to share: the tenant's salt, if there is one."""
    return () if request.salt is None else ExtraKeys(salt=request.salt)
