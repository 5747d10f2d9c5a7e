"""A demo served from a thread of its own, as a browser or a client of ours sees it."""

import asyncio
import threading

from kvlab.demo.registry import find_demo
from kvlab.demo.server import DemoServer
from kvlab.demo.session import Session


class Served:
    """A running server and its session; everything of theirs happens on the thread's loop."""

    def __init__(self, name: str) -> None:
        self.session = Session(find_demo(name))
        self.ready, self.loop = threading.Event(), asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        assert self.ready.wait(20)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_until_complete(self._serve())
        self.loop.close()

    async def _serve(self) -> None:
        self.server, self.stop = DemoServer(self.session), asyncio.Event()
        self.ready.set()
        await self.stop.wait()
        await self.server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.stop.set)
        self.thread.join(20)
        assert not self.thread.is_alive()
