"""Looks at a server as a picture: who runs and waits, the pool, preemptions, times to wait."""

from collections.abc import Sequence

from kvlab.figures.serving_timeline import Gauge, Track, serving_timeline
from kvlab.figures.svg import Picture
from kvlab.serving.watch import Look

READING = (
    "Top to bottom: who runs and who waits, the share of blocks in use, preemptions so far, and "
    "how long half (p50) and 19 of 20 (p95) waited for their first token."
)


def serving_tracks(
    looks: Sequence[Look],
    *,
    now: int | None = None,
    by_step: bool = False,
    times: bool = True,
    title: str = "",
    reading: str = READING,
    scale: float = 1.0,
) -> Picture:
    """Return the tracks of a run; `now` is the 0-based look to stand at, None for the last.

    `by_step` puts steps on the axis in place of seconds; without `times` the last track is left
    out.

    >>> serving_tracks([Look(1, 0.5, running=3), Look(2, 1.0, running=2)], times=False).label
    'A server at 1 seconds: running 2, waiting 0, in use 0 %, so far 0.'
    """
    tracks = [
        Track(
            "requests",
            [
                Gauge("running", [seen.running for seen in looks], "value"),
                Gauge("waiting", [seen.waiting for seen in looks], "wasted", "dashed"),
            ],
        ),
        Track(
            "blocks of the pool, %",
            [Gauge("in use", [100 * seen.block_use for seen in looks], "query")],
            top=100.0,
            unit="%",
        ),
        Track("preemptions", [Gauge("so far", [seen.preemptions for seen in looks], "wasted")]),
    ]
    if times:
        half, most = ([getattr(seen, name) for seen in looks] for name in ("ttft_p50", "ttft_p95"))
        gauges = [Gauge("p50", half, "key"), Gauge("p95", most, "key", "dotted")]
        tracks.append(Track("time to first token so far, s", gauges, unit="s"))
    axis = [seen.step if by_step else seen.seconds for seen in looks]
    name = "steps" if by_step else "seconds"
    return serving_timeline(
        axis, tracks, now=now, axis=name, title=title, reading=reading, scale=scale
    )
