"""The protocol: what is a cache, and that knowing it costs nothing."""

import subprocess
import sys
from typing import Any

import pytest

from kvlab.cache import KVCacheProtocol, wants_weights


@pytest.mark.parametrize("name", ["growing", "preallocated", "dynamic", "static", "fp8"])
def test_our_caches_and_those_of_transformers_keep_the_protocol(name: str, new_cache: Any) -> None:
    cache = new_cache(name)
    assert isinstance(cache, KVCacheProtocol)
    assert not wants_weights(cache)


def test_a_list_is_not_a_cache() -> None:
    assert not isinstance([], KVCacheProtocol)


def test_the_protocol_imports_neither_torch_nor_transformers() -> None:
    code = (
        "import sys, kvlab.cache, kvlab.cache.protocol;"
        "print(sorted({'torch', 'transformers'} & set(sys.modules)))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"


def test_every_public_name_of_the_room_can_be_imported() -> None:
    import kvlab.cache

    for name in kvlab.cache.__all__:
        assert getattr(kvlab.cache, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'paper'"):
        _ = kvlab.cache.paper
