"""``workbench bench``: speed, shown and not asserted; every result is checked against the exact expectation.

What belongs here: the works, their inputs, and how they are measured. They use the public surface only, with
checkpoints, watermarks and telemetry as for any user. A work is a module with a function that returns a `Result`.
"""

from workbench.cli.bench.command import register

__all__ = ["register"]
