"""State as snapshots hold it.

Belongs here: the snapshot of keyed state, of rows, and of how far event time had come per key group.
Does not: the state itself (``state``) and files (``runtime/storage``).
"""
