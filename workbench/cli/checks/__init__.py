"""The checks of ``workbench doctor``.

Belongs here: one function per check; each yields its findings and how to fix them.
Does not: printing.
"""

from workbench.cli.checks.check import Check

__all__ = ["Check"]
