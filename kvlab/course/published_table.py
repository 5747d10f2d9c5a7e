"""A published table of cache sizes, restated: what the page printed, and what it said later.

The model is Llama 3 8B with keys and values in 16 bit. `page_mib` is the page's own function in
our words; every corrected number comes from `kvlab.arithmetic`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from kvlab.arithmetic.catalogue import find_model, model_shape
from kvlab.arithmetic.memory import kv_bytes
from kvlab.arithmetic.units import GIB, MIB

MODEL = "meta-llama/Meta-Llama-3-8B"
PRINTED_MIB = {2048: 128.0, 8192: 512.0, 32_768: 2048.0, 131_072: 8192.0}
"""Tokens, and the size that the page prints for them; it says MB and divides by 1,024 twice."""

ROOM_BYTES = 62 * GIB
"""What the page leaves for caches on its card."""


def page_mib(num_layers: int, num_kv_heads: int, head_dim: int, seq_len: int) -> float:
    """Return what the page's function returns for one request, in MiB.

    >>> page_mib(32, 8, 128, 2048)
    256.0
    """
    return 2 * num_layers * num_kv_heads * head_dim * seq_len * 2 / 1024 / 1024


def size(seq_len: int, *, requests: int = 1, kv_heads: int = 8, bytes_per_element: int = 2) -> int:
    """Return the cache of the table's model in bytes.

    >>> size(32_768) / GIB
    4.0
    """
    shape = model_shape(MODEL)
    return kv_bytes(
        num_layers=shape.num_layers,
        num_kv_heads=kv_heads,
        head_dim=shape.head_dim,
        bytes_per_element=bytes_per_element,
        seq_len=seq_len,
        batch=requests,
    )


def weights_bytes() -> int:
    """Return the bytes of the model's weights in 16 bit."""
    return 2 * (find_model(MODEL).parameters or 0)


@dataclass(frozen=True)
class Statement:
    """A later statement of the page: its letter, our words for it, the numbers as printed.

    `inherits` says whether it was made from the halved table, `compute` writes the right numbers.
    """

    letter: str
    text: str
    printed: str
    inherits: bool = field(repr=False)
    compute: Callable[[], str] = field(repr=False)
    why: str = field(repr=False)


def _each(requests: int) -> str:
    sizes = (size(n, requests=requests) / GIB for n in PRINTED_MIB)
    return " / ".join(f"{x:,.1f}".removesuffix(".0") for x in sizes) + " GiB"


def _heads() -> str:
    sizes = (size(8192, kv_heads=heads) // MIB for heads in (32, 8, 1))
    return " / ".join(f"{x:,}" for x in sizes) + " MiB"


def _fp8() -> str:
    sizes = (size(32_768, bytes_per_element=b) // MIB for b in (2, 1))
    return " to ".join(f"{x:,}" for x in sizes) + " MiB"


def _fit() -> str:
    return " / ".join(str(ROOM_BYTES // size(n)) for n in PRINTED_MIB)


STATEMENTS: tuple[Statement, ...] = (
    Statement(
        "A",
        "Ten requests of 2K / 8K / 32K / 128K",
        "1.25 / 5 / 20 / 80 GB",
        True,
        lambda: _each(10),
        "ten times a halved size is a halved size",
    ),
    Statement(
        "B",
        "A hundred requests of 2K / 8K / 32K / 128K",
        "12.5 / 50 / 200 / 800 GB",
        True,
        lambda: _each(100),
        "a hundred times a halved size is a halved size",
    ),
    Statement(
        "C",
        "The weights of the model in 16 bit",
        "about 16 GB",
        False,
        lambda: f"{weights_bytes() / 1e9:.2f} GB",
        "weights are counted from parameters, not from the table",
    ),
    Statement(
        "D",
        "One request of 32K as a share of the weights",
        "12.5 %",
        True,
        lambda: f"{100 * size(32_768) / weights_bytes():.1f} %",
        "a halved cache over whole weights; it also divides GiB by GB",
    ),
    Statement(
        "E",
        "Users of 32K whose caches weigh as much as the weights",
        "8",
        True,
        lambda: f"{weights_bytes() / size(32_768):.2f}",
        "whole weights over a halved cache",
    ),
    Statement(
        "F",
        "One request of 8K with 32 / 8 / 1 KV heads",
        "2,048 / 512 / 64 MB",
        True,
        _heads,
        "three sizes from the same halved table",
    ),
    Statement(
        "G",
        "The cache with 8 KV heads over that with 32",
        "25 %",
        False,
        lambda: f"{100 * size(8192) / size(8192, kv_heads=32):.0f} %",
        "a ratio of two halved sizes: the lost factor cancels",
    ),
    Statement(
        "H",
        "One request of 32K, from 16 bit to FP8",
        "2,048 to 1,024 MB",
        True,
        _fp8,
        "two sizes from the same halved table",
    ),
    Statement(
        "I",
        "What FP8 saves",
        "about 50 %",
        False,
        lambda: f"{100 - 100 * size(32_768, bytes_per_element=1) / size(32_768):.0f} %",
        "a ratio of two halved sizes: the lost factor cancels",
    ),
    Statement(
        "J",
        "Requests of 2K / 8K / 32K / 128K that 62 GiB hold",
        "496 / 124 / 31 / 7",
        True,
        _fit,
        "the room over a halved size",
    ),
)
"""Later statements in the page's order; seven of them were made from the table."""


def marked() -> frozenset[str]:
    """Return the letters of the statements that inherit the fault."""
    return frozenset(row.letter for row in STATEMENTS if row.inherits)


def corrections() -> list[tuple[str, str, str]]:
    """Return (letter, printed, right) for every statement.

    >>> corrections()[4]
    ('E', '8', '3.74')
    """
    return [(row.letter, row.printed, row.compute()) for row in STATEMENTS]
