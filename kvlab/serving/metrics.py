"""What a server measures while it works, under the names of vLLM's metrics endpoint.

Sums, and two or three numbers for each request (8 bytes each): nothing grows with the steps.
"""

from collections import Counter

from kvlab.serving.quantiles import Quantiles
from kvlab.serving.scheduler import Scheduler
from kvlab.serving.sequence import FINISHED, Sequence

DONE = "finished"
KEPT_ERRORS = 20
"""Errors are counted by kind; the words of the first ones are kept."""


class Metrics:
    """Everything that one scheduler did, in the time of whoever drives it.

    A gauge, such as the batch, is weighted by the seconds for which it held; `busy_seconds` are
    those of all steps. Times to the first token start at the arrival of the request.
    """

    def __init__(self) -> None:
        self.ttft, self.tpot, self.queue_time = Quantiles(), Quantiles(), Quantiles()
        self.requests: Counter[str] = Counter()
        self.errors: list[str] = []
        self.num_errors = 0
        self.tokens_delivered = 0
        self.peak_running = self.peak_waiting = 0
        self.busy_seconds = self.batch_seconds = self.waiting_seconds = self.block_seconds = 0.0
        self.makespan = 0.0
        self._broken: dict[int, str] = {}  # live requests of which a sample did not finish

    def saw_steps(self, scheduler: Scheduler, seconds: float) -> None:
        """Count a step, or several that are alike, after the last of them."""
        waiting = len(scheduler.waiting)
        self.busy_seconds += seconds
        self.batch_seconds += seconds * scheduler.last_batch
        self.waiting_seconds += seconds * waiting
        self.block_seconds += seconds * scheduler.manager.num_used
        if scheduler.last_batch > self.peak_running:
            self.peak_running = scheduler.last_batch
        if waiting > self.peak_waiting:
            self.peak_waiting = waiting

    def saw_first_token(self, seq: Sequence, now: float) -> None:
        """Note when a sample got its first token; the first sample speaks for its request."""
        seq.first_token_at = now
        if seq.sample == 0:
            self.ttft.add(now - seq.request.arrival_seconds)

    def saw_end(self, seq: Sequence, now: float) -> None:
        """Note how a sequence ended, and with the last one its request."""
        done = seq.end_reason in FINISHED
        if done:
            self.tokens_delivered += seq.num_emitted
        if done and seq.num_emitted > 1 and seq.first_token_at is not None:
            self.tpot.add((now - seq.first_token_at) / (seq.num_emitted - 1))
        if seq.error is not None:
            self.num_errors += 1
            self.errors += [seq.error] if len(self.errors) < KEPT_ERRORS else []
        request_id = seq.request.request_id
        if not done:
            self._broken.setdefault(request_id, str(seq.end_reason))
        if seq.ends_request:
            self.requests[self._broken.pop(request_id, DONE)] += 1
            self.makespan = max(self.makespan, now)

    def saw_entry(self, seq: Sequence, now: float) -> None:
        """Note how long a request had waited when it was admitted."""
        self.queue_time.add(now - seq.request.arrival_seconds)

    @property
    def requests_finished(self) -> int:
        """Requests all of whose samples are complete."""
        return self.requests[DONE]

    @property
    def sustained_batch(self) -> float:
        """Sequences in a step, on average over the time of all steps."""
        return self.batch_seconds / self.busy_seconds if self.busy_seconds else 0.0

    @property
    def tokens_per_second(self) -> float:
        """Tokens of complete answers for each second from 0 to the last end."""
        return self.tokens_delivered / self.makespan if self.makespan else 0.0

    def as_vllm(self, scheduler: Scheduler) -> dict[str, float]:
        """Return gauges and counters as vLLM names them; times as sum and count of a histogram.

        Its `kv_cache_usage_perc` is a share from 0 to 1, and hits are counted in tokens.
        """
        counts, manager = scheduler.counts, scheduler.manager
        told: dict[str, float] = {
            "vllm:num_requests_running": len(scheduler.running),
            "vllm:num_requests_waiting": len(scheduler.waiting),
            "vllm:kv_cache_usage_perc": manager.num_used / manager.num_blocks,
            "vllm:num_preemptions_total": counts.preemptions,
            "vllm:prefix_cache_queries_total": counts.prefix_query_tokens,
            "vllm:prefix_cache_hits_total": counts.prefix_hit_tokens,
            "vllm:prompt_tokens_total": counts.prompt_tokens,
            "vllm:generation_tokens_total": counts.generation_tokens,
            "vllm:request_success_total": self.requests_finished,
        }
        for name, numbers in self._times().items():
            told[f"vllm:{name}_sum"] = numbers.total
            told[f"vllm:{name}_count"] = len(numbers)
        return told

    def _times(self) -> dict[str, Quantiles]:
        return {
            "time_to_first_token_seconds": self.ttft,
            "request_time_per_output_token_seconds": self.tpot,
            "request_queue_time_seconds": self.queue_time,
        }
