"""Made-up token ids become ids of a real vocabulary, so that our workloads can go to any engine.

What two requests shared they still share, and what was one request's own stays so, as far as the
vocabulary goes.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kvlab.arithmetic.checks import whole_number
from kvlab.serving.request import Request
from kvlab.serving.workloads import OWN_IDS

FIRST_ID = 16
"""Lower ids are left out: tokenizers keep their marks there, such as the end of a text."""

_ODD, _MASK = 0x9E3779B97F4A7C15, (1 << 64) - 1


def real_id(made_up: int, vocab_size: int) -> int:
    """Return a token id of the vocabulary for a made-up one; always the same for the same.

    >>> real_id(5, 49152) == real_id(5, 49152), 16 <= real_id(1 << 40, 49152) < 49152
    (True, True)
    """
    mixed = (made_up * _ODD) & _MASK
    mixed ^= mixed >> 29
    mixed = (mixed * 0xBF58476D1CE4E5B9) & _MASK
    return FIRST_ID + (mixed >> 31) % (vocab_size - FIRST_ID)


def with_real_ids(requests: Iterable[Request], vocab_size: int) -> Iterator[Request]:
    """Yield the requests with prompts that a model of `vocab_size` tokens can read.

    A prompt that is known by its length alone becomes text of its own.

    >>> from kvlab.serving.workloads import with_system_prompt
    >>> asked = with_system_prompt(2, system_tokens=48, user_tokens=10, output_tokens=5)
    >>> first, second = [request.prompt_ids for request in with_real_ids(asked, 49152)]
    >>> first[:48] == second[:48], first[48:] == second[48:]
    (True, False)
    """
    whole_number("vocab_size", vocab_size, minimum=FIRST_ID + 2)
    for request in requests:
        ids = request.prompt_ids
        if ids is None:
            start = (request.request_id + 1) * OWN_IDS
            ids = range(start, start + request.prompt_tokens)
        yield replace(request, prompt_ids=[real_id(number, vocab_size) for number in ids])
