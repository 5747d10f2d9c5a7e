"""The training loop: one function for a step, one for the run.

The loss is on the answers alone; everything else in a sequence is random and teaches nothing.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
import torch.nn.functional as F

from kvlab.model.train_plan import (
    CURRICULUM,
    PASS_WINDOW,
    Stage,
    batch_for,
    learning_rate_at,
)
from kvlab.model.train_state import TrainState

LOG_EVERY = 10
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
    stage, batch = batch_for(state.step, state.stage_index, state.settings)
    rate = learning_rate_at(state.step, state.settings)
    for group in state.optimizer.param_groups:
        group["lr"] = rate
    device = state.settings.device
    answers = torch.from_numpy(batch.answers).to(device)  # (rows, num_questions)
    logits = state.model(torch.from_numpy(batch.input_ids).to(device))
    logits = logits[:, batch.answer_positions - 1]  # (rows, num_questions, vocab_size)
    loss = F.cross_entropy(logits.flatten(0, 1), answers.flatten())
    recall = float((logits.argmax(-1) == answers).float().mean())
    state.optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(state.model.parameters(), 1.0)
    state.optimizer.step()
    _note(state, stage, loss.item(), recall, rate)


def _note(state: TrainState, stage: Stage, loss: float, recall: float, rate: float) -> None:
    """Log the step where it is due, count it, and move up the curriculum when recall is there."""
    if stage == CURRICULUM[state.stage_index]:
        state.recent = [*state.recent, recall][-PASS_WINDOW:]
    passed = (
        len(state.recent) == PASS_WINDOW
        and sum(state.recent) / PASS_WINDOW >= state.settings.pass_recall
        and state.stage_index + 1 < len(CURRICULUM)
    )
    if passed or state.step % LOG_EVERY == 0 or state.step + 1 == state.settings.steps:
        state.log.append(
            {
                "step": state.step,
                "num_facts": stage.num_facts,
                "seq_len": stage.seq_len,
                "loss": round(loss, 4),
                "recall": round(recall, 4),
                "learning_rate": round(rate, 6),
                "passed": passed,
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
