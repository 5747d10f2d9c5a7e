"""Every address on the site: those inside lead somewhere, nothing is loaded from elsewhere."""

from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest

LOADS = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src")}


class Addresses(HTMLParser):
    """What a page links to, what it loads, and the ids that it holds."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.ids: Counter[str] = Counter()
        self.nodes = 0
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.nodes += 1
        for name, value in attrs:
            if name == "id":
                self.ids[value or ""] += 1
            elif (tag, name) in LOADS:
                self.loads.append(value or "")
            elif tag == "a" and name == "href":
                self.links.append(value or "")


@pytest.fixture(scope="module")
def pages(built: Path) -> dict[str, Addresses]:
    return {p.name: Addresses(p.read_text(encoding="utf-8")) for p in built.glob("*.html")}


def is_outside(address: str) -> bool:
    return "//" in address or address.startswith(("mailto:", "javascript:"))


def dead(pages: dict[str, Addresses]) -> list[str]:
    """Return the links within the site that lead to no page or to no id of one."""
    found = []
    for name, page in pages.items():
        for address in page.links:
            if is_outside(address):
                continue
            file, _, anchor = address.partition("#")
            target = pages.get(file or name)
            if target is None or (anchor and not target.ids[anchor]):
                found.append(f"{name}: {address}")
    return found


def test_every_link_and_anchor_within_the_site_resolves(pages: dict[str, Addresses]) -> None:
    assert sum(len(page.links) for page in pages.values()) > 500
    assert dead(pages) == []


def test_a_link_to_nowhere_is_found() -> None:
    pages = {"a.html": Addresses('<a href="b.html#x"></a><a href="#y"></a><a href="#z"></a>'
                                 '<p id="z"></p>')}  # fmt: skip
    assert dead(pages) == ["a.html: b.html#x", "a.html: #y"]


def test_nothing_is_loaded_from_elsewhere_and_what_is_loaded_is_there(
    pages: dict[str, Addresses], built: Path
) -> None:
    for name, page in pages.items():
        for address in page.loads:
            assert not is_outside(address), f"{name} loads {address}"
            assert (built / address).is_file(), f"{name} loads {address}, which is not there"


def test_links_outside_are_https(pages: dict[str, Addresses]) -> None:
    outside = {a for page in pages.values() for a in page.links if is_outside(a)}
    assert len(outside) > 10
    assert [address for address in outside if not address.startswith("https://")] == []


def test_styles_and_scripts_name_no_address(built: Path) -> None:
    for path in [*built.glob("assets/*.js"), *built.glob("assets/*.css")]:
        text = path.read_text(encoding="utf-8")
        if path.name in ("plotly.min.js", "texts.js"):  # plotly's own links; words of the chapters
            continue
        outside = text.replace("http://www.w3.org/", "")
        assert "http:" not in outside and "https:" not in outside, path.name
        assert "@import" not in text and "fetch(" not in text and "eval(" not in text, path.name


def test_an_id_stands_once_on_its_page(pages: dict[str, Addresses]) -> None:
    twice = {
        name: [i for i, times in page.ids.items() if times > 1 and "-kv" not in i]
        for name, page in pages.items()
    }
    assert {name: ids for name, ids in twice.items() if ids} == {}
