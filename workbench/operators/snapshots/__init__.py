"""The representation of state in snapshots.

Belongs here: the snapshot of keyed state, of rows, and of the event time reached per key group.
Does not: the state itself (``state``) and files (``runtime/storage``).
"""
