"""The bank on the site: a page that lists the topics, one page a topic, and the diagnostic."""

from collections.abc import Mapping, Sequence

from kvlab.course.bank import load_questions
from kvlab.course.chapters_map import find_chapter
from kvlab.course.diagnostic import draw_diagnostic
from kvlab.course.questions import LEVELS, Question
from kvlab.course.schema import TOPICS
from tools.site.chapters import ChapterPage
from tools.site.markup import tag, text
from tools.site.page import Page
from tools.site.question_block import question_block
from tools.site.search_index import Section

TITLES = {
    "basics": "Tokens, vectors and bytes",
    "qkv": "Queries, keys and values",
    "recompute": "Recompute or remember",
    "memory": "The memory formula",
    "prefill-decode": "Prefill and decode",
    "gqa": "Fewer KV heads",
    "paging": "Paged allocation",
    "prefix": "Prefix sharing",
    "quantisation": "The cache in fewer bits",
    "eviction": "Windows, sinks and eviction",
    "serving": "Serving under pressure",
    "sizing": "Sizing a deployment",
}
"""What each topic of the bank is called on the site."""

DIAGNOSTIC_SEED = 1
_HOW = (
    "Type or pick, then check: every slip gets its own answer. Questions with numbers can be "
    "asked again with others. Nothing you type leaves this page."
)


def topic_file(topic: str) -> str:
    """Return the file of a topic's page.

    >>> topic_file("gqa")
    'questions-gqa.html'
    """
    return f"questions-{topic}.html"


def question_pages(
    chapters: Sequence[ChapterPage],
) -> tuple[list[Page], list[Section]]:
    """Return the page of topics, a page for each, and their sections for the search."""
    files = {chapter.number: chapter.file for chapter in chapters}
    by_topic: dict[str, list[Question]] = {topic: [] for topic in TOPICS}
    for question in load_questions():
        by_topic[question.topic].append(question)
    pages, sections = [_overview(by_topic)], []
    for topic, questions in by_topic.items():
        page, found = _topic_page(topic, questions, files)
        pages.append(page)
        sections += found
    return pages, sections


def _overview(by_topic: Mapping[str, Sequence[Question]]) -> Page:
    cards = ""
    for topic, questions in by_topic.items():
        kinds = {kind: sum(q.kind == kind for q in questions) for kind in _KINDS}
        said = ", ".join(f"{n} {_KINDS[kind]}" for kind, n in kinds.items() if n)
        inner = tag("strong", text(TITLES[topic])) + tag("span", f"{len(questions)}", class_="many")
        cards += tag("a", inner + tag("em", said), href=topic_file(topic), class_="topic")
    total = sum(len(questions) for questions in by_topic.values())
    lead = tag("p", f"{total} questions by topic, with answers. {_HOW}", class_="lead")
    diagnostic = tag("a", "Ten questions that tell which chapters you can skip",
                     href="diagnostic.html", class_="go")  # fmt: skip
    body = tag("h1", "Questions") + lead + tag("p", diagnostic)
    body += tag("div", cards, class_="topics")
    return Page("questions.html", "Questions \u00b7 kvlab", body, kind="plain")


_KINDS = {
    "numeric": "with a number", "shape": "for a shape", "choice": "to pick", "order": "to order",
    "find-error": "with an error to find", "open": "to say aloud",
}  # fmt: skip


def _topic_page(
    topic: str, questions: Sequence[Question], files: Mapping[str, str]
) -> tuple[Page, list[Section]]:
    title, body, sections = TITLES[topic], "", []
    file = topic_file(topic)
    number = 0
    for level, name in LEVELS.items():
        of_level = [question for question in questions if question.level == level]
        if not of_level:
            continue
        body += tag("h2", text(name.capitalize()), id=f"level-{level}")
        for question in of_level:
            number += 1
            page = files.get(question.chapter, "")
            at = f"{page}#{question.anchor}" if page else ""
            body += question_block(question, seed=0, number=number, taught_at=at)
            words = [question.text.replace("{", "").replace("}", "")]
            sections.append(Section(file, f"q-{question.id}", f"Questions: {title}", "", words))
    back = tag("a", "All topics", href="questions.html")
    head = tag("p", back, class_="kicker") + tag("h1", text(title))
    head += tag("p", f"{len(questions)} questions. {_HOW}", class_="lead")
    body = head + tag("div", body, class_="questions")
    page = Page(file, f"Questions: {title} \u00b7 kvlab", body, needs={"questions"}, kind="plain")
    return page, sections


def diagnostic_page(chapters: Sequence[ChapterPage]) -> Page:
    """Return the ten questions that say which chapters can be skipped."""
    files = {chapter.number: chapter.file for chapter in chapters}
    blocks, rows = "", ""
    for number, asked in enumerate(draw_diagnostic(DIAGNOSTIC_SEED), 1):
        question = asked.question
        blocks += question_block(question, seed=asked.seed, number=number)
        rows += _advice_row(question, files)
    words = (
        "One question for each of ten chapters. The first answer counts, and so does a look at "
        "the worked answer: the table below them says what to read."
    )
    heads = "".join(tag("th", name, scope="col") for name in ("chapter", "for you", "minutes core"))
    caption = tag("caption", "Answer the questions above.", class_="js-total")
    table = tag("table", caption + tag("thead", tag("tr", heads)) + tag("tbody", rows))
    body = tag("h1", "Which chapters can I skip?") + tag("p", words, class_="lead")
    body += tag("div", blocks, class_="questions")
    body += tag("h2", "What to read", id="advice")
    body += tag("div", table, class_="advice wide", role="status")
    return Page("diagnostic.html", "Diagnostic \u00b7 kvlab", body,
                needs={"questions", "diagnostic"}, kind="plain")  # fmt: skip


def _advice_row(question: Question, files: Mapping[str, str]) -> str:
    chapter = find_chapter(question.chapter)
    name = text(f"{chapter.number} {chapter.title}")
    if files.get(chapter.number):
        name = tag("a", name, href=files[chapter.number])
    cells = tag("th", name, scope="row") + tag("td", "not answered yet", class_="js-advice")
    cells += tag("td", str(chapter.core_minutes), class_="n")
    return tag("tr", cells, data_question=question.id)
