"""Every number and name in the prose of chapter 07, checked against the functions."""

from pathlib import Path

import pytest

from kvlab.arithmetic.prices import find_price
from kvlab.course.claim_math_07 import blocks_of_a_crowd, hit_tokens, hit_tokens_found, prefix_bill
from kvlab.paging import BlockManager
from kvlab.widgets.prefix_explorer import DATED, STABLE, SYSTEM, prefix_frame, story

SOURCE = Path(__file__).resolve().parents[2] / "chapters" / "src" / "07_prefix_sharing.py"
TEXT = SOURCE.read_text(encoding="utf-8")
PROSE = "\n".join(line[2:] for line in TEXT.splitlines() if line.startswith("# "))


def test_hits_by_formula_are_those_that_a_manager_finds() -> None:
    for prompt, equal, size in ((36, 34, 32), (64, 64, 32), (65, 64, 32), (14, 10, 4), (9, 9, 1)):
        assert hit_tokens_found(prompt, equal, size) == hit_tokens(prompt, equal, size)


def test_the_story_has_twelve_words_of_instructions_and_a_date_loses_all_of_them() -> None:
    assert len(SYSTEM.split()) == 12 and "12 words of instructions" in PROSE
    assert prefix_frame(2, STABLE, 4, 16).readout["this request"].startswith("12 tokens shared")
    dated = [event for event in story(DATED) if hasattr(event, "words")]
    assert len(dated[0].words) == 20 and "at least 16 of 20 words are the same" in PROSE
    assert sum(a == b for a, b in zip(dated[0].words, dated[3].words, strict=True)) >= 16
    assert "0 tokens shared" in prefix_frame(6, DATED, 4, 16).readout["this request"]


def test_a_pool_of_ten_holds_two_chains_of_four_and_two_free_blocks() -> None:
    manager = BlockManager(10, 4)
    for name, start in (("A", 0), ("B", 100)):
        manager.allocate(name, range(start, start + 16))
        manager.commit(name, range(start, start + 16))
    manager.free("A"), manager.free("B")
    stats = manager.stats()
    assert (stats.num_used_blocks, stats.num_idle_blocks, stats.num_free_blocks) == (0, 8, 2)
    assert "only 2 of 10 look free" in TEXT


def test_the_crowd_of_the_exercise_is_what_a_manager_holds() -> None:
    manager = BlockManager(2000, 16)
    for request in range(64):
        prompt = [*range(1500), *range(10_000 * (request + 1), 10_000 * (request + 1) + 200)]
        manager.allocate(request, prompt)
        manager.commit(request, prompt)
    assert manager.num_used == blocks_of_a_crowd(64, 1500, 200, 16)


def test_the_bill_of_the_exercise_is_that_of_the_price_list_scaled() -> None:
    listed = find_price("anthropic-5-minutes")
    assert prefix_bill(40_000, 25, 3.0, 125, 10) == pytest.approx(
        listed.cost(40_000, 25) * 3.0 / listed.base_usd
    )


def test_the_break_even_said_in_the_text_is_the_computed_one() -> None:
    assert find_price("anthropic-5-minutes").uses_to_pay() == 2
    assert "1.25 + 0.1 = 1.35 is less than 2" in TEXT
    assert find_price("anthropic-5-minutes").saving(1) < 0
