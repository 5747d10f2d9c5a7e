"""Claim cards: judge a claim first, then see what was recomputed and the condition."""

import ipywidgets as widgets

from kvlab.course.claims import LEARNER_VERDICTS, Claim, claim_card, computed_rows
from kvlab.figures.cards import claim
from kvlab.figures.svg import Picture
from kvlab.widgets.base import Frame, Panel
from kvlab.widgets.controls import observe_once


class ClaimQuiz(Panel):
    """A claim that waits for a verdict; `controls` holds `verdict`, a choice of three."""

    def __init__(self, claim_id: str) -> None:
        self.claim: Claim = claim_card(claim_id).claim
        verdict = widgets.ToggleButtons(
            description="your verdict", options=list(LEARNER_VERDICTS), value=None
        )
        self.controls: dict[str, widgets.Widget] = {"verdict": verdict}
        super().__init__("claim", [verdict], below=True)
        observe_once(verdict, lambda _: self._draw())
        self._draw()

    def still(self) -> Picture:
        """Return the card for a page without a kernel: there the answer is folded below it."""
        shown = super().still()
        if self.controls["verdict"].value is not None:
            return shown
        return Picture(shown + claim_card(self.claim.id).folded_answer, label=shown.label)

    def _draw(self) -> None:
        """Show the claim, and once there is a verdict, what was recomputed."""
        given, card = self.controls["verdict"].value, claim_card(self.claim.id)
        if given is None:
            self.show_frame(Frame(claim(card.question, source=self.claim.source)))
            return
        picture = claim(
            card.question,
            source=self.claim.source,
            verdict=self.claim.learner_verdict,
            learner=given,
            computed=computed_rows(self.claim),
            condition=self.claim.condition,
        )
        self.show_frame(Frame(picture))
        self.numbers = computed_rows(self.claim)


def claim_quiz(claim_id: str) -> ClaimQuiz:
    """Return a claim card that shows the recomputed answer once a verdict is given.

    >>> card = claim_quiz("recompute-quadruples")
    >>> card.numbers
    {}
    >>> card.controls["verdict"].value = "wrong"
    >>> card.numbers
    {'computed': '2.40x'}
    """
    return ClaimQuiz(claim_id)
