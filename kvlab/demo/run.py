"""Run a demo in a terminal until it is told to stop: Ctrl+C, SIGTERM, or the terminal closed."""

import asyncio
import contextlib
import os
import signal
import sys
import webbrowser
from collections.abc import Callable, Iterator, Mapping
from types import FrameType

from kvlab.demo.server import DemoServer
from kvlab.demo.session import Session
from kvlab.demo.stages import Demo

SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


def run_demo(demo: Demo, *, port: int = 0, browser: bool = True) -> None:
    """Serve a demo and return when it was stopped; the port is free again then.

    Raises `InvalidArgument` where the port can't be had.
    """
    asyncio.run(_serve(demo, port=port, browser=browser))


async def _serve(demo: Demo, *, port: int, browser: bool) -> None:
    server = DemoServer(Session(demo), port=port)
    try:
        say(f"{demo.title}: {server.address}")
        say("It is open to this machine alone. Ctrl+C stops it.")
        stop = asyncio.Event()
        with stopped_by_signals(asyncio.get_running_loop(), stop):
            if browser and has_screen(os.environ, sys.platform):
                webbrowser.open(server.address)
            await stop.wait()
    finally:
        await server.close()
    say(f"Stopped; port {server.port} is free again.")


def say(line: str) -> None:
    """Print a line at once; a terminal that is gone is no reason to fail."""
    with contextlib.suppress(OSError, ValueError):
        print(line, flush=True)


@contextlib.contextmanager
def stopped_by_signals(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> Iterator[None]:
    """Set `stop` at the first signal; at a second one, while something long runs, interrupt it.

    A signal that was ignored from the start stays so: `nohup` keeps its meaning.
    """
    asked = False

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        loop.call_soon_threadsafe(stop.set)

    before: dict[signal.Signals, Callable | int | None] = {}
    for one in SIGNALS:
        if signal.getsignal(one) is not signal.SIG_IGN:
            before[one] = signal.signal(one, on_signal)
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def has_screen(environ: Mapping[str, str], platform: str) -> bool:
    """Return whether a window can be opened here; a terminal's text browser does not count.

    >>> has_screen({}, "linux"), has_screen({}, "darwin")
    (False, True)
    """
    if not platform.startswith("linux"):
        return True
    return any(environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
