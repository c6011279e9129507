"""``workbench bench``: speed, shown and not asserted; every result is checked against the exact expectation.

Belongs here: the works, their inputs, and how they are measured. They use the public surface only, with
checkpoints, watermarks and telemetry as for any user. ``blocks`` has the inputs, ``grep``, ``grouping`` and ``windows``
are the works, ``trial`` runs one once, ``suites`` says which runs a benchmark consists of, ``peers`` runs other
systems, ``report`` compares.

Belongs here: works, how they are measured and how they are reported.
Does not: assertions about speed.
"""

from workbench.lab.bench.command import declare

__all__ = ["declare"]
