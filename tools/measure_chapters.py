"""Execute every chapter, one after the other, and print the seconds of each as JSON.

    python tools/measure_chapters.py [NN ...]

Nothing is written: for `kvlab bench`. A chapter that fails ends the program with its error.
"""

import json
import sys
import time

from chapter_pairs import notebook_of, read_source, sources
from run_notebook import CellFailed, run_notebook


def main(names: list[str]) -> None:
    """Run the chapters whose names begin so, or all."""
    chosen = [s for s in sources() if not names or s.stem.startswith(tuple(names))]
    seconds = {}
    for source in chosen:
        print(f"{source.stem} ...", file=sys.stderr, flush=True)
        started = time.perf_counter()
        try:
            run_notebook(read_source(source), notebook_of(source).parent)
        except CellFailed as error:
            sys.exit(f"{source.stem}: {' '.join(str(error).split())[:200]}")
        seconds[source.stem] = time.perf_counter() - started
    print(json.dumps({"seconds": seconds}))


if __name__ == "__main__":
    main(sys.argv[1:])
