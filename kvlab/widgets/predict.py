"""Ask for a guess before a number appears, and show the guess beside it afterwards.

Guesses live in memory, by key, for as long as the kernel. Everything works without a guess. The
guess is shown as it was typed; `kvlab.course.predictions` keeps it and compares it.
"""

import ipywidgets as widgets

from kvlab.course.predictions import GUESSES, how_far, remember
from kvlab.figures.cards import prediction
from kvlab.figures.svg import Picture
from kvlab.widgets.base import Frame, Panel
from kvlab.widgets.controls import button, observe_once


class Prediction(Panel):
    """A question with a place for a guess; Enter or the button commits it.

    `controls` holds `guess` and `commit`; `guess` is the text committed, or None.
    """

    def __init__(self, question: str, *, unit: str, key: str, scale: float = 1.0) -> None:
        self.question, self.unit, self.key, self.scale = question, unit, key, scale
        self.value: str | None = None
        self.remark = ""
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
        super().__init__("predict", [entry, commit])
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
        """Keep what is typed as the guess; an empty field takes the guess back."""
        remember(self.key, self.controls["guess"].value)
        self._draw()

    def reveal(self, value: str | float, *, remark: str = "") -> Picture:
        """Return the value beside the guess; the widget shows it too, once there is a guess.

        `value` is a number in the widget's unit, or a text such as "2.50 GiB (2.68 GB)".
        """
        shown = value if isinstance(value, str) else f"{value:,} {self.unit}".strip()
        self.value, self.remark = shown, remark
        self._draw()
        return self._card(looked=True)

    def _card(self, *, looked: bool) -> Picture:
        value = self.value if looked else None
        far = how_far(self.key, value or "", self.unit)
        remark = f"{far} {self.remark}".strip() if value else ""
        return prediction(
            self.question, guess=self.guess, value=value, remark=remark, scale=self.scale
        )

    def _draw(self) -> None:
        looked = self.guess is not None
        numbers = {"guess": self.guess or "none made"}
        numbers["value"] = self.value if looked and self.value else "not shown yet"
        self.show_frame(Frame(self._card(looked=looked), numbers, numbers_in_picture=True))


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


def reveal(key: str, value: str | float, *, remark: str = "") -> Picture:
    """Return the guess made under `key` beside the value; without a question or guess, the value.

    >>> reveal("never-asked", "2.50 GiB").label
    'Your guess: none made. Computed: 2.50 GiB.'
    """
    asked = _ASKED.get(key)
    if asked is not None:
        return asked.reveal(value, remark=remark)
    shown = value if isinstance(value, str) else f"{value:,}"
    return prediction("", value=shown, remark=remark)
