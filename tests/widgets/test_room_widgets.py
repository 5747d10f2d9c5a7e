"""The widgets made for a room: the toy's race, two allocators side by side, a bar with a guess."""

import pytest

from kvlab.arithmetic.flops import token_forwards_cached, token_forwards_uncached
from kvlab.arithmetic.plan_deployment import Deployment
from kvlab.arithmetic.roofline import Device, time_decode
from kvlab.arithmetic.sizing import plan
from kvlab.errors import InvalidArgument
from kvlab.figures.bar_parts import Marker, Segment
from kvlab.figures.guess_bar import guess_bar
from kvlab.model.toy_race import lane_at, toy_beats
from kvlab.paging import BlockManager
from kvlab.paging.stream import make_stream, run_stream
from kvlab.serving.step_clock import StepClock
from kvlab.serving.stream_speed import stream_speed
from kvlab.widgets.allocation_race import STREAMS, allocation_race, race_steps
from kvlab.widgets.allocator_show import allocator_show
from kvlab.widgets.memory_guess import EXAMPLE, memory_guess
from kvlab.widgets.memory_guess_frame import GHOSTS, TABLE, guessed_bytes, head_choices
from kvlab.widgets.planner_inputs import TWIN
from kvlab.widgets.toy_race import PROMPTS, toy_race


@pytest.mark.parametrize("prompt", PROMPTS)
def test_the_beats_of_the_toy_are_the_token_forwards_of_the_formula(prompt: str) -> None:
    new = 8 - len(prompt)
    counts = [len(toy_beats(prompt, new, cached=cached)) for cached in (False, True)]
    sizes = len(prompt), new
    assert counts == [token_forwards_uncached(*sizes), token_forwards_cached(*sizes)]
    letters = ["".join(b.emits for b in toy_beats(prompt, new, cached=c)) for c in (False, True)]
    assert letters[0] == letters[1] == "ABCDEFGH"[len(prompt) :]


def test_a_lane_counts_the_cells_that_it_draws() -> None:
    beats = toy_beats("AB", 6, cached=False)
    for count in range(len(beats) + 1):
        lane = lane_at(beats, count, cached=False)
        cells = [state for row in lane.rows for state in row]
        assert (cells.count("now") + cells.count("again"), cells.count("again")) == (
            lane.forwards,
            lane.again,
        )
        assert lane.kept == 0 and "read" not in cells
    assert lane.finished and lane.forwards == 27


def test_another_prompt_has_its_own_number_of_beats_and_the_race_can_be_reset() -> None:
    show = toy_race()
    show.set(prompt="ABCD")
    assert show.controls["step"].max == token_forwards_uncached(4, 4)
    show.go(99)
    assert show.numbers["recompute: state"] == show.numbers["remember: state"] == "finished"
    assert "The same letters" in show.picture.value
    show.reset()
    assert show.numbers["recompute: state"] == "ready" and show.values["prompt"] == "AB"


