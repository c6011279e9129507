"""``workbench bench``: measures speed without asserting it; every result is checked against the exact expectation.

The works use only the public API, with checkpoints, watermarks and telemetry as for any user. ``blocks`` has the
inputs, ``grep``, ``grouping`` and ``windows`` are works, ``trial`` runs one once, ``suites`` lists the runs of each
benchmark, ``peers`` runs other systems, ``report`` compares.

Belongs here: works, how they are measured and how they are reported.
Does not: assertions about speed.
"""

from workbench.lab.bench.command import declare

__all__ = ["declare"]
