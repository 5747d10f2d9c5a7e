"""What a chapter does first in Colab, after pip has installed the course: model and device.

Nothing here runs elsewhere. Colab's own PyTorch stays; the course asks it for the device.
"""

from kvlab.errors import KvlabError


def prepare(*, weights: bool = True) -> str:
    """Fetch SmolLM2 where a chapter wants it, and say where models will run.

    Without it, the course goes on with its bundled models, and the line says so. `weights=False`
    fetches nothing.

    >>> prepare(weights=False).split()[0]
    'Models'
    """
    from kvlab.model.device import describe_device

    where = describe_device()
    lines = [f"Models run on {where}."]
    if where.startswith("cpu"):
        lines.append("No GPU here; none is needed. For one: Runtime > Change runtime type.")
    if weights:
        lines.append(_fetched())
    return "\n".join(lines)


def _fetched() -> str:
    """Fetch SmolLM2; say that it is here, or in one line why it is not."""
    from kvlab.model.weights import ensure_smollm2

    try:
        ensure_smollm2()
    except KvlabError as error:
        return f"SmolLM2 is not here, so bundled models take its place ({error})."
    return "SmolLM2 is here."
