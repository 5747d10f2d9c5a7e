"""Where the course lies, and under which name each of its notebooks becomes a page.

`tools/site` has no `__init__.py`: with one, a folder called `site` on the path would stand in
the way of Python's own module of that name. It is imported as `tools.site` from the root.
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = ROOT / "chapters"
ASSETS = Path(__file__).resolve().parent / "assets"
OUT = ROOT / "site"

_NOTEBOOK = re.compile(r"^(?:chapters/)?(?P<stem>[\w-]+)\.ipynb(?P<anchor>#[\w-]+)?$")


def page_of(stem: str) -> str:
    """Return the file name of the page of a notebook.

    >>> page_of("03_memory_formula")
    '03_memory_formula.html'
    """
    return f"{stem}.html"


def rewritten(address: str) -> str:
    """Return a link as the site has it: one to a notebook leads to its page, others stay.

    >>> rewritten("13_interview.ipynb#mock"), rewritten("https://example.org/a.ipynb")
    ('13_interview.html#mock', 'https://example.org/a.ipynb')
    """
    found = _NOTEBOOK.match(address)
    return f"{page_of(found['stem'])}{found['anchor'] or ''}" if found else address
