"""The view of micro-batches.

Belongs here: the queue of batches as a table.
Does not: its frames (``telemetry/batches``).
"""
