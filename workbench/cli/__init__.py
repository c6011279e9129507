"""The ``workbench`` command: demo, serve, doctor, bench, simulate and soak.

Belongs here: reading a command line, showing progress and results in a terminal. Does not: the work itself;
every command calls the public surface, or ``workbench.lab``, and prints what comes back. A command is a module with
a ``declare`` function; ``workbench.cli.entry`` lists them. What only running it needs is imported when it runs.
"""

from workbench.cli.entry import main

__all__ = ["main"]
