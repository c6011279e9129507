"""The view of micro-batches.

Belongs here: the queue of batches as a table.
Does not: what a frame says about it (``telemetry/batches``).
"""
