"""Published sizes: a line that says what a model's cache takes at some number of tokens."""

from kvlab.arithmetic.logs.facts import LinePattern

ENGINE = "published size"

PATTERNS = (
    LinePattern(
        "KV cache of ",
        r"KV cache of (?P<model>[\w./ -]{2,80}?) at (?P<published_tokens><NUM>)(?P<thousand>k?)"
        r" tokens(?: in (?P<cache_dtype>\w{2,8}))?:? ?"
        r"(?P<published_bytes><NUM>) (?P<published_bytes_unit><UNIT>)",
    ),
)
"""`thousand` is "k" where the tokens were given in thousands: 1,000 or 1,024 each."""
