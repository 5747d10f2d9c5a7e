"""Tiny rows, measured for real with the bundled model: numbers are there, none is judged."""

from collections.abc import Iterator
from itertools import islice

import pytest

from kvlab.bench.allocator_ours import WAYS, play_manager, play_scheduler
from kvlab.bench.allocator_trace import make_trace
from kvlab.bench.lines import Line, read_line
from kvlab.bench.ours import OurDecoder, serve_seconds
from kvlab.bench.rows_allocator import rows as allocator_rows
from kvlab.bench.rows_decode import decode_side_by_side
from kvlab.bench.rows_prefill import prefill_line
from kvlab.bench.rows_slider import kernel_lines
from kvlab.bench.setting import Setting
from kvlab.bench.widget_list import widget_makers
from kvlab.bench.widget_moves import time_widget


@pytest.fixture
def setting() -> Iterator[Setting]:
    yield Setting(rounds=1, model="tiny", prompt_tokens=12, new_tokens=4)


def test_a_decode_row_has_a_peer_that_writes_the_same_tokens(setting, monkeypatch) -> None:
    monkeypatch.setattr("kvlab.bench.peer_transformers.WAYS", ("dynamic", "static"))
    lines = list(decode_side_by_side(setting, setting.loaded(), "decode", "float32"))
    assert lines
    for line in lines:
        assert line.ours > 0 and line.peer > 0 and line.limit > 0
        assert line.peer_name.startswith("transformers")
        assert "4 of 4 tokens as transformers dynamic" in line.note
        assert read_line(line.to_dict()) == line


def test_a_prefill_row_has_ratio_and_limit(setting) -> None:
    line = prefill_line(setting, setting.loaded(), 12)
    assert line.ratio > 0 and line.of_limit > 0 and "GFLOP/s" in line.note


def test_weights_and_cache_are_counted_to_the_byte(setting) -> None:
    loaded = setting.loaded()
    ours, config = OurDecoder(loaded, max_seq_len=16, fast=False), loaded.model.config
    names = dict(loaded.model.named_parameters())
    unread = "" if config.tied_embeddings else "model.embed_tokens.weight"
    read = sum(4 * p.numel() for name, p in names.items() if name != unread)
    assert ours.weight_bytes() == read
    heads = 2 * config.num_layers * config.num_kv_heads * config.head_dim
    assert ours.cache_bytes_per_token() == 4 * heads


@pytest.mark.parametrize("fast", [True, False])
def test_with_a_cache_and_without_the_same_tokens_are_written(setting, fast: bool) -> None:
    loaded = setting.loaded()
    ours, ids = OurDecoder(loaded, max_seq_len=90, fast=fast), loaded.encode("the key of " * 9)
    with_it, without = ours.write(ids, 6), ours.write_uncached(ids, 6)
    assert with_it.token_ids == without.token_ids and len(without.token_ids) == 6
    assert without.seconds > 0


def test_a_batch_of_mixed_lengths_is_served(setting) -> None:
    assert serve_seconds(setting.loaded(), [[3, 4, 5], [6], [7, 8]], 3) > 0


def test_every_way_of_calling_finds_the_same_prefixes() -> None:
    trace = make_trace(12, block_size=16, running=4)
    played = [play_manager(trace, way) for way in WAYS]
    assert len({(p.asked_tokens, p.hit_tokens) for p in played}) == 1
    asked = sum(len(request.prompt_ids) for request in trace.requests)
    assert played[0].asked_tokens == play_scheduler(trace).asked_tokens == asked
    assert played[0].hit_tokens > 0


def test_without_a_copy_of_the_peer_the_allocator_says_so(setting, monkeypatch) -> None:
    small = make_trace(4, block_size=16, running=2)
    monkeypatch.setattr("kvlab.bench.rows_allocator.make_trace", lambda **options: small)
    lines = list(islice(allocator_rows(setting), 4))
    assert [line.peer for line in lines] == [None] * 4
    assert all(line.ours > 0 and "nano-vllm is absent" in line.note for line in lines)
    assert all("tokens hit" in line.note and "pool of" in line.note for line in lines)


def test_a_widget_is_moved_over_every_control_and_stays_as_it_was() -> None:
    made = []
    makers = widget_makers()

    def make():
        made.append(makers["heads_explorer"]())
        return made[-1]

    found = time_widget("heads_explorer", make, rounds=2)
    assert found.moves > 10 and found.picture_bytes > 1000
    assert found.worst_seconds >= found.median_seconds > 0
    lines: list[Line] = list(kernel_lines([found]))
    assert [line.unit for line in lines] == ["ms", "ms"]
