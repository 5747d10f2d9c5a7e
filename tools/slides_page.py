"""Slides as one HTML page that needs nothing else: no network, no server, no second file."""

import re
from html import escape

from slides_pick import LISTS, Slide
from slides_text import as_html

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
WIDE = 2.3  # a picture's width over its height, from which on words stand above it
HELP = (
    "Arrow keys turn the slides. n shows the notes, s opens them in a window of their own, "
    "d changes light and dark, and printing gives a page for each slide."
)


def slide_html(slide: Slide, number: int, count: int) -> str:
    """Return one slide as a section with its notes."""
    title = escape(slide.title)
    asks = slide.kind in ("guess", "answer")
    ask = f'<p class="ask">{slide.caption}</p>' if asks else ""
    reads = f"<b>How to read it:</b> {slide.caption}" if slide.caption and not asks else ""
    label = escape(f"Slide {number} of {count}: {slide.title}, {slide.kind}", quote=True)
    kind = f"{slide.kind} tall" if is_tall(slide) else slide.kind
    parts = (
        f'<section class="slide {kind}" role="group" aria-label="{label}">',
        f'<h2>{title}</h2><div class="lead">{slide.lead}</div>',
        f'<div class="body">{ask}{slide.body}</div><div class="caption">{reads}</div>',
        f'<aside class="notes">{as_html(slide.notes)}</aside></section>',
    )
    return "".join(parts)


def is_tall(slide: Slide) -> bool:
    """Return whether a picture needs the whole height, so that words go beside it."""
    box = re.search(r'<svg[^>]* viewBox="0 0 ([\d.]+) ([\d.]+)"', slide.body)
    drawn = bool(box) and slide.kind == "picture" and '<div class="fit"><svg' in slide.body
    drawn = drawn and bool(slide.lead or slide.caption)
    return drawn and float(box[1]) / float(box[2]) < WIDE  # type: ignore[index]


def page_html(slides: list[Slide], name: str) -> str:
    """Return the page of a chapter's slides."""
    css, script = (
        (LISTS / file).read_text(encoding="utf-8").strip() for file in ("page.css", "page.js")
    )
    body = "\n".join(slide_html(s, i, len(slides)) for i, s in enumerate(slides, start=1))
    bar = '<button id="back" aria-label="slide before">&lsaquo;</button><span id="where"></span>'
    bar += '<button id="on" aria-label="next slide">&rsaquo;</button>'
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(name)}</title>\n<style>\n{css}\n</style></head>\n"
        f'<body><main id="stage">{body}\n<div id="chapter">{escape(name)}</div>'
        f'<nav id="bar" aria-label="slides" title="{escape(HELP, quote=True)}">{bar}</nav></main>\n'
        '<div id="notes" role="region" aria-label="speaker\'s notes" tabindex="0"></div>\n'
        f"<script>\n{script}\n</script></body></html>\n"
    )


def index_html(names: dict[str, tuple[str, int]]) -> str:
    """Return the list of talks: file name to (chapter, number of slides)."""
    rows = "".join(
        f'<li><a href="{escape(file)}">{escape(name)}</a>, {count} slides</li>'
        for file, (name, count) in names.items()
    )
    style = (
        "body{font:18px/1.6 system-ui,sans-serif;margin:2.5em auto;max-width:44em;padding:0 1em}"
    )
    style += ":root{color-scheme:light dark}a{color:inherit}"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>Slides of the course</title><style>{style}</style></head><body>"
        f"<h1>Slides of the course</h1><p>{HELP}</p><ul>{rows}</ul></body></html>\n"
    )
