"""What is read in a measurement: the same task for the same arguments, refusals by name."""

import pytest
import torch
from tiny_folder import write_folder

from kvlab.errors import InvalidArgument
from kvlab.model.load import LoadedModel, load_model
from kvlab.model.quality_task import budget_tokens, make_task
from kvlab.model.retrieval import make_sequences
from kvlab.model.sample_text import prose


@pytest.fixture(scope="module")
def tiny() -> LoadedModel:
    """The bundled model, which reads facts and questions."""
    return load_model("tiny", device="cpu")


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    """A small untrained model with a vocabulary of its own, which reads prose."""
    return load_model(write_folder(tmp_path_factory.mktemp("models") / "reader"), device="cpu")


def test_the_default_task_is_512_tokens_with_32_facts(tiny: LoadedModel) -> None:
    task = make_task(tiny)
    drawn = make_sequences(16, seq_len=512, num_facts=32, seed=(1_000_000, 0))
    assert torch.equal(task.input_ids, torch.from_numpy(drawn.input_ids))
    assert (task.tokens, task.context_len, task.steps, task.batches) == (512, 416, 96, 1)


def test_graded_are_the_answers_at_the_step_that_says_them(tiny: LoadedModel) -> None:
    task = make_task(tiny, tokens=64, facts=4, num_sequences=3)
    steps, answers = task.graded()
    drawn = make_sequences(3, seq_len=64, num_facts=4, seed=(1_000_000, 0))
    assert torch.equal(answers, torch.from_numpy(drawn.answers))
    asked = task.input_ids[:, task.context_len + steps]  # the name: its answer comes next
    facts = torch.from_numpy(drawn.fact_positions).gather(1, torch.from_numpy(drawn.asked))
    assert torch.equal(asked, task.input_ids.gather(1, facts))


def test_a_seed_gives_the_same_task_and_another_seed_another(tiny: LoadedModel) -> None:
    first, again, other = (make_task(tiny, tokens=64, facts=4, seed=s) for s in (3, 3, 4))
    assert torch.equal(first.input_ids, again.input_ids)
    assert not torch.equal(first.input_ids, other.input_ids)


def test_many_sequences_come_in_batches_of_few_enough(tiny: LoadedModel) -> None:
    task = make_task(tiny, tokens=2048, facts=2, num_sequences=6)
    assert [len(part.input_ids) for part in task] == [4, 2]
    assert torch.equal(torch.cat([part.input_ids for part in task]), task.input_ids)


def test_prose_is_read_in_rows_spread_over_our_text(reader: LoadedModel) -> None:
    task = make_task(reader, tokens=40, num_sequences=3)
    whole = reader.encode(prose())[0]
    assert torch.equal(task.input_ids[0], whole[:40])
    assert torch.equal(task.input_ids[2], whole[-40:])
    assert (task.context_len, task.seed, task.answer_positions) == (30, None, None)
    steps, targets = task.graded()
    assert steps.tolist() == list(range(9))
    assert torch.equal(targets, task.input_ids[:, 31:])


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"tokens": 100}, "tokens=100: 32 facts and their questions need 161 tokens or more"),
        ({"tokens": 5000}, "tokens=5000: tiny has 4,096 positions"),
        ({"facts": 0}, "facts=0: must be a whole number of 1 or more"),
        ({"facts": 129}, "there are 128 names|129 facts and their questions"),
        ({"seed": -1}, "seed=-1: must be a whole number of 0 or more"),
        ({"num_sequences": 0}, "num_sequences=0: must be a whole number of 1 or more"),
    ],
)
def test_counts_that_do_not_fit_are_refused(
    tiny: LoadedModel, changes: dict[str, int], sentence: str
) -> None:
    with pytest.raises(InvalidArgument, match=sentence):
        make_task(tiny, **changes)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"facts": 4}, "facts=4: facts are for the retrieval language"),
        ({"tokens": 7}, "tokens=7: must be 8 or more"),
        ({"tokens": 10**6}, "tokens=1000000: .* positions"),
        ({"tokens": 16, "num_sequences": 0}, "num_sequences=0"),
    ],
)
def test_prose_has_rules_of_its_own(
    reader: LoadedModel, changes: dict[str, int], sentence: str
) -> None:
    with pytest.raises(InvalidArgument, match=sentence):
        make_task(reader, **changes)


@pytest.mark.parametrize(
    ("budget", "tokens"),
    [("25%", 128), ("12%", 61), ("12.5 %", 64), ("100%", 512), ("7", 7), (9, 9), ("600", 600)],
)
def test_a_budget_is_tokens_or_a_share(budget: str | int, tokens: int) -> None:
    assert budget_tokens(budget, 512) == tokens


@pytest.mark.parametrize("budget", ["", "%", "0", "0%", "-5", "-5%", "1.5", "many", "nan%", 0, 2.5])
def test_a_budget_that_is_neither_is_refused(budget: str | int) -> None:
    with pytest.raises(InvalidArgument, match="budget="):
        budget_tokens(budget, 512)


@pytest.mark.parametrize("budget", ["250%", "101 %", "100.01%"])
def test_a_share_of_more_than_all_is_refused(budget: str) -> None:
    with pytest.raises(InvalidArgument, match=r"is more than all tokens: 100% or less"):
        budget_tokens(budget, 512)
