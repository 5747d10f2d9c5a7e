"""Units of memory and of work: whole numbers inside, a unit only at the edge.

GiB and GB are different things: 1 GiB = 2**30 bytes, 1 GB = 10**9 bytes. Both are shown.
"""

from kvlab.arithmetic.checks import whole_number

KIB, MIB, GIB, TIB = 2**10, 2**20, 2**30, 2**40
KB, MB, GB, TB = 10**3, 10**6, 10**9, 10**12

_SCALE = (
    ("TiB", TIB, "TB", TB),
    ("GiB", GIB, "GB", GB),
    ("MiB", MIB, "MB", MB),
    ("KiB", KIB, "kB", KB),
)
_WORK = ("", "K", "M", "G", "T", "P", "E", "Z")


def kib(num_bytes: int) -> float:
    """Return bytes as KiB (1,024 bytes).

    >>> kib(327_680)
    320.0
    """
    return num_bytes / KIB


def mib(num_bytes: int) -> float:
    """Return bytes as MiB (1,048,576 bytes).

    >>> mib(3 * 2**20)
    3.0
    """
    return num_bytes / MIB


def gib(num_bytes: int) -> float:
    """Return bytes as GiB (2**30 bytes).

    >>> gib(2_684_354_560)
    2.5
    """
    return num_bytes / GIB


def gb(num_bytes: int) -> float:
    """Return bytes as GB (10**9 bytes).

    >>> gb(2_684_354_560)
    2.68435456
    """
    return num_bytes / GB


def format_bytes(num_bytes: int, *, digits: int = 2) -> str:
    """Write a size for people: the binary unit first, the decimal unit in brackets.

    >>> format_bytes(2_684_354_560)
    '2.50 GiB (2.68 GB)'
    >>> format_bytes(327_680, digits=0)
    '320 KiB (328 kB)'
    >>> format_bytes(1_000)
    '1,000 bytes'
    """
    count = whole_number("num_bytes", num_bytes, minimum=0)
    for binary_name, binary, decimal_name, decimal in _SCALE:
        if count >= binary:
            left = f"{count / binary:,.{digits}f} {binary_name}"
            return f"{left} ({count / decimal:,.{digits}f} {decimal_name})"
    return f"{count:,} byte" if count == 1 else f"{count:,} bytes"


def format_flops(flops: int, *, digits: int = 1) -> str:
    """Write an amount of work for people: 1 PFLOP = 10**15 floating-point operations.

    >>> format_flops(350_500_000_000_000_000)
    '350.5 PFLOP'
    >>> format_flops(512)
    '512 FLOP'
    """
    count = whole_number("flops", flops, minimum=0)
    power = min((len(str(count)) - 1) // 3, len(_WORK) - 1)
    if power == 0:
        return f"{count} FLOP"
    return f"{count / 1000**power:,.{digits}f} {_WORK[power]}FLOP"
