"""Full blocks are found again by what is in them and before them, and by nothing else."""

import random
from collections.abc import Hashable

import pytest

from kvlab.errors import KvlabError
from kvlab.paging import BlockManager, ExtraKeys
from kvlab.paging.rules import broken_rules
from kvlab.paging.token_runs import TokenRuns


def run(manager: BlockManager, seq_id: Hashable, tokens: list[int], **options: Hashable) -> int:
    """Let a sequence come, be computed and go; return how many of its tokens were cached."""
    cached = manager.allocate(seq_id, tokens, **options)
    manager.commit(seq_id, tokens)
    manager.free(seq_id)
    return cached


def test_a_block_that_was_given_to_others_is_no_hit_any_more() -> None:
    manager = BlockManager(2, 4)
    first, second = [1, 2, 3, 4, 5], [6, 7, 8, 9, 10]
    assert [run(manager, *r) for r in (("a", first), ("b", second), ("c", first))] == [0, 0, 0]
    assert broken_rules(manager) == []  # each entry of the index still has the hash of its block
    assert run(manager, "d", first) == 4


def test_the_same_block_after_other_tokens_is_not_the_same() -> None:
    a, b, c, d = ([n] * 4 for n in range(4))
    manager = BlockManager(16, 4)
    run(manager, 0, [*a, *b, 9])
    assert manager.match_prefix([*c, *b, 9]) == 0
    assert manager.match_prefix([*a, *d, 9]) == 4


@pytest.mark.parametrize(("block_size", "hit"), [(32, 32), (16, 32), (8, 32), (2, 34)])
def test_only_full_blocks_hit(block_size: int, hit: int) -> None:
    manager, shared = BlockManager(64, block_size), list(range(34))
    run(manager, "a", [*shared, 100])
    assert manager.allocate("b", [*shared, 101, 102]) == hit


@pytest.mark.parametrize(
    ("new", "common"), [([1, 2, 3, 4, 5], 4), ([1, 2, 9], 2), ([], 0), ([1, 2, 3, 4], 3), ([9], 0)]
)
def test_the_common_prefix_is_found_to_the_token_but_one_token_is_always_left(
    new: list[int], common: int
) -> None:
    manager = BlockManager(16, 1)
    run(manager, "old", [1, 2, 3, 4])
    assert manager.match_prefix(new) == common == manager.allocate("new", new)


def test_a_prompt_that_is_cached_as_a_whole_still_computes_its_last_block() -> None:
    manager, tokens = BlockManager(16, 4), list(range(8))
    run(manager, "a", tokens)
    assert run(manager, "b", tokens) == 4
    assert run(manager, "c", [*tokens, 8]) == 8


def test_prefixes_are_matched_on_token_ids_not_on_text() -> None:
    hello_wor, hello_world = [19556, 458], [19556, 905]  # SmolLM2's ids: the last token merges
    manager = BlockManager(16, 1)
    run(manager, "Hello wor", hello_wor)
    assert manager.match_prefix([*hello_world, 17]) == 1
    assert manager.match_prefix([*hello_wor, 400]) == 2


def test_salt_and_adapter_with_the_same_name_do_not_share() -> None:
    manager, tokens = BlockManager(16, 4), list(range(9))
    run(manager, "a", tokens, extra_keys=ExtraKeys(adapter="x"))
    assert manager.match_prefix(tokens, ExtraKeys(salt="x")) == 0
    assert manager.match_prefix(tokens, ExtraKeys(model="x")) == 0
    assert manager.match_prefix(tokens) == 0
    assert manager.match_prefix(tokens, ExtraKeys(adapter="x")) == 8


def test_tenants_share_only_with_themselves() -> None:
    manager, tokens = BlockManager(64, 4), list(range(9))
    hits = [
        run(manager, number, tokens, extra_keys=ExtraKeys(salt=salt))
        for number, salt in enumerate(["ann", "bob", "ann", None, "bob", None])
    ]
    assert hits == [0, 0, 8, 0, 8, 8]


def test_what_is_not_computed_is_not_shared() -> None:
    manager, tokens = BlockManager(16, 4), list(range(12))
    manager.allocate("a", tokens)
    assert manager.match_prefix([*tokens, 0]) == 0
    manager.commit("a", tokens, 7)
    assert manager.match_prefix([*tokens, 0]) == 4
    manager.commit("a", tokens, 5)  # less than before: nothing is taken back
    assert manager.match_prefix([*tokens, 0]) == 4
    manager.commit("a", tokens)
    assert manager.match_prefix([*tokens, 0]) == 12


