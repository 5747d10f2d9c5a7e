"""Memory without a token in it: the formula and the count in an allocator agree."""

import pytest

from kvlab.errors import KvlabError
from kvlab.paging import BlockManager
from kvlab.paging.contiguous import ContiguousManager
from kvlab.paging.waste import (
    blocks_for,
    contiguous_use,
    mean_length_for,
    mean_wasted_share,
    paged_use,
    shared_and_own,
    unused_slots,
    wasted_share,
)

LENGTHS = (500, 2_000, 100)


def test_contiguous_at_32768_wastes_98_47_and_93_90_and_99_69_percent() -> None:
    shares = [f"{wasted_share([n], 32_768):.2%}" for n in LENGTHS]
    assert shares == ["98.47%", "93.90%", "99.69%"]
    for n, share in zip(LENGTHS, shares, strict=True):
        manager = ContiguousManager(32_768, max_seq_len=32_768)
        manager.allocate("a", n)
        assert f"{contiguous_use(manager).wasted_share:.2%}" == share


def test_paged_at_16_leaves_12_and_0_and_12_slots_unused_0_91_percent_together() -> None:
    assert [unused_slots(n, 16) for n in LENGTHS] == [12, 0, 12]
    assert f"{wasted_share(list(LENGTHS), 16):.2%}" == "0.91%"
    manager = BlockManager(200, 16)
    for n in LENGTHS:
        manager.allocate(n, n)
    use = paged_use(manager)
    assert (use.used, use.internal, f"{use.wasted_share:.2%}") == (2_600, 24, "0.91%")


def test_one_hundred_requests_share_992_of_1000_prompt_tokens_and_keep_8_each() -> None:
    assert shared_and_own(1_000, 16) == (992, 8)
    manager, prompt = BlockManager(300, 16), list(range(1_000))
    for number in range(100):
        manager.allocate(number, [*prompt, number])
        manager.commit(number, [*prompt, number])
    use = paged_use(manager)
    assert (use.used, manager.num_used) == (992 + 100 * 9, 62 + 100)  # 8 and the one after them


def test_slack_is_counted_for_each_sequence_and_shared_blocks_once() -> None:
    assert [blocks_for(n, 16) * 16 for n in (17, 16, 1, 0)] == [32, 16, 16, 0]
    assert [unused_slots(n, 16) for n in (17, 16, 1, 0)] == [15, 0, 15, 0]
    assert all(unused_slots(n, 16) < 16 for n in range(200))
    manager = BlockManager(16, 16)
    manager.allocate("a", 20)
    for child in range(5):
        manager.fork("a", child)
    use = paged_use(manager)
    assert (use.used, use.internal, use.free) == (20, 12, 16 * 14)


def test_under_a_mean_of_180_tokens_paging_at_16_wastes_more_than_4_percent() -> None:
    assert mean_length_for(0.04, 16) == pytest.approx(180)
    assert mean_wasted_share(180, 16) == pytest.approx(0.04)
    every_fill = range(173, 189)  # 16 lengths one after another, mean 180.5
    assert wasted_share(list(every_fill), 16) == pytest.approx(mean_wasted_share(180.5, 16))


def test_the_kinds_of_use_add_up_to_the_pool() -> None:
    paged, tokens = BlockManager(32, 4), list(range(10))
    paged.allocate("a", tokens)
    paged.commit("a", tokens)
    paged.free("a")
    paged.allocate("b", 7)
    use = paged_use(paged)
    assert (use.used, use.internal, use.idle, use.free) == (7, 1, 8, 112)
    assert use.used + use.internal + use.idle + use.free == use.num_slots == 128


def test_a_windowed_table_counts_the_blocks_it_still_holds() -> None:
    manager = BlockManager(32, 4, prefix_caching=False, sliding_window=5)
    manager.allocate("a", 14)
    manager.append("a")  # sees positions 10 to 14: blocks 2 and 3 stay
    assert (paged_use(manager).used, paged_use(manager).internal) == (7, 1)


def test_reserved_internal_and_external_waste_are_three_numbers() -> None:
    final = {"a": 30, "b": 10, "c": 40, "d": 15}
    manager = ContiguousManager(100, max_seq_len=64, policy="pow2", final_length=final.__getitem__)
    for seq_id in ("a", "b"):
        manager.allocate(seq_id, 5)  # reserves 32 and 16
    use = contiguous_use(manager, wanted=64)
    assert (use.used, use.reserved, use.internal) == (10, 25 + 5, 2 + 6)
    assert (use.external, use.free) == (52, 0)  # 52 are free, none of use for 64
    assert contiguous_use(manager, wanted=16).free == 52
    assert sum((10, 30, 8, 52)) == use.num_slots


@pytest.mark.parametrize(
    "call",
    [
        lambda: wasted_share([], 16),
        lambda: wasted_share([0], 16),
        lambda: blocks_for(-1, 16),
        lambda: unused_slots(5, 0),
        lambda: mean_wasted_share(0, 16),
        lambda: mean_wasted_share(float("nan"), 16),
        lambda: mean_length_for(1.0, 16),
        lambda: shared_and_own(1.5, 16),
    ],
)
def test_bad_numbers_are_named(call: object) -> None:
    with pytest.raises(KvlabError, match="="):
        call()
