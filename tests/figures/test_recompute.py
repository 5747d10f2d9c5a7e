"""One step in two columns: the counts are those of the cells, for every step."""

import pytest

from kvlab.figures.recompute import cached_column, count_rows, recompute_column, step_columns

from .conftest import Drawing


@pytest.mark.parametrize("step", range(8))
def test_recompute_projects_every_token_and_fills_the_triangle(step):
    counts = recompute_column(8, step).counts()
    n = step + 1
    assert counts["vectors"] == 3 * n
    assert counts["vectors_again"] == 3 * step
    assert counts["scores"] == n * (n + 1) // 2
    assert counts["scores_again"] == step * (step + 1) // 2
    assert counts["read"] == counts["written"] == 0


@pytest.mark.parametrize("step", range(8))
def test_the_cache_leaves_three_projections_and_one_row_of_scores(step):
    counts = cached_column(8, step).counts()
    assert counts["vectors"] == 3
    assert counts["vectors_again"] == counts["scores_again"] == 0
    assert counts["scores"] == step + 1
    assert counts["read"] == 2 * step
    assert counts["written"] == 2


def test_the_last_query_is_the_same_in_both_columns_and_old_queries_are_gone():
    again, kept = recompute_column(8, 5), cached_column(8, 5)
    assert again.rows["query"][5] == kept.rows["query"][5] == "now"
    assert set(kept.rows["query"][:5]) == {"absent"}


def test_the_picture_prints_the_counts_of_its_columns():
    words = [text.name for text in Drawing(step_columns(list("ABCDEFGH"), 3)).texts()]
    for column in (recompute_column(8, 3), cached_column(8, 3)):
        for name, value in count_rows(column).items():
            assert name in words
            assert value in words
