"""Options of a command line, or of a magic's, that may be given once."""

from __future__ import annotations

import argparse
from typing import Any


class Once(argparse.Action):
    """Keeps an option's value, and refuses a second one: neither of the two can be known to be meant.

    Example:
        >>> parser = argparse.ArgumentParser(exit_on_error=False)
        >>> action = parser.add_argument("-p", action=Once, type=int)
        >>> parser.parse_args(["-p", "2", "-p", "3"])
        Traceback (most recent call last):
        ...
        argparse.ArgumentError: argument -p: it is given twice, as 2 and as 3: write it once
    """

    def __call__(self, parser: object, namespace: argparse.Namespace, values: Any, option: str | None = None) -> None:
        """Take the value."""
        given = namespace.__dict__.setdefault("given", set())
        if self.dest in given:
            first = getattr(namespace, self.dest)
            raise argparse.ArgumentError(self, f"it is given twice, as {first} and as {values}: write it once")
        given.add(self.dest)
        setattr(namespace, self.dest, values)
