"""The race: two ways of writing the same text, live, side by side.

The lanes take turns on one machine, and each has its own clock, which counts only the seconds of
its own steps; the lane whose clock is behind goes next. So the columns move as they would if each
had the machine to itself. No step is counted or timed here: the steps bring their numbers.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kvlab.figures.race import Lane
from kvlab.figures.race import race as race_picture
from kvlab.widgets.base import Frame, Panel
from kvlab.widgets.controls import button
from kvlab.widgets.race_lane import StepLike, advanced, verdict

_REDRAW_SECONDS = 0.04


class Race(Panel):
    """A race of generators; `start()` and `stop()` are its buttons, `run()` runs it to its end.

    `lanes` maps the name of a column to a function that starts its generator afresh; `decode`
    turns token ids into text. `token_ids` holds what each lane has emitted, `steps` all that its
    generator yielded; a new start begins new ones and leaves those handed out alone.
    """

    def __init__(
        self,
        lanes: Mapping[str, Callable[[], Iterator[StepLike]]],
        *,
        decode: Callable[[Sequence[int]], str],
        max_new_tokens: int,
        prompt: str = "",
        title: str = "",
        roles: Sequence[str] = ("wasted", "value"),
        scale: float = 1.0,
    ) -> None:
        self.starts, self.decode = dict(lanes), decode
        self.prompt, self.title, self.scale = prompt, title, scale
        self.fresh = {
            name: Lane(name, max_new_tokens=max_new_tokens, role=roles[i % len(roles)])
            for i, name in enumerate(self.starts)
        }
        self.buttons = {
            "start": button("start the race", self.start),
            "stop": button("stop", self.stop),
        }
        self.controls = dict(self.buttons)
        super().__init__("race", list(self.buttons.values()))
        self._task: Any = None
        self._clear()

    def _clear(self, *, running: bool = False) -> None:
        state = "running" if running else "ready"
        self.lanes = {name: replace(lane, state=state) for name, lane in self.fresh.items()}
        self.token_ids: dict[str, list[int]] = {name: [] for name in self.starts}
        self.steps: dict[str, list[Any]] = {name: [] for name in self.starts}
        self._stopping, self._running = False, running
        self._draw()

    @property
    def running(self) -> bool:
        """Whether the race is under way."""
        return self._running

    def start(self) -> None:
        """Run the race while the notebook stays alive; without an event loop, run it at once."""
        if self.running:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.run()
            return
        self._clear(running=True)
        self._task = loop.create_task(self._run_alive())

    def stop(self) -> None:
        """Ask a race under way to stop after the present token; it can be started again."""
        self._stopping = self._running

    def run(self) -> "Race":
        """Run the race to its end and return it; an interrupt stops it and keeps what is there."""
        try:
            for _ in self._turns():
                pass
        except KeyboardInterrupt:
            self._halt()
        return self

    def show(self) -> None:
        """Display the race, run it, and leave its last state in the cell's output."""
        from IPython.display import display

        handle = display(self, display_id=True)
        self.run()
        if handle is not None:
            handle.update(self)

    async def _run_alive(self) -> None:
        for _ in self._turns():
            await asyncio.sleep(0)

    def _turns(self) -> Iterator[None]:
        """Yield after each token; the lane whose own clock is behind goes next."""
        self._clear(running=True)
        steps = {name: start() for name, start in self.starts.items()}
        racing, failure = list(steps), None
        try:
            while racing and not self._stopping:
                name = min(racing, key=lambda n: self.lanes[n].seconds)
                if not self._advance(name, steps[name]):
                    racing.remove(name)
                self._draw_soon()
                yield
        except Exception as error:
            failure = error
        finally:
            for generator in steps.values():
                getattr(generator, "close", lambda: None)()
            self._halt()
        if failure is not None:
            self.show_error(failure)

    def _advance(self, name: str, steps: Iterator[StepLike]) -> bool:
        step = next(steps, None)
        lane = self.lanes[name]
        if step is None:
            self.lanes[name] = replace(lane, state="finished")
            return False
        self.token_ids[name].append(step.token_id)
        self.steps[name].append(step)
        self.lanes[name] = advanced(lane, step, self.decode(self.token_ids[name]))
        return True

    def _halt(self) -> None:
        for name, lane in self.lanes.items():
            if lane.state == "running":
                self.lanes[name] = replace(lane, state="stopped")
        self._running = self._stopping = False
        self._draw()

    def _draw_soon(self) -> None:
        if time.monotonic() - self._drawn >= _REDRAW_SECONDS:
            self._draw()

    def _draw(self) -> None:
        self._drawn = time.monotonic()
        verdict = self.verdict()
        picture = race_picture(
            list(self.lanes.values()),
            prompt=self.prompt,
            verdict=verdict,
            title=self.title,
            scale=self.scale,
        )
        numbers = {name: lane.state for name, lane in self.lanes.items()}
        numbers |= {"verdict": verdict} if verdict else {}
        self.show_frame(Frame(picture, numbers, numbers_in_picture=True))
        self.buttons["start"].disabled = self._running
        self.buttons["stop"].disabled = not self._running

    def verdict(self) -> str:
        """Return, once every lane has finished, whether the texts are the same and the speeds."""
        return verdict(list(self.lanes.values()), list(self.token_ids.values()))


def race(
    lanes: Mapping[str, Callable[[], Iterator[StepLike]]],
    *,
    decode: Callable[[Sequence[int]], str],
    max_new_tokens: int,
    **options: Any,
) -> Race:
    """Return a race, ready to start; `options` are prompt, title, roles and scale.

    `race({"recompute": start_one, "keep": start_other}, decode=text, max_new_tokens=32).show()`
    runs it in the cell; as the last line of a cell it waits for its button.
    """
    return Race(lanes, decode=decode, max_new_tokens=max_new_tokens, **options)
