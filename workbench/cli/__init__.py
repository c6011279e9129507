"""The ``workbench`` command: demo, run, serve, compare, bench, doctor, simulate and soak.

A command is a module with a ``declare`` function, listed in ``workbench.cli.entry``. It imports the runtime only when
it runs, so that the help stays fast.

Belongs here: parsing a command line, and printing progress and results.
Does not: the work itself; every command calls the public API or ``workbench.lab``.
"""

from workbench.cli.entry import main

__all__ = ["main"]
