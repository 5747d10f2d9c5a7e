"""Build the course as a site that works from a disk, without a server and without a network.

python -m tools.site                 # from the chapters to the folder site/
python -m tools.site --out FOLDER
"""

import argparse
import sys
import time
from pathlib import Path

from tools.site.build import build_site
from tools.site.places import CHAPTERS, OUT


def main(arguments: list[str]) -> int:
    """Build; return 0 when all is well."""
    parser = argparse.ArgumentParser(prog="tools.site", description=__doc__.split("\n\n")[0])
    parser.add_argument("--out", type=Path, default=OUT, help="where the site goes")
    parser.add_argument("--chapters", type=Path, default=CHAPTERS, help="where the notebooks lie")
    options = parser.parse_args(arguments)
    started = time.perf_counter()
    try:
        site = build_site(options.chapters, options.out)
    except FileExistsError as error:
        print(f"site: {error}", file=sys.stderr)
        return 1
    size = sum(path.stat().st_size for path in options.out.rglob("*") if path.is_file())
    seconds = time.perf_counter() - started
    print(f"{len(site.pages)} pages, {size / 1e6:.1f} MB, in {seconds:.1f} s")
    print(f"open {options.out / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
