"""What every test may rely on: a fixed seed and few threads, without importing torch for it."""

import os
import random
import sys
from collections.abc import Iterator

import pytest

SEED = 20260801
os.environ.setdefault("TQDM_DISABLE", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # two threads crawl on a busy machine


@pytest.fixture(autouse=True)
def fixed_seeds() -> Iterator[None]:
    """Seed every generator that is already loaded; a torch-free test stays torch-free."""
    random.seed(SEED)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(SEED)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(SEED)
    yield
