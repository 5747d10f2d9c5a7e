"""Every model of the catalogue has the size that was worked out independently, to the byte."""

import json
from pathlib import Path

import pytest

from kvlab.arithmetic.catalogue import find_model, load_models
from kvlab.arithmetic.gpus import load_gpus
from kvlab.arithmetic.reader import read_model
from kvlab.arithmetic.request import size_request

SIZES = json.loads((Path(__file__).parent / "published_sizes.json").read_text(encoding="utf-8"))[
    "sizes"
]
CONTEXTS = (4096, 32_768, 131_072)


@pytest.mark.parametrize("name", SIZES)
def test_a_model_costs_what_was_worked_out_independently(name: str) -> None:
    model = read_model(dict(find_model(name).config))
    found = [size_request(model, context=context) for context in CONTEXTS]
    assert [found[0].bytes_per_token, *(size.kv_bytes for size in found)] == SIZES[name]


def test_the_catalogue_is_large_and_every_row_can_be_read() -> None:
    rows = load_models()
    assert len(rows) >= 100 and len(load_gpus()) >= 18
    for row in rows:
        model = read_model(dict(row.config))
        assert model.elements_per_token > 0
        assert not [note for note in model.notes if "unknown" in note]
        assert row.sources and row.as_of.year >= 2026


def test_every_row_says_how_sure_it_is_and_most_know_their_parameters() -> None:
    rows = load_models()
    assert sum(row.confidence == "verified" for row in rows) > 100
    assert sum(row.parameters is not None for row in rows) > 100
    assert find_model("llama-3.1-70b").parameters == 70_553_706_496
