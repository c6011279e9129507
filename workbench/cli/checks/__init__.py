"""What ``workbench doctor`` looks at: one function for each thing, each yielding what it found and how to mend it."""

from workbench.cli.checks.check import Check

__all__ = ["Check"]
