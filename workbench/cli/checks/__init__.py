"""The checks of ``workbench doctor``.

Belongs here: one function per check; each yields what it found and how to fix it.
Does not: printing.
"""

from workbench.cli.checks.check import Check

__all__ = ["Check"]
