"""A chapter's slides, chosen from its executed notebook: questions, answers, pictures, takeaways.

Core sections give a slide for each guess, each answer beside what the cell printed, and each
picture or table. `tools/slides/NN.json` says what else comes in, what is left out, and which
sentence stands above a picture where the first one is not the best. Every word on a slide is the
chapter's own, so no slide holds a number that the chapter does not compute.
"""

import html
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chapter_pairs import tags_of
from nbformat import NotebookNode
from slides_text import KIND, inline, lead_of, pieces, reading_of, sentences

LISTS = Path(__file__).parent / "slides"
LABEL = re.compile(r"^(.*?) ?Your guess: .*?\. (Computed|Measured): (.*)\.$", re.DOTALL)
REMARK = re.compile(r'<div style="margin-top:8px">(.*?)</div>', re.DOTALL)
UNIT = re.compile(r'unit="([^"]+)"')
MOST_LINES, MOST_COLUMNS, SHORT = 8, 104, 16
LEAD = {"guess": 250, "picture": 130}  # characters above a slide's main thing
LEFT_OUT_TAGS = {"setup", "exercise", "check", "hint", "solution", "remove-cell"}


@dataclass
class Slide:
    """One slide: its kind (title, guess, answer, picture or words), and HTML for its parts."""

    kind: str
    title: str
    lead: str = ""
    body: str = ""
    caption: str = ""
    notes: str = field(default="", repr=False)


