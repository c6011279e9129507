"""The command line: ``python -m pictures [SET ...]`` with ``tests`` on the path; no set named: all of them."""

from __future__ import annotations

import sys

from pictures import architectures, film, lab, pages

SETS = {"pages": pages.take, "architectures": architectures.take, "lab": lab.take, "film": film.take}


def main(names: list[str]) -> None:
    """Take the sets of pictures that are named."""
    for name in names or SETS:
        for path in SETS[name]():
            sys.stdout.write(f"{path.stat().st_size:9,} {path}\n")


main(sys.argv[1:])