def test_the_speed_of_a_stream_is_that_of_the_roofline() -> None:
    one, device = Deployment.of("llama-2-13b"), Device.of("A100 40GB")
    stream = make_stream(5, mean_prompt=64, mean_output=8, spread=0, every=1)
    steps = [*run_stream(BlockManager(64, 16), stream)]
    for step in steps:
        lengths = {piece.filled for piece in step.pieces}
        if len(step.running) and len(lengths) == 1:  # all alike: the roofline takes one context
            (held,) = {sum(p.filled for p in step.pieces) // len(step.running)}
            due = time_decode(one, device, context=held, batch=len(step.running))
            found = stream_speed(step, StepClock(one, device))
            assert found == pytest.approx(due.tokens_per_second)
    assert stream_speed(steps[-1], StepClock(one, device)) == 0.0


@pytest.mark.parametrize("lengths", STREAMS)
def test_the_show_counts_what_the_race_counts(lengths: str) -> None:
    show, race = allocator_show(), allocation_race()
    for one in (show, race):
        one.set(lengths=lengths)
        one.to_refusal(1)
    for big, small in (("one piece each", "contiguous"), ("blocks", "paged")):
        assert show.numbers[f"{big}: running"] == race.numbers[f"{small}: running batch"]
        assert (
            show.numbers[f"{big}: of slots wasted"]
            == race.numbers[f"{small}: waste of slots taken"]
        )
    assert show.refusals()[1] == show.controls["step"].value
    assert len(race_steps(lengths, "max", 16)[0]) > show.refusals()[0]


def test_the_bar_tells_nothing_before_the_class_has_looked() -> None:
    show = memory_guess(guess="20 GB")
    assert show.numbers == {} and "34.4 GB" not in show.picture.value
    assert "guess: 20 GB" in show.picture.value and show.buttons["reveal"].description == "reveal"
    show.reveal()
    assert show.numbers["all caches"] == "32.00 GiB (34.36 GB)" and "34.4 GB" in show.picture.value
    assert show.buttons["reveal"].description == "hide"
    show.reset()
    assert show.numbers == {} and show.values["guess"] == "20 GB"


def test_the_users_that_fit_are_those_of_the_planner() -> None:
    show = memory_guess(users=0, shown=True, context=32_768)
    for model, tp, kv_heads in (
        ("meta-llama/Llama-3.1-70B", 4, 0),
        ("meta-llama/Llama-3.1-8B", 2, 1),
    ):
        show.set(model=model, tp=tp, num_kv_heads=kv_heads)
        made = plan(model, gpu="H100", gpus=tp, tp=tp, context=32_768, utilization=1)
        if not kv_heads:
            assert show.numbers["users that fit"] == f"{made.admission_bound:,}"
        else:
            assert "1 KV heads" in show.picture.value


def test_a_model_brings_its_own_kv_heads() -> None:
    assert head_choices(TWIN)[0] == ("1, as made", 0)
    assert head_choices("deepseek-ai/DeepSeek-V2-Lite") == (("as made", 0),)
    show = memory_guess(num_kv_heads=1)
    show.controls["model"].value = "deepseek-ai/DeepSeek-V2-Lite"
    assert show.values["num_kv_heads"] == 0 and show.error.value == ""


@pytest.mark.parametrize(
    ("typed", "counts_users", "size"),
    [
        ("92", True, 92 * 7), ("92 users", False, 92 * 7), ("1 user", True, 7),
        ("20", False, 20 * 10**9), ("20 GiB", True, 20 * 2**30), ("1,000 users", True, 7000),
        ("9" * 40, True, 10**15),
    ],
)  # fmt: skip
def test_a_guess_is_read_as_users_or_as_bytes(typed: str, counts_users: bool, size: int) -> None:
    assert guessed_bytes(typed, 7, counts_users=counts_users) == size


def test_what_is_no_guess_and_no_control_is_said() -> None:
    with pytest.raises(InvalidArgument, match="guess='many': must be a number such as"):
        guessed_bytes("many", 7, counts_users=True)
    with pytest.raises(InvalidArgument, match="control='zoom': must be one of model"):
        memory_guess(zoom=2)


def test_the_published_ghost_stands_only_where_the_table_has_a_row() -> None:
    show = memory_guess(model="meta-llama/Meta-Llama-3-8B", ghost=TABLE, users=1, context=131_072)
    assert "published: 8.6 GB" in show.picture.value and GHOSTS[1] == TABLE
    show.controls["context"].value = 65_536
    assert "published" not in show.picture.value
    show.set(context=131_072, model=EXAMPLE["model"])
    assert "published" not in show.picture.value


def test_a_ghost_longer_than_the_gpu_shows_where_the_gpu_ends() -> None:
    part = Segment("weights", 16 * 10**9)
    bar = guess_bar([part], capacity=80 * 10**9, guess=Marker("guess", 300 * 10**9))
    assert "the GPU ends here: 80.0 GB" in bar and bar.label.endswith("Guess, 300 GB.")
    assert "ends here" not in guess_bar([part], capacity=80 * 10**9, guess=Marker("guess", 10**9))
    assert guess_bar([part], capacity=10**9).label.endswith("It does not fit.")
