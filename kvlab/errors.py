"""The errors of kvlab: each names the argument, the value and the rule, in one line.

Every one of them is also a `ValueError`, so code that knows nothing of kvlab can catch it.
"""


class KvlabError(ValueError):
    """The base of every error that kvlab raises on purpose."""


class InvalidArgument(KvlabError):
    """An argument breaks a rule.

    >>> raise InvalidArgument("max_new_tokens", 0, "must be 1 or more")
    Traceback (most recent call last):
    kvlab.errors.InvalidArgument: max_new_tokens=0: must be 1 or more
    """

    def __init__(self, argument: str, value: object, rule: str) -> None:
        self.argument, self.value, self.rule = argument, value, rule
        super().__init__(f"{argument}={shorten(value)}: {rule}")


class CacheFull(KvlabError):
    """A cache of fixed size has no room for the tokens offered; it is left unchanged."""


class OutOfBlocks(CacheFull):
    """A paged cache has too few free blocks for a request; nothing was changed.

    >>> raise OutOfBlocks("chat-7", needed=5, available=3)
    Traceback (most recent call last):
    kvlab.errors.OutOfBlocks: seq_id='chat-7': needs 5 blocks, has 3
    """

    def __init__(self, seq_id: object, *, needed: int, available: int) -> None:
        self.seq_id, self.needed, self.available = seq_id, needed, available
        super().__init__(f"seq_id={shorten(seq_id)}: needs {needed} blocks, has {available}")


class CacheInUse(KvlabError):
    """A cache that already holds tokens was offered for a new prompt."""


class ModelUnavailable(KvlabError):
    """A model is not on this machine and cannot be had now; the message says what to do."""


class NotVerified(KvlabError):
    """A file does not have the size or the hash that it should have."""


class UnsafeCheckpoint(KvlabError):
    """A checkpoint would run code when read (pickle, remote code); kvlab refuses it."""


class Unsupported(KvlabError, NotImplementedError):
    """A cache or model cannot do this; the message says why."""


_MEMORY_WORDS = ("cannot allocate memory", "can't allocate memory", "out of memory")


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether Python, the system or torch says that memory ran out; torch has no one type.

    >>> is_out_of_memory(MemoryError()), is_out_of_memory(RuntimeError("shapes differ"))
    (True, False)
    """
    said = isinstance(error, RuntimeError) and any(
        words in str(error).lower() for words in _MEMORY_WORDS
    )
    return said or isinstance(error, MemoryError)


def shorten(value: object, limit: int = 80) -> str:
    """Return `repr(value)`, its middle cut out so that an error stays one line.

    The end stays because in a path it is the file's name.

    >>> shorten("abcdefghijklmnopqrstuvwxyz", limit=10)
    "'abcd...wxyz'"
    """
    text = repr(value).replace("\n", " ")
    half = limit // 2
    return text if len(text) <= limit else f"{text[:half]}...{text[-half:]}"
