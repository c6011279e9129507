"""``workbench bench``: measures speed without asserting it; every result is checked against the exact expectation.

The works use only the public API, with checkpoints, watermarks and telemetry as for any user. In ``works``, ``blocks``
has the inputs, and ``grep``, ``grouping`` and ``windows`` are works. In ``measuring``, ``trial`` runs a work once,
``suites`` lists the runs of each benchmark, ``peers`` runs other systems, and ``report`` compares.

Belongs here: the command, in its rooms the works, how they are measured and how they are reported.
Does not: assertions about speed.
"""

from workbench.lab.bench.command import declare

__all__ = ["declare"]
