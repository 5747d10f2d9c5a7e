"""Where the course lives on the web: the one place to change when the repository moves.

Badges and install lines in the chapters are checked against these names by the tests.
"""

REPOSITORY = "kvlab/kvlab"
"""Owner and name on GitHub."""

BRANCH = "main"


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
