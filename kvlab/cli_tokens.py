"""A number of tokens as people write it on a command line."""

import re

import typer


def token_count(text: str) -> int:
    """Return a whole number of tokens; commas or underscores may part the thousands.

    A K or M is refused, for it may mean 1,000 or 1,024. Raises `typer.BadParameter`, which the
    command prints with the name of the option.

    >>> token_count("131,072"), token_count("131_072"), token_count("131072")
    (131072, 131072, 131072)
    """
    typed = str(text).strip()
    if re.fullmatch(r"-?\d{1,24}(?:[,_]\d{3})*", typed):
        return int(typed.replace(",", ""))
    if found := re.fullmatch(r"(\d{1,9})[kK]", typed):
        thousands = int(found[1])
        either = f"{thousands * 1000:,} or {thousands * 1024:,}"
        raise typer.BadParameter(f"{text!r} may mean {either} tokens; write the number")
    raise typer.BadParameter(f"{text!r} is not a whole number of tokens, such as 131072")
