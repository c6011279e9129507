"""Scripts that run a work on another system, each in the Python environment of that system.

Belongs here: what ``workbench bench ... --peers`` calls; no script imports `workbench`.
Does not: how they are called (``measuring/peers.py``), and what is written for them (``measuring/shared_tables.py``).
"""
