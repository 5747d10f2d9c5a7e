"""The notation: one letter per quantity, named as in the code, sizes from the catalogue."""

from dataclasses import fields

from kvlab.arithmetic.shapes import ModelShape
from kvlab.course.notation import SYMBOLS, bytes_per_token_of, symbol_rows, unit_rows


def test_every_letter_and_every_name_stands_once() -> None:
    assert len({s.letter for s in SYMBOLS}) == len({s.name for s in SYMBOLS}) == len(SYMBOLS)


def test_the_sizes_of_a_model_are_named_as_in_its_shape() -> None:
    names = {field.name for field in fields(ModelShape)}
    assert {s.name for s in SYMBOLS[:7]} <= names


def test_the_table_shows_the_sizes_of_the_model_asked_for() -> None:
    sizes = {row[1]: row[3] for row in symbol_rows("llama-3.1-70b")}
    assert (sizes["num_layers"], sizes["num_kv_heads"], sizes["batch"]) == ("80", "8", "\u2013")


def test_a_binary_unit_is_larger_and_the_gap_grows() -> None:
    gaps = [float(row[-1].removesuffix(" %")) for row in unit_rows()]
    assert gaps == sorted(gaps)
    assert gaps[0] == 2.4


def test_the_bytes_of_a_token_are_those_of_the_formula() -> None:
    assert bytes_per_token_of("llama-3.1-70b", 2) == 327_680
