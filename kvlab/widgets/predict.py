"""Ask for a guess before a number appears, and show the guess beside it afterwards.

Guesses live in memory, by key, for as long as the kernel. Everything works without a guess. The
guess is shown as it was typed; `kvlab.course.predictions` keeps it and compares it. Once guess and
value stand side by side the guess is final; running the question's cell again opens it again.
"""

import ipywidgets as widgets

from kvlab.course.predictions import GUESSES, how_far, not_a_number, remember
from kvlab.figures.cards import prediction
from kvlab.figures.svg import Picture
from kvlab.widgets.base import Frame, Panel
from kvlab.widgets.controls import button, observe_once

NOT_TYPED = "run this cell to type a guess"
"""What a saved page says in place of a guess."""


class Prediction(Panel):
    """A question with a place for a guess; Enter or the button commits it.

    `controls` holds `guess` and `commit`; `guess` is the text committed, or None.
    """

    def __init__(self, question: str, *, unit: str, key: str, scale: float = 1.0) -> None:
        self.question, self.unit, self.key, self.scale = question, unit, key, scale
        self.value: str | None = None
        self.remark = self.asked_again = ""
        self.measured = False
        name = f"your guess in {unit}" if unit else "your guess"
        entry = widgets.Text(
            value=GUESSES.guess(key) or "",
            description=name,
            placeholder="a number is enough",
            continuous_update=False,
            style={"description_width": "initial"},
            layout=widgets.Layout(width="360px"),
        )
        commit = button("commit", self.commit, hint="commit to this guess")
        self.controls: dict[str, widgets.Widget] = {"guess": entry, "commit": commit}
        super().__init__("predict", [entry, commit], below=True)
        observe_once(entry, lambda _: self.commit())
        self._draw()

    @property
    def guess(self) -> str | None:
        """The committed guess with its unit, or None."""
        typed = GUESSES.guess(self.key)
        if not typed:
            return None
        bare = not any(letter.isalpha() or letter == "%" for letter in typed)
        return f"{typed} {self.unit}".strip() if bare else typed

    def commit(self) -> None:
        """Keep what is typed as the guess; an empty field takes the guess back.

        Words that hold no number are not kept, and after the look a guess is final.
        """
        if not self.final:
            typed = self.controls["guess"].value
            self.asked_again = not_a_number(typed)
            if not self.asked_again:
                remember(self.key, typed)
        self._draw()

    @property
    def final(self) -> bool:
        """Whether guess and value stand side by side, so that the guess can't change any more."""
        return self.value is not None and self.guess is not None

    def reveal(self, value: str | float, *, remark: str = "", measured: bool = False) -> Picture:
        """Return the value beside the guess; the widget shows it too, once there is a guess.

        `value` is a number in the widget's unit, or a text such as "2.50 GiB (2.68 GB)"; it was
        computed, or `measured`.
        """
        shown = value if isinstance(value, str) else f"{value:,} {self.unit}".strip()
        self.value, self.remark, self.measured = shown, remark, measured
        self._draw()
        return self._card(looked=True)

    def still(self) -> Picture:
        """Return the card for a page without a kernel: there nothing can be typed yet."""
        if self.guess is not None:
            return super().still()
        return prediction(self.question, no_guess=NOT_TYPED, scale=self.scale)

    def _card(self, *, looked: bool) -> Picture:
        value = self.value if looked else None
        far = how_far(self.key, value or "", self.unit)
        remark = f"{far} {self.remark}".strip() if value else ""
        return prediction(
            self.question,
            guess=self.guess,
            value=value,
            remark=remark,
            measured=self.measured,
            scale=self.scale,
        )

    def _draw(self) -> None:
        looked = self.guess is not None
        numbers = {"guess": self.guess or "none made"}
        numbers["value"] = self.value if looked and self.value else "not shown yet"
        for control in self.controls.values():
            control.disabled = self.final
        frame = Frame(self._card(looked=looked), numbers, self.asked_again, numbers_in_picture=True)
        self.show_frame(frame)


_ASKED: dict[str, Prediction] = {}


def predict(question: str, *, unit: str = "", key: str, scale: float = 1.0) -> Prediction:
    """Ask a question and return its widget; asked again, it still knows the guess.

    >>> asked = predict("How many bytes?", unit="KiB", key="bytes-per-token")
    >>> asked.controls["guess"].value = "128"
    >>> reveal("bytes-per-token", 320).label
    'How many bytes? Your guess: 128 KiB. Computed: 320 KiB.'
    """
    _ASKED[key] = Prediction(question, unit=unit, key=key, scale=scale)
    return _ASKED[key]


def reveal(key: str, value: str | float, *, remark: str = "", measured: bool = False) -> Picture:
    """Return the guess made under `key` beside the value; without a question or guess, the value.

    The value is called computed, or `measured`.

    >>> reveal("never-asked", "2.50 GiB").label
    'Your guess: none made. Computed: 2.50 GiB.'
    """
    asked = _ASKED.get(key)
    if asked is not None:
        return asked.reveal(value, remark=remark, measured=measured)
    shown = value if isinstance(value, str) else f"{value:,}"
    return prediction("", value=shown, remark=remark, measured=measured)
