"""The notation of the whole course and its units, as data: one letter per quantity.

In a formula a letter stands for the same thing in every chapter; the name beside it is the one in
the code.
"""

from dataclasses import dataclass

from kvlab.arithmetic.catalogue import model_shape
from kvlab.arithmetic.memory import kv_bytes_per_token
from kvlab.arithmetic.units import GB, GIB, KB, KIB, MB, MIB, TB, TIB


@dataclass(frozen=True)
class Symbol:
    """One quantity: its letter, its name in the code, and what it is."""

    letter: str
    name: str
    meaning: str


SYMBOLS: tuple[Symbol, ...] = (
    Symbol("L", "num_layers", "transformer layers"),
    Symbol("H", "hidden_size", "numbers in the vector of one token"),
    Symbol("I", "intermediate_size", "numbers inside the MLP"),
    Symbol("V", "vocab_size", "tokens the model knows"),
    Symbol("n_q", "num_heads", "query heads of a layer"),
    Symbol("n_kv", "num_kv_heads", "KV heads of a layer: what the cache holds"),
    Symbol("d", "head_dim", "numbers in one query, key or value of one head"),
    Symbol("b", "bytes_per_element", "bytes of one number in the cache"),
    Symbol("P", "prompt_tokens", "tokens of the prompt"),
    Symbol("N", "new_tokens", "tokens emitted; the prefill (pass over the prompt) emits the first"),
    Symbol("T", "seq_len", "tokens that one sequence keeps in the cache"),
    Symbol("t", "position", "place of a token, counted from 1; the code's rows count from 0"),
    Symbol("B", "batch", "sequences that run together"),
    Symbol("S", "block_size", "tokens in one block of a paged cache"),
    Symbol("W", "sliding_window", "tokens that a windowed layer sees"),
    Symbol("R", "tp_size", "ranks that share a model's heads"),
)


def symbol_rows(model: str = "smollm2") -> list[list[str]]:
    """Return the notation with a model's own sizes; a dash where a run decides, not the model.

    >>> symbol_rows()[0]
    ['L', 'num_layers', 'transformer layers', '30']
    """
    shape = model_shape(model)
    rows = []
    for symbol in SYMBOLS:
        size = getattr(shape, symbol.name, None)
        rows.append([symbol.letter, symbol.name, symbol.meaning, f"{size:,}" if size else "\u2013"])
    return rows


def unit_rows() -> list[list[str]]:
    """Return binary and decimal units side by side, with how much larger the binary one is.

    >>> unit_rows()[2]
    ['1 GiB', '1,073,741,824', '1 GB', '1,000,000,000', '7.4 %']
    """
    pairs = (("K", KIB, KB), ("M", MIB, MB), ("G", GIB, GB), ("T", TIB, TB))
    return [
        [
            f"1 {letter}iB",
            f"{binary:,}",
            f"1 {'k' if letter == 'K' else letter}B",
            f"{decimal:,}",
            f"{100 * (binary / decimal - 1):.1f} %",
        ]
        for letter, binary, decimal in pairs
    ]


def bytes_per_token_of(model: str, bytes_per_element: int) -> int:
    """Return the cache bytes that one token adds in a model of the catalogue.

    >>> bytes_per_token_of("smollm2", 4)
    46080
    """
    shape = model_shape(model)
    return kv_bytes_per_token(
        num_layers=shape.num_layers,
        num_kv_heads=shape.num_kv_heads,
        head_dim=shape.head_dim,
        bytes_per_element=bytes_per_element,
    )
