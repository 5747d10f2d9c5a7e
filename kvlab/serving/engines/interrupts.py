"""Ctrl+C while requests are open: their connections are cut first, so nobody waits for answers."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from kvlab.serving.engines.endpoint import Endpoint


@contextmanager
def cut_on_interrupt(endpoint: Endpoint) -> Iterator[None]:
    """Cut the endpoint's requests when an interrupt comes, then do what was done with it before.

    Only the main thread hears interrupts: elsewhere, and where it is ignored, nothing changes.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    old = before

    def heard(number: int, frame: FrameType | None) -> None:
        endpoint.cut()
        old(number, frame)

    signal.signal(signal.SIGINT, heard)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