@dataclass
class Choice:
    """What `NN.json` asks for; cells are named by a piece of their code.

    `deep` holds headings of deep dives that belong into the talk.
    """

    deep: list[str] = field(default_factory=list)
    add: list[str] = field(default_factory=list)
    leave_out: list[str] = field(default_factory=list)
    lead: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, chapter: str, folder: Path = LISTS) -> "Choice":
        """Read a chapter's list; one without a list takes what is chosen anyhow."""
        path = folder / f"{chapter}.json"
        return cls(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else cls()

    def used(self, names: list[str], code: str) -> bool:
        """Return whether one of these pieces of code stands in a cell."""
        return any(name in code for name in names)


def pick(notebook: NotebookNode, chapter: str, choice: Choice | None = None) -> list[Slide]:
    """Return the slides of an executed chapter, in order.

    Raises `ValueError` when the chapter's list names a cell, heading or sentence that is not there.
    """
    choice = choice or Choice.of(chapter)
    picker = Picker(choice, check_list(choice, notebook, chapter))
    for cell in notebook.cells:
        picker.take(cell)
    return picker.finished()


def check_list(choice: Choice, notebook: NotebookNode, chapter: str) -> list[str]:
    """Return all sentences of a chapter; raise `ValueError` for a name that finds nothing."""
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    for name in (*choice.add, *choice.leave_out, *choice.lead):
        if not any(name in source for source in code):
            raise ValueError(f"tools/slides/{chapter}.json: no cell holds {name!r}")
    for heading in choice.deep:
        if not re.search(rf"^#+ (?:\d+\. )?{re.escape(heading)}$", prose, re.MULTILINE):
            raise ValueError(f"tools/slides/{chapter}.json: no section is called {heading!r}")
    said = sentences(prose)
    for start in choice.lead.values():
        if not any(sentence.startswith(start) for sentence in said):
            raise ValueError(f"tools/slides/{chapter}.json: no sentence begins {start!r}")
    return said


class Picker:
    """Goes through a chapter's cells and keeps the slides, with the prose since the last one."""

    def __init__(self, choice: Choice, said: list[str]) -> None:
        self.choice, self.said = choice, said
        self.slides: list[Slide] = []
        self.section, self.kind = "", ""
        self.text = self.notes = self.room = ""

    def take(self, cell: NotebookNode) -> None:
        """Look at the next cell."""
        if cell.cell_type == "code":
            self._code(cell)
        elif "instructor" in tags_of(cell):
            self.room += f"{cell.source}\n\n"
        elif not self.slides:
            self._title(cell.source)
        else:
            self._prose(cell.source)

    def finished(self) -> list[Slide]:
        """Return the slides; what is meant for the room stands in the notes of the first."""
        self.slides[0].notes += f"\n\n{self.room}"
        return self.slides

    def _title(self, source: str) -> None:
        ((heading, text),) = pieces(re.sub(r"^\[Open in Colab\].*$", "", source, flags=re.M))
        found = re.search(r"\*\*The question[.:]\s*(.*?)\*\*\s*(.*)", text, re.DOTALL)
        asked = (found[1] or found[2]) if found else text
        question = re.sub(r"\s+", " ", asked.split("\n\n")[0]).strip()
        question = question[:1].upper() + question[1:]
        self.slides.append(Slide("title", heading, lead=inline(question), notes=source))

    def _prose(self, source: str) -> None:
        for heading, text in pieces(source):
            if heading:
                self.section, self.text = heading, ""
            if found := KIND.search(text):
                self.kind = found[1]
            self.text += f"\n\n{KIND.sub('', text).strip()}"
        self.notes += f"\n\n{source}"
        if self.section == "Takeaways" and "**The answer.**" in source:
            said = source.split("**The answer.**")[1].strip()
            self._keep(Slide("words", "The answer", lead=inline(said)))

    def _code(self, cell: NotebookNode) -> None:
        wanted = self.kind == "Core" or self.section in (*self.choice.deep, "Takeaways")
        added = self.choice.used(self.choice.add, cell.source)
        if "chapter_line(" in cell.source or LEFT_OUT_TAGS & set(tags_of(cell)):
            return
        if not (wanted or added) or self.choice.used(self.choice.leave_out, cell.source):
            return
        printed = "".join(o.get("text", "") for o in cell.outputs if o.get("name") == "stdout")
        for output in cell.outputs:
            self._shown(cell, output.get("data", {}), printed)
        if added and printed and not any("data" in output for output in cell.outputs):
            self._keep(
                Slide("picture", self.section, self._lead(cell, "picture"), printout(printed))
            )

    def _shown(self, cell: NotebookNode, data: dict[str, Any], printed: str) -> None:
        label = data.get("text/plain", "")
        picture = data.get("image/svg+xml") or data.get("text/html", "")
        if "predict" in tags_of(cell):
            unit = UNIT.search(cell.source)
            asked = html.escape(label.split(" Your guess:")[0])
            said = not unit or unit[1] == "x" or unit[1].lower() in asked.lower()
            body = "" if said else f'<p class="unit">in {html.escape(unit[1])}</p>'
            self._keep(Slide("guess", self.section, self._lead(cell, "guess"), body, asked))
        elif found := LABEL.match(label):
            self._answer(found, picture, printed)
        elif picture:
            reading = inline(reading_of(self.text))
            body = f'<div class="fit">{picture}</div>'
            self._keep(Slide("picture", self.section, self._lead(cell, "picture"), body, reading))

    def _answer(self, found: re.Match[str], card: str, printed: str) -> None:
        question, kind, value = found.groups()
        remark = "".join(REMARK.findall(card))
        long = " long" if len(value) > SHORT else ""
        body = f'<p class="value{long}"><span>{kind}</span> {html.escape(value)}</p>'
        body += f'<div class="remark">{remark}</div>' if remark else ""
        lines = printed.rstrip().split("\n")
        if printed and len(lines) <= MOST_LINES and max(map(len, lines)) <= MOST_COLUMNS:
            body += printout(printed)
        self._keep(Slide("answer", self.section, "", body, html.escape(question)))

    def _lead(self, cell: NotebookNode, kind: str) -> str:
        """Return what stands above: the sentence that the list names, else the first ones."""
        for name, start in self.choice.lead.items():
            if name in cell.source:
                return inline(next(s for s in self.said if s.startswith(start)))
        return inline(lead_of(self.text, LEAD[kind]))

    def _keep(self, slide: Slide) -> None:
        slide.notes, self.notes, self.text = self.notes, "", ""
        self.slides.append(slide)


def printout(text: str) -> str:
    """Return what a cell printed as it stands."""
    return f'<div class="fit"><pre>{html.escape(text.rstrip())}</pre></div>'
