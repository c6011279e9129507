"""Scripts that run a work on another system, each in the Python environment of that system.

Belongs here: the scripts that ``workbench bench ... --peers`` calls; they do not import `workbench`.
Does not: calling them (``measuring/peers.py``), and writing their input (``measuring/shared_tables.py``).
"""
