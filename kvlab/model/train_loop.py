"""The training loop: one function for a step, one for the run.

The loss is on the answers alone; everything else in a sequence is random and teaches nothing.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
import torch.nn.functional as F

from kvlab.model.retrieval import recall
from kvlab.model.train_plan import PASS_WINDOW, batch_for, learning_rate_at
from kvlab.model.train_recipes import Stage
from kvlab.model.train_state import TrainState

PROBE_SEQUENCES, PROBE_SEED = 8, 2_000_000
Watch = Callable[[TrainState], None]


def run_steps(
    state: TrainState, folder: Path, *, checkpoint_every: int, watch: Watch | None = None
) -> None:
    """Run the steps that are left, with a checkpoint every so many; `watch` is called after each.

    The state's thread count holds while it runs, for sums are rounded as threads share them.
    """
    with _threads(state.settings.threads):
        while state.step < state.settings.steps:
            began = time.perf_counter()
            train_step(state)
            state.seconds += time.perf_counter() - began
            if state.step % checkpoint_every == 0:
                state.save(folder)
            if watch is not None:
                watch(state)


def train_step(state: TrainState) -> None:
    """Do one step: a fresh batch, its recall before the update, the update, the curriculum."""
    probe = _probe(state)
    stage, batch = batch_for(state.step, state.stage_index, state.settings)
    rate = learning_rate_at(state.step, state.settings)
    for group in state.optimizer.param_groups:
        group["lr"] = rate
    device = state.settings.device
    answers = torch.from_numpy(batch.answers).to(device)  # (rows, num_questions)
    logits = state.model(torch.from_numpy(batch.input_ids).to(device))
    logits = logits[:, batch.answer_positions - 1]  # (rows, num_questions, vocab_size)
    loss = F.cross_entropy(logits.flatten(0, 1), answers.flatten())
    found = float((logits.argmax(-1) == answers).float().mean())
    state.optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(state.model.parameters(), 1.0)
    state.optimizer.step()
    _note(state, stage, probe, loss=loss.item(), recall=found, learning_rate=rate)


def _probe(state: TrainState) -> dict[str, float]:
    """Return recall at 512 tokens, always on the same sequences, where the recipe wants it now.

    A stage's own recall can't be compared from run to run, for runs pass stages at other steps.
    """
    every = state.settings.plan.probe_every
    if not every or state.step % every:
        return {}
    found = recall(state.model, num_sequences=PROBE_SEQUENCES, seed=PROBE_SEED)
    return {"probe": round(found, 4)}


def _note(state: TrainState, stage: Stage, probe: dict[str, float], **measured: float) -> None:
    """Log the step where it is due, count it, and move up the curriculum when recall is there."""
    plan = state.settings.plan
    if stage == plan.stages[state.stage_index]:
        state.recent = [*state.recent, measured["recall"]][-PASS_WINDOW:]
    passed = (
        len(state.recent) == PASS_WINDOW
        and sum(state.recent) / PASS_WINDOW >= state.settings.pass_recall
        and state.stage_index + 1 < len(plan.stages)
    )
    last = state.step + 1 == state.settings.steps
    if passed or probe or last or state.step % plan.log_every == 0:
        state.log.append(
            {
                "step": state.step,
                "num_facts": stage.num_facts,
                "seq_len": stage.seq_len,
                "loss": round(measured["loss"], 4),
                "recall": round(measured["recall"], 4),
                "learning_rate": round(measured["learning_rate"], 6),
                "passed": passed,
                **probe,
            }
        )
    state.step += 1
    if passed:
        state.stage_index, state.recent = state.stage_index + 1, []


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
