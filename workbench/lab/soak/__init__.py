"""``workbench soak``: a live job with a fault every few seconds, for any length of time, under checks.

The job and its expected results are in ``work``, ``read_rows`` and ``ledger``, the faults in ``faults`` and
``patient``, the limits of the process in ``resources``, and the run that joins them in ``watch`` and ``result``. It
uses only the public API; crashes at chosen places are for ``workbench simulate``.

Belongs here: the job under test, its faults and its checks.
Does not: simulations.
"""

from workbench.lab.soak.command import declare

__all__ = ["declare"]
