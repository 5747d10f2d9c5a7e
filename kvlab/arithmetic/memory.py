"""The size of a KV cache, by the formula.

Left out here: layers that keep only a window, a latent or a state instead of every key and value.
"""

from kvlab.arithmetic.checks import whole_number


def kv_bytes_per_token(
    *, num_layers: int, num_kv_heads: int, head_dim: int, bytes_per_element: int
) -> int:
    """Return the bytes that one token adds to the cache, over all layers.

    The 2 is one key vector and one value vector. Query heads, hidden size, the MLP and the dtype
    of the weights do not enter. Llama 3.1 70B in 16 bit, 320 KiB a token:

    >>> kv_bytes_per_token(num_layers=80, num_kv_heads=8, head_dim=128, bytes_per_element=2)
    327680
    """
    layers = whole_number("num_layers", num_layers)
    heads = whole_number("num_kv_heads", num_kv_heads)
    width = whole_number("head_dim", head_dim)
    element = whole_number("bytes_per_element", bytes_per_element)
    return 2 * layers * heads * width * element


def kv_bytes(
    *,
    num_layers: int,
    num_kv_heads: int,
    head_dim: int,
    bytes_per_element: int,
    seq_len: int,
    batch: int = 1,
) -> int:
    """Return the bytes of keys and values of `batch` sequences that hold `seq_len` tokens each.

    Llama 3.1 70B in 16 bit, 8,192 tokens, one user, 2.5 GiB:

    >>> kv_bytes(num_layers=80, num_kv_heads=8, head_dim=128, bytes_per_element=2, seq_len=8192)
    2684354560
    """
    per_token = kv_bytes_per_token(
        num_layers=num_layers,
        num_kv_heads=num_kv_heads,
        head_dim=head_dim,
        bytes_per_element=bytes_per_element,
    )
    tokens = whole_number("seq_len", seq_len, minimum=0)
    return whole_number("batch", batch) * tokens * per_token
