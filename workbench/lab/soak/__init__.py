"""``workbench soak``: a live job that suffers a fault every few seconds, for as long as one likes, and is checked.

Belongs here: the job and what must come of it (``work``, ``read_rows``, ``ledger``), what is done to it
(``faults``, ``patient``), what the process may hold (``resources``), and the run that joins them (``watch``,
``result``). It uses the public surface only; crashes at chosen places are for ``workbench simulate``.

Belongs here: the job that is soaked, its faults and its checks.
Does not: simulations.
"""

from workbench.lab.soak.command import declare

__all__ = ["declare"]
