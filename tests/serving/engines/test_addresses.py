"""An address that is none is said in plain words, and no password is repeated."""

import pytest

from kvlab.errors import InvalidArgument
from kvlab.serving.engines.endpoint import Endpoint


@pytest.mark.parametrize(
    "url",
    [
        "http://me:secret@127.0.0.1:abc",
        "ftp://me:secret@h/",
        "http://h/x?token=secret",
        "http://h/x#secret",
        "me:secret@h",
        "http://me:se?secret@h/secret",
        "http://me:x/secret@h",
        "http://h?a=b@secret",
        "http://h:0?secret",
    ],
)
def test_no_secret_of_an_address_is_repeated(url: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        Endpoint(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("http://127.0.0.1:0", "127.0.0.1:0': is no address: a port is a number from 1 to 65,535"),
        ("http://a..b:1", "is no host name"),
        ("http://a\x00b", "is no host name"),
        (5, "must be text"),
    ],
)
def test_a_host_or_port_that_is_none_is_said_plainly(url: str, rule: str) -> None:
    with pytest.raises(InvalidArgument, match=rule):
        Endpoint(url)


@pytest.mark.parametrize("timeout", [float("inf"), float("nan"), 1e10, 1e300, 0, -1, True, "5"])
def test_a_timeout_is_a_finite_number_of_seconds(timeout: float) -> None:
    with pytest.raises(InvalidArgument, match=r"timeout=.*at most 3,600"):
        Endpoint("http://host", timeout=timeout)
