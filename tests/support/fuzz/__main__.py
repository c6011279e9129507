"""Tries one input anew and tells what was changed in it: ``python -m fuzz FORMAT SEED``."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from .runner import Input, Process


def main(arguments: list[str]) -> int:
    """0 if the input is fine."""
    if len(arguments) not in (2, 3):
        sys.stderr.write(f"{__doc__}\n")
        return 2
    name, seed, *most = arguments
    with TemporaryDirectory(prefix="workbench-fuzz-") as shared, Process(Path(shared), 60.0) as process:
        outcome = process.tried(Input(name, int(seed), int(most[0]) if most else None))
    sys.stdout.write(f"{outcome}\n    {outcome.seconds:.2f} s, {outcome.grown_mb:.0f} MB\n")
    return not outcome.fine


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
