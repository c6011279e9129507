"""Options of a command line or magic that may be given only once."""

from __future__ import annotations

import argparse
from typing import Any


class Once(argparse.Action):
    """Stores an option's value, and rejects a second one, because it is unclear which of the two is meant.

    Example:
        >>> parser = argparse.ArgumentParser(exit_on_error=False)
        >>> action = parser.add_argument("-p", action=Once, type=int)
        >>> parser.parse_args(["-p", "2", "-p", "3"])
        Traceback (most recent call last):
        ...
        argparse.ArgumentError: argument -p: it is given twice, as 2 and as 3: write it once
    """

    def __call__(self, parser: object, namespace: argparse.Namespace, values: Any, option: str | None = None) -> None:
        """Store the value."""
        given = namespace.__dict__.setdefault("given", set())
        if self.dest in given:
            first = getattr(namespace, self.dest)
            raise argparse.ArgumentError(self, f"it is given twice, as {first} and as {values}: write it once")
        given.add(self.dest)
        setattr(namespace, self.dest, values)
