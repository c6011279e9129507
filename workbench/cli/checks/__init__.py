"""What ``workbench doctor`` looks at: one function for each thing, each yielding what it found and how to mend it.

Belongs here: one function for each thing that ``workbench doctor`` looks at.
Does not: printing.
"""

from workbench.cli.checks.check import Check

__all__ = ["Check"]
