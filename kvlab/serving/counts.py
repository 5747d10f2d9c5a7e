"""Counters of a scheduler: whole numbers that only rise. They know no time."""

from dataclasses import dataclass


@dataclass(slots=True)
class Counts:
    """What happened so far, in requests, tokens or blocks as each name says.

    `prompt_tokens` are those of admitted requests; of these, `prefix_query_tokens` were looked up
    and `prefix_hit_tokens` found. `prefill_tokens` were computed in chunks, those computed again
    after a preemption included; `recomputed_tokens` are these alone.
    """

    steps: int = 0
    requests_added: int = 0
    prompt_tokens: int = 0
    prefill_tokens: int = 0
    generation_tokens: int = 0
    prefix_query_tokens: int = 0
    prefix_hit_tokens: int = 0
    preemptions: int = 0
    recomputed_tokens: int = 0
    swapped_out_blocks: int = 0
    swapped_in_blocks: int = 0
    forks: int = 0

    @property
    def prefix_hit_rate(self) -> float:
        """The share of looked-up prompt tokens that were found; 0 before any."""
        asked = self.prefix_query_tokens
        return self.prefix_hit_tokens / asked if asked else 0.0
