"""Where the course lives on the web: the one place to change when the repository moves.

Badges and install lines in the chapters are checked against these names by the tests.
"""

import sys

REPOSITORY = "kvlab/kvlab"
"""Owner and name on GitHub."""

BRANCH = "main"

NOTEBOOKS: dict[str, str] = {
    "00": "00_start_here.ipynb",
    "01": "01_follow_one_token.ipynb",
    "02": "02_recompute_or_remember.ipynb",
    "03": "03_memory_formula.ipynb",
    "04": "04_prefill_and_decode.ipynb",
    "05": "05_fewer_kv_heads.ipynb",
    "06": "06_paged_allocation.ipynb",
    "07": "07_prefix_sharing.ipynb",
    "08": "08_fewer_bits.ipynb",
    "09": "09_windows_sinks_eviction.ipynb",
    "10": "10_serving_under_pressure.ipynb",
    "11": "11_size_a_deployment.ipynb",
    "12": "12_on_a_real_engine.ipynb",
    "13": "13_interview.ipynb",
}
"""The notebooks on the web, by chapter; a kernel that holds one notebook alone sees no folder."""


def github_url(path: str = "") -> str:
    """Return the address of a file or folder of the repository.

    >>> github_url()
    'https://github.com/kvlab/kvlab'
    >>> github_url("chapters")
    'https://github.com/kvlab/kvlab/tree/main/chapters'
    """
    home = f"https://github.com/{REPOSITORY}"
    if not path:
        return home
    return f"{home}/{'blob' if '.' in path else 'tree'}/{BRANCH}/{path}"


def colab_url(notebook: str) -> str:
    """Return the address that opens a chapter in Colab; `notebook` is its file name.

    >>> colab_url("00_start_here.ipynb").rsplit("/", 2)[-2:]
    ['chapters', '00_start_here.ipynb']
    """
    home = "https://colab.research.google.com/github"
    return f"{home}/{REPOSITORY}/blob/{BRANCH}/chapters/{notebook}"


def colab_badge(notebook: str) -> str:
    """Return the link of a chapter to Colab as markdown; no picture is fetched from elsewhere.

    >>> colab_badge("00_start_here.ipynb")[:17]
    '[Open in Colab](h'
    """
    return f"[Open in Colab]({colab_url(notebook)})"


def install_source() -> str:
    """Return what pip installs the course from.

    >>> install_source()
    'git+https://github.com/kvlab/kvlab@main'
    """
    return f"git+https://github.com/{REPOSITORY}@{BRANCH}"


def in_colab() -> bool:
    """Return whether this kernel runs in Google Colab.

    >>> in_colab()
    False
    """
    return "google.colab" in sys.modules


def chapter_url(number: str) -> str | None:
    """Return where a chapter is on the web, in Colab as a notebook that runs; None for no chapter.

    >>> chapter_url("03").rsplit("/", 2)[-2:]
    ['chapters', '03_memory_formula.ipynb']
    """
    name = NOTEBOOKS.get(number)
    if name is None:
        return None
    return colab_url(name) if in_colab() else github_url(f"chapters/{name}")
