"""Times to bring a cache back, by hand, and against the prefill in its place."""

import pytest

from kvlab.arithmetic.tier_times import LINKS, tier_times
from kvlab.errors import InvalidArgument


def test_50_000_tokens_of_70b_are_16_4_gb_and_their_times_are_bytes_over_rates() -> None:
    times = tier_times("llama-3.1-70b", tokens=50_000, gpu="H100", tp=8)
    assert times.num_bytes == 50_000 * 327_680 == 16_384_000_000
    for row in times.rows:
        links = 8 if row.link.per_rank else 1
        assert row.seconds == pytest.approx(times.num_bytes / row.link.bytes_per_second / links)
        assert row.speedup == pytest.approx(times.prefill_seconds / row.seconds)
    # linear and attention work of the prompt and one LM head, over eight times 989 TFLOP/s
    flops = 1.012197e16 + 2 * 8192 * 128_256
    assert times.prefill_seconds == pytest.approx(flops / (8 * 989e12), rel=1e-3)


def test_one_link_takes_eight_times_as_long_as_eight() -> None:
    eight = tier_times("llama-3.1-70b", tokens=50_000, gpu="H100", tp=8)
    one = tier_times("llama-3.1-70b", tokens=50_000, gpu="H100", tp=8, links=1)
    by_name = {row.link.name: row.seconds for row in one.rows}
    assert by_name["host memory over PCIe 5.0 x16"] == pytest.approx(0.256)
    assert by_name["host memory over PCIe 4.0 x16"] == pytest.approx(0.512)
    for row in eight.rows:
        factor = 8 if row.link.per_rank else 1
        assert by_name[row.link.name] == pytest.approx(factor * row.seconds)


def test_whether_a_drive_is_worth_asking_depends_on_the_gpus_and_the_drives() -> None:
    def drive(**layout: int) -> float:
        times = tier_times("llama-3.1-70b", tokens=50_000, gpu="H100", **layout)
        return next(row.speedup for row in times.rows if "drive" in row.link.name)

    assert drive(tp=8) < 1 < drive(tp=1)  # eight GPUs compute again sooner than one drive reads
    assert drive(tp=8, drives=4) > 1


def test_at_the_break_even_rate_fetching_takes_as_long_as_computing() -> None:
    times = tier_times("llama-3.1-8b", tokens=10_000, gpu="A100")
    assert times.num_bytes / times.break_even_bytes_per_second == pytest.approx(
        times.prefill_seconds
    )


def test_every_link_says_where_its_rate_is_from() -> None:
    assert len(LINKS) == 5 and all(link.source and link.bytes_per_second > 0 for link in LINKS)
    rates = [link.bytes_per_second / 1e9 for link in LINKS]
    assert rates == [64, 32, 16, 8, 7.45]


@pytest.mark.parametrize("name", ["tokens", "drives"])
def test_counts_below_one_are_refused(name: str) -> None:
    arguments = {"tokens": 10, "gpu": "H100", name: 0}
    with pytest.raises(InvalidArgument):
        tier_times("llama-3.1-8b", **arguments)
