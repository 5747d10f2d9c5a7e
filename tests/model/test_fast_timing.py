"""What stands beside a step's seconds are the bytes that its path reads; no speed is asserted."""

import pytest

from kvlab.model.fast_timing import paths_here, time_paths
from kvlab.model.load import load_model


def test_each_path_is_timed_beside_its_own_bytes() -> None:
    loaded = load_model("tiny", device="cpu")
    rows = time_paths(loaded, prompt_tokens=20, rounds=3)
    assert tuple(row.path for row in rows) == paths_here(loaded)
    config = loaded.model.config
    token = 2 * config.num_layers * config.num_kv_heads * config.head_dim * 4
    assert rows[0].bytes == loaded.nbytes + 23 * token  # 20, two left out, the first of three
    for row in rows:
        assert row.seconds > 0 and row.share == pytest.approx(row.least_seconds / row.seconds)


def test_a_model_in_bfloat16_goes_the_lessons_way_on_a_cpu() -> None:
    assert paths_here(load_model("tiny", device="cpu", dtype="bf16")) == ("plain",)
