"""The story of prefixes: what each event shares, computes and forgets, against the manager."""

from kvlab.paging.prefix_story import Arrival, Departure, tell

SYSTEM = tuple(f"s{i}" for i in range(12))


def test_a_second_request_shares_the_full_blocks_of_the_common_part() -> None:
    events = [Arrival(0, (*SYSTEM, "a", "b")), Arrival(1, (*SYSTEM, "c"))]
    *_, last = tell(events, num_blocks=16, block_size=4)
    assert (last.shared, last.computed) == (12, 1)
    assert [node.owners for node in last.nodes if node.hit] == [(0, 1)] * 3


def test_a_known_prompt_still_computes_its_last_block() -> None:
    events = [Arrival(0, SYSTEM), Arrival(1, SYSTEM)]
    *_, last = tell(events, num_blocks=16, block_size=4)
    assert (last.shared, last.computed) == (8, 4)


def test_tenants_with_other_salts_share_nothing_and_those_with_the_same_do() -> None:
    events = [Arrival(n, SYSTEM, salt) for n, salt in enumerate(("red", "blue", "red"))]
    _, first, second, third = tell(events, num_blocks=16, block_size=4)
    assert [scene.shared for scene in (first, second, third)] == [0, 0, 8]


def test_blocks_of_an_ended_request_stay_findable_until_room_is_needed() -> None:
    events = [Arrival(0, SYSTEM), Departure(0), Arrival(1, tuple("xyzuvw"))]
    _, _, idle, after = tell(events, num_blocks=4, block_size=4)
    assert (idle.num_idle, idle.num_free) == (3, 1)
    assert after.num_idle == 2 and "1 idle block forgotten" in after.said
    assert {node.words for node in after.nodes if not node.owners} == {SYSTEM[:4], SYSTEM[4:8]}


def test_a_request_without_room_is_refused_and_its_end_changes_nothing() -> None:
    events = [Arrival(0, SYSTEM), Arrival(1, ("other", *SYSTEM)), Departure(1)]
    _, held, refused, gone = tell(events, num_blocks=4, block_size=4)
    assert "refused" in refused.said and "needs 4 blocks" in refused.said
    assert (gone.num_free, gone.num_idle) == (held.num_free, held.num_idle)


def test_a_parent_always_comes_before_its_children() -> None:
    events = [Arrival(n, (*SYSTEM[: 4 * n], f"q{n}", *SYSTEM)) for n in range(4)]
    for scene in tell(events, num_blocks=40, block_size=4):
        seen = {-1}
        for node in scene.nodes:
            assert node.parent in seen
            seen.add(node.block_id)