def test_blocks_can_be_shared_with_the_append_that_follows_them() -> None:
    manager, tokens = BlockManager(16, 4), list(range(4))
    manager.allocate("a", tokens)
    for token in range(4, 12):
        manager.append("a", 1, tokens)
        tokens.append(token)
        assert manager.num_committed_tokens("a") == (token // 4) * 4
    assert manager.match_prefix([*tokens, 0]) == 8
    with pytest.raises(KvlabError, match="num_computed"):
        manager.append("a", 1, tokens[:11])  # a token is missing
    assert broken_rules(manager) == []


def test_the_tail_of_a_chain_is_evicted_first_every_time() -> None:
    for _ in range(200):
        manager, chain = BlockManager(3, 4), list(range(12))
        run(manager, "a", chain)
        manager.allocate("b", [99])
        assert (manager.block_table("b"), manager.match_prefix(chain)) == ([2], 8)
        assert broken_rules(manager) == []


def test_a_part_of_a_chain_that_is_not_asked_for_keeps_its_age() -> None:
    manager = BlockManager(9, 1)
    run(manager, "old", list(range(8)))
    assert run(manager, "new", [0, 1, 2]) == 2
    manager.allocate("other", [50, 51])
    assert manager.match_prefix(list(range(8))) == 7  # token 7 went, and then this looks at 7 of 8
    manager.append("other")
    assert manager.match_prefix(list(range(9))) == 6
    assert broken_rules(manager) == []


def test_a_hit_that_was_looked_up_earlier_is_looked_up_again_when_it_is_used() -> None:
    manager, tokens = BlockManager(4, 4), list(range(12))
    run(manager, "a", tokens)
    assert manager.match_prefix(tokens) == 8
    run(manager, "b", [90] * 16)
    assert manager.allocate("late", tokens) == 0


def test_a_preempted_sequence_finds_its_own_blocks_and_computes_only_the_rest() -> None:
    manager, tokens = BlockManager(4, 4), list(range(11))
    manager.allocate("a", tokens)
    manager.commit("a", tokens)
    manager.free("a")  # preempted
    cached = manager.allocate("a", tokens, num_new_tokens=len(tokens))
    assert (cached, manager.num_tokens("a"), len(tokens) - cached) == (8, 11, 3)
    assert manager.slot_mapping("a", cached, 11)
    assert broken_rules(manager) == []


def test_idle_blocks_are_forgotten_on_demand() -> None:
    manager, tokens = BlockManager(8, 4), list(range(12))
    run(manager, "a", tokens)
    manager.allocate("b", tokens)
    assert (manager.drop_idle(), manager.match_prefix([*tokens, 0])) == (1, 8)
    manager.free("b")
    assert (manager.drop_idle(), manager.num_free) == (2, 8)
    assert len(manager.pool.free_block_ids) == 8


def test_two_that_compute_the_same_at_once_end_up_with_one_block() -> None:
    manager, tokens = BlockManager(8, 4), list(range(6))
    for seq_id in ("a", "b"):
        manager.allocate(seq_id, tokens)
    assert manager.num_used == 4
    for seq_id in ("a", "b"):
        manager.commit(seq_id, tokens)
    assert (manager.num_used, manager.stats().merged_blocks) == (3, 1)
    assert manager.block_table("a")[0] == manager.block_table("b")[0]
    assert broken_rules(manager) == []


def test_a_fork_keeps_its_chain_when_its_parent_could_change_over_to_equal_blocks() -> None:
    manager, tokens = BlockManager(8, 2), [1, 2, 3, 4]
    for seq_id in ("first", "parent"):
        manager.allocate(seq_id, tokens)
    manager.fork("parent", "child")
    manager.commit("first", tokens)
    manager.commit("parent", tokens)  # the same tokens, but the child holds these blocks too
    assert manager.block_table("parent") == manager.block_table("child")
    manager.free("first")
    manager.free("parent")
    manager.commit("child", tokens)
    assert manager.stats().merged_blocks == 2
    assert broken_rules(manager) == []


def test_with_a_hash_that_always_collides_the_hits_are_the_same() -> None:
    plain, colliding = BlockManager(12, 2), BlockManager(12, 2, hash_block=lambda identity: 1)
    rng = random.Random(3)
    for number in range(300):
        tokens = [rng.randrange(2) for _ in range(rng.randint(1, 9))]
        salt = rng.choice("ab")
        hits = [run(m, number, tokens, extra_keys=salt) for m in (plain, colliding)]
        assert hits[0] == hits[1]
    assert plain.stats() == colliding.stats()
    assert plain.stats().evicted_blocks > 100
    assert broken_rules(colliding) == []


def test_a_crafted_collision_serves_nobody_elses_tokens() -> None:
    manager = BlockManager(8, 4, hash_block=lambda identity: len(identity[1]))
    run(manager, "secret", [1, 2, 3, 4, 5])
    assert manager.match_prefix([9, 9, 9, 9, 9]) == 0
    assert manager.match_prefix([1, 2, 3, 4, 9]) == 4


def test_runs_of_named_tokens_share_what_has_the_same_name() -> None:
    manager = BlockManager(400, 16)
    for user in range(100):
        tokens = TokenRuns(("system", 1000), (user, 20))
        cached = manager.allocate(user, tokens)
        manager.commit(user, tokens)
        assert cached == (992 if user else 0)
    assert manager.num_used == 62 + 100 * 2  # 992 shared tokens; 8 + 20 of each one's own
    assert manager.match_prefix(TokenRuns(("another", 1000))) == 0
    with pytest.raises(KvlabError, match="num_tokens"):
        TokenRuns(("system", -1))
    with pytest.raises(KvlabError, match="step"):
        TokenRuns(("system", 8))[0:4:2]


def test_what_cannot_be_hashed_is_refused_by_name() -> None:
    manager = BlockManager(8, 4)
    with pytest.raises(KvlabError, match="extra_keys"):
        manager.allocate("a", list(range(9)), extra_keys=["salt"])
    assert manager.num_free == 8
